/**
 * Faults that a relay can have towards other relays. Each replaces a method of one part of a relay
 * in this process, until it is disposed of.
 */
import type { PeerStream } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  encodeKadMessage,
  type KadMessage,
  kadTypes,
} from '@posthouse/protocol/federation';
import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '@posthouse/protocol/json';
import type { Relay } from '@posthouse/relay';
import { homeOf } from '../../relay/src/accounts/index.ts';
import type { RelayAnswer } from '../../relay/src/context.ts';
import { Dispatcher } from '../../relay/src/dispatch/dispatcher.ts';
import { encodeResult } from '../../relay/src/dispatch/encode.ts';
import { JsonText } from '../../relay/src/dispatch/handler.ts';
import { RelayDispatcher, type RelayReply } from '../../relay/src/dispatch/relay-dispatcher.ts';
import { DhtServer } from '../../relay/src/federation/dht/serve.ts';
import { Eligibility } from '../../relay/src/federation/eligibility.ts';
import { type PeerCheck, PeerRefusal } from '../../relay/src/federation/peer-refusal.ts';
import { PeerSet } from '../../relay/src/federation/peer-set.ts';
import { RpcClient } from '../../relay/src/federation/rpc/client.ts';
import { RpcServer } from '../../relay/src/federation/rpc/serve.ts';
import { type EligiblePeer, peerOf } from '../../relay/src/federation/verify-descriptor.ts';

/** A fault, and the check that must find it. */
export interface SeededFault {
  readonly fault: string;
  /** ID of the check. */
  readonly check: string;
  readonly seed: (relay: Relay) => Disposable;
}

type MethodOf<T, K extends keyof T> = Extract<T[K], (...args: never[]) => unknown>;

/** Replaces a method of every instance of a class. */
function replace<T extends object, K extends keyof T>(
  prototype: T,
  name: K,
  wrap: (original: MethodOf<T, K>) => MethodOf<T, K>,
): Disposable {
  const original = prototype[name] as MethodOf<T, K>;
  prototype[name] = wrap(original);
  return {
    [Symbol.dispose]() {
      prototype[name] = original;
    },
  };
}

/** Combines replacements. */
function all(...parts: readonly Disposable[]): Disposable {
  const stack = new DisposableStack();
  for (const part of parts) stack.use(part);
  return stack;
}

type Serve = (stream: PeerStream, serve: (stream: PeerStream) => Promise<void>) => Promise<void>;

let serveDht: Serve | undefined;
let serveRpc: Serve | undefined;

/**
 * Lets faults replace how streams are served. The parts take these methods when a relay starts, so
 * this comes before.
 */
export function openStreamsToFaults(): Disposable {
  return all(
    replace(
      DhtServer.prototype,
      'serve',
      (original) =>
        async function (this: DhtServer, stream, on) {
          const serve = (one: PeerStream) => original.call(this, one, on);
          await (serveDht === undefined ? serve(stream) : serveDht(stream, serve));
        },
    ),
    replace(
      RpcServer.prototype,
      'serve',
      (original) =>
        async function (this: RpcServer, stream, on) {
          const serve = (one: PeerStream) => original.call(this, one, on);
          await (serveRpc === undefined ? serve(stream) : serveRpc(stream, serve));
        },
    ),
  );
}

function servingDht(serve: Serve): Disposable {
  serveDht = serve;
  return {
    [Symbol.dispose]() {
      serveDht = undefined;
    },
  };
}

function servingRpc(serve: Serve): Disposable {
  serveRpc = serve;
  return {
    [Symbol.dispose]() {
      serveRpc = undefined;
    },
  };
}

const bounds = { peers: 100, addresses: 8 };

/** Answers DHT requests; `undefined` lets the relay answer. */
function answeringDht(
  answer: (
    request: KadMessage,
    honest: () => Promise<KadMessage>,
  ) => Promise<KadMessage> | undefined,
): Disposable {
  return servingDht(async (stream, serve) => {
    for (;;) {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      const request = decodeKadMessage(frame, bounds);
      const honest = () => serveOne(frame, serve, stream);
      const reply = await (answer(request, honest) ?? honest());
      await stream.writeFrame(encodeKadMessage(reply));
    }
  });
}

/** Lets the relay serve one request of a stream; a reset passes on. */
async function serveOne(
  frame: Uint8Array,
  serve: (stream: PeerStream) => Promise<void>,
  stream: PeerStream,
): Promise<KadMessage> {
  let reply: KadMessage | undefined;
  let next: Uint8Array | undefined = frame;
  const facade = {
    readFrame: async () => {
      const one = next;
      next = undefined;
      return one;
    },
    writeFrame: async (bytes: Uint8Array) => {
      reply = decodeKadMessage(bytes, bounds);
    },
    reset: () => {},
  };
  await serve(facade as unknown as PeerStream);
  if (reply === undefined) {
    stream.reset();
    throw new TypeError('reset');
  }
  return reply;
}

/** Changes the reply to the frames of other relays. */
function answeringRpc(
  change: (reply: RelayReply, frame: Uint8Array) => RelayReply | Promise<RelayReply>,
): Disposable {
  return replace(
    RelayDispatcher.prototype,
    'answer',
    (original) =>
      async function (this: RelayDispatcher, frame, peer) {
        return await change(await original.call(this, frame, peer), frame);
      },
  );
}

/** Changes the response to the requests of a method. */
function responding(
  method: string,
  change: (response: JsonObject, params: JsonObject) => JsonObject,
): Disposable {
  return answeringRpc((reply, frame) => {
    const request = jsonOf(frame);
    if (request?.method !== method || reply.kind !== 'answer') return reply;
    const response = change(JSON.parse(reply.text), request.params as JsonObject);
    return { kind: 'answer', text: JSON.stringify(response) };
  });
}

function jsonOf(frame: Uint8Array): JsonObject | undefined {
  try {
    return JSON.parse(Buffer.from(frame).toString());
  } catch {
    return undefined;
  }
}

/** Changes the parameters of the requests of other relays before they are looked at. */
function requested(method: string, change: (params: JsonObject) => JsonObject): Disposable {
  return replace(
    RelayDispatcher.prototype,
    'answer',
    (original) =>
      async function (this: RelayDispatcher, frame, peer) {
        const request = jsonOf(frame);
        if (request?.method !== method) return await original.call(this, frame, peer);
        const changed = { ...request, params: change(request.params as JsonObject) };
        return await original.call(this, utf8(JSON.stringify(changed)), peer);
      },
  );
}

/** Changes what this relay makes of the answers to its own calls. */
function calling(
  method: string,
  change: (
    call: () => Promise<RelayAnswer>,
    request: { readonly relayId: string; readonly params: JsonObject },
    again: (params: JsonObject) => Promise<RelayAnswer>,
  ) => Promise<RelayAnswer>,
): Disposable {
  return replace(
    RpcClient.prototype,
    'call',
    (original) =>
      async function (this: RpcClient, relayId, called, params) {
        const again = (other: typeof params) => original.call(this, relayId, called, other);
        if (called !== method) return await again(params);
        const sent = parseJson(encodeResult(params)) as JsonObject;
        return await change(() => again(params), { relayId, params: sent }, again);
      },
  );
}

/** Admits relays that fail these checks alone. */
function admittingWithout(...checks: readonly PeerCheck[]): Disposable {
  const admitted = new Map<string, EligiblePeer>();
  return all(
    replace(
      Eligibility.prototype,
      'admit',
      (original) =>
        async function (this: Eligibility, remote, expected, signal) {
          try {
            return await original.call(this, remote, expected, signal);
          } catch (error) {
            if (!(error instanceof PeerRefusal) || !checks.includes(error.check)) throw error;
            const shown = peerOf(JSON.parse(remote.descriptor));
            const peer = { ...shown, relayId: expected.relayId ?? shown.relayId };
            admitted.set(peer.relayId, peer);
            return peer;
          }
        },
    ),
    replace(
      Eligibility.prototype,
      'find',
      (original) =>
        function (this: Eligibility, relayId) {
          return admitted.get(relayId) ?? original.call(this, relayId);
        },
    ),
  );
}

const { putValue, getValue } = kadTypes;
const keyOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');

/** Returns the first value of each key that a relay was sent, whatever came after. */
function servingFirstValues(): Disposable {
  const values = new Map<string, Uint8Array>();
  return answeringDht(({ type, key, record }) => {
    const name = keyOf(key);
    if (type === putValue && record?.value !== undefined && !values.has(name)) {
      values.set(name, record.value);
    }
    const value = type === getValue ? values.get(name) : undefined;
    if (key === undefined || value === undefined) return undefined;
    return Promise.resolve({ type, key, record: { key, value } });
  });
}

/** Remembers the first answer about each thing, and gives it for good. */
function answeringFromMemory(method: string): Disposable {
  const known = new Map<string, JsonValue>();
  return responding(method, (response, params) => {
    const name = canonicalJson(params);
    const first = known.get(name);
    if (first === undefined && response.result !== undefined) {
      known.set(name, response.result as JsonValue);
    }
    if (first === undefined) return response;
    return { jsonrpc: '2.0', id: response.id as JsonValue, result: first };
  });
}

const withoutMember = (name: string) => (params: JsonObject) => {
  const { [name]: _, ...others } = params;
  return others;
};

const accepted = (): RelayAnswer => ({
  kind: 'result',
  value: { status: 'target_accepted', accepted_at: Math.floor(Date.now() / 1_000) },
});

/** Passes on what a home relay answered, although it does not verify. */
function passingOn(method: 'device.state.resolve' | 'profile.resolve'): Disposable {
  let last: JsonValue = null;
  return all(
    calling(method, async (call) => {
      const answer = await call();
      if (answer.kind === 'result') last = answer.value;
      return answer;
    }),
    replace(
      Dispatcher.prototype,
      'answer',
      (original) =>
        async function (this: Dispatcher, request) {
          const answer = await original.call(this, request);
          if (answer.ok || request.method !== method || answer.error.code !== 'bad_gateway') {
            return answer;
          }
          return { ok: true, result: new JsonText(canonicalJson(last)) };
        },
    ),
  );
}

/** Believes that each hint comes from the home relay of its account. */
function believingHints({ context }: Relay): Disposable {
  return replace(
    RelayDispatcher.prototype,
    'answer',
    (original) =>
      async function (this: RelayDispatcher, frame, peer) {
        const request = jsonOf(frame);
        const { account } = (request?.params ?? {}) as JsonObject;
        if (request?.method !== 'device.status.changed' || typeof account !== 'string') {
          return await original.call(this, frame, peer);
        }
        const { clock, identity, storage } = context;
        const home = await storage.read((tx) => homeOf(tx, account, identity.relayId, clock.now()));
        const relayId = home.kind === 'elsewhere' ? home.relayId : peer.relayId;
        return await original.call(this, frame, { ...peer, relayId });
      },
  );
}

/** Every seeded fault. */
export const seededFaults: readonly SeededFault[] = [
  {
    fault: 'admits relays that the registry does not list',
    check: 'peer.admission/refused-unlisted',
    seed: () => admittingWithout('not_listed', 'registry_busy'),
  },
  {
    fault: 'admits suspended relays',
    check: 'peer.admission/refused-suspended',
    seed: () => admittingWithout('not_active', 'registry_busy'),
  },
  {
    fault: 'verifies no signature of a descriptor',
    check: 'peer.admission/refused-signature-altered',
    seed: () => admittingWithout('descriptor_signature'),
  },
  {
    fault: 'admits relays with an expired descriptor',
    check: 'peer.admission/refused-expired',
    seed: () => admittingWithout('descriptor_expired'),
  },
  {
    fault: 'does not compare the Peer ID of the handshake and of the descriptor',
    check: 'peer.admission/refused-descriptor-of-another-relay',
    seed: () => admittingWithout('peer_id_bound', 'peer_id_taken', 'peer_id_changed'),
  },
  {
    fault: 'keeps relays that were suspended',
    check: 'peer.admission/loses-suspended',
    seed: () => replace(PeerSet.prototype, 'drop', () => () => {}),
  },
  {
    fault: 'sends requests to a dialled relay with the descriptor of another one',
    check: 'peer.dial/refuses-the-descriptor-of-another-relay',
    seed: () => admittingWithout('relay_id_expected'),
  },
  {
    fault: 'echoes a route without storing it',
    check: 'dht.routes/put',
    seed: () =>
      answeringDht((request) => (request.type === putValue ? Promise.resolve(request) : undefined)),
  },
  {
    fault: 'accepts a route below the highest revision',
    check: 'dht.routes/put-lower',
    seed: () =>
      answeringDht((request, honest) =>
        request.type === putValue
          ? honest().then((reply) => ({ ...reply, record: request.record }))
          : undefined,
      ),
  },
  {
    fault: 'returns an expired route',
    check: 'dht.routes/expires',
    seed: servingFirstValues,
  },
  {
    fault: 'returns one of two routes with the same revision',
    check: 'dht.routes/put-conflict',
    seed: servingFirstValues,
  },
  {
    fault: 'answers GET_VALUE with a key that is too short',
    check: 'dht.messages/refused-get-with-31-bytes',
    seed: () =>
      answeringDht(({ type, key }) =>
        type === getValue && key?.length === 31 ? Promise.resolve({ type, key }) : undefined,
      ),
  },
  {
    fault: 'serves an account on after it has left',
    check: 'dht.routes/leave',
    seed: () => answeringFromMemory('device.status'),
  },
  {
    fault: 'answers device.status from stale rows',
    check: 'rpc.device.status/renewed',
    seed: () => answeringFromMemory('device.status'),
  },
  {
    fault: 'says that each device is active',
    check: 'rpc.device.status/inactive-removed',
    seed: () =>
      responding('device.status', (response) => ({
        ...response,
        result: { status: 'active', expires_at: 4_000_000_000 },
      })),
  },
  {
    fault: 'answers each request with the id 1',
    check: 'rpc.envelope/id-text',
    seed: () => responding('profile.resolve', (response) => ({ ...response, id: 1 })),
  },
  {
    fault: 'answers notifications',
    check: 'rpc.envelope/notification-known',
    seed: () =>
      answeringRpc((reply) => (reply.kind === 'none' ? { kind: 'answer', text: '{}' } : reply)),
  },
  {
    fault: 'answers frames that are no UTF-8',
    check: 'rpc.frames/no-utf8',
    seed: () =>
      answeringRpc((reply) => (reply.kind === 'reset' ? { kind: 'answer', text: '{}' } : reply)),
  },
  {
    fault: 'accepts a second request on a stream',
    check: 'rpc.frames/one-request',
    seed: () =>
      servingRpc(async (stream) => {
        while ((await stream.readFrame()) !== undefined) {
          await stream.writeFrame(utf8('{"jsonrpc":"2.0","id":1,"result":{}}'));
        }
      }),
  },
  {
    fault: 'answers a deliver without storing the message',
    check: 'rpc.message.deliver/accepts-by-grant',
    seed: () =>
      replace(
        RelayDispatcher.prototype,
        'answer',
        (original) =>
          async function (this: RelayDispatcher, frame, peer) {
            const request = jsonOf(frame);
            if (request?.method !== 'message.deliver') {
              return await original.call(this, frame, peer);
            }
            const accepted_at = Math.floor(Date.now() / 1_000);
            const result = { status: 'target_accepted', accepted_at };
            const response = { jsonrpc: '2.0', id: request.id, result };
            return { kind: 'answer', text: JSON.stringify(response) };
          },
      ),
  },
  {
    fault: 'looks only at the message ID of a repeat',
    check: 'rpc.message.deliver/conflict-an-unknown-member',
    seed: () => requested('message.deliver', withoutMember('future')),
  },
  {
    fault: 'falls back to the public profile if a credential is invalid',
    check: 'rpc.message.deliver/no-fallback',
    seed: () => requested('message.deliver', withoutMember('authorization')),
  },
  {
    fault: 'refuses above a quota with another error',
    check: 'rpc.limits/rate-limited',
    seed: () =>
      responding('device.status', (response) => {
        const { error } = response as { readonly error?: JsonObject };
        if (error?.code !== -32_030) return response;
        return { ...response, error: { ...error, code: -32_031 } };
      }),
  },
  {
    fault: 'forwards a state of a lower revision',
    check: 'source.device.state.resolve/refuses-lower-revision',
    seed: () => passingOn('device.state.resolve'),
  },
  {
    fault: 'forwards a profile that does not verify',
    check: 'source.profile.resolve/refuses-altered-profile',
    seed: () => passingOn('profile.resolve'),
  },
  {
    fault: 'opens a session by an answer without an end',
    check: 'source.device.status/no-session-active-without-end',
    seed: () =>
      calling('device.status', async (call) => {
        const answer = await call();
        if (answer.kind !== 'result') return answer;
        const value = { expires_at: 4_000_000_000, ...(answer.value as JsonObject) };
        return { ...answer, value };
      }),
  },
  {
    fault: 'opens a session that outlives the certificate',
    check: 'source.device.status/signs-in',
    seed: () =>
      calling('device.status', async (call) => {
        const answer = await call();
        if (answer.kind !== 'result') return answer;
        return { ...answer, value: { status: 'active', expires_at: 4_000_000_000 } };
      }),
  },
  {
    fault: 'ignores hints of the home relay',
    check: 'source.device.status/hint',
    seed: () => requested('device.status.changed', () => ({})),
  },
  {
    fault: 'believes hints of any relay',
    check: 'source.device.status/foreign-hint',
    seed: believingHints,
  },
  {
    fault: 'delivers twice',
    check: 'source.message.deliver/once',
    seed: () =>
      calling('message.deliver', async (call) => {
        await call();
        return await call();
      }),
  },
  {
    fault: 'changes the parameters when it repeats a delivery',
    check: 'source.message.deliver/retries-internal-error',
    seed: () => {
      const tried = new Set<string>();
      return calling('message.deliver', async (call, { params }, again) => {
        const text = canonicalJson(params);
        if (tried.has(text)) return await again(withoutMember('authorization')(params));
        tried.add(text);
        return await call();
      });
    },
  },
  {
    fault: 'takes a lost answer for an acceptance',
    check: 'source.message.deliver/retries-a-reset',
    seed: () =>
      calling('message.deliver', async (call) => {
        const answer = await call();
        return answer.kind === 'unknown' ? accepted() : answer;
      }),
  },
  {
    fault: 'accepts an answer with another id',
    check: 'source.message.deliver/retries-another-id',
    seed: () =>
      calling('message.deliver', async (call) => {
        const answer = await call();
        return answer.kind === 'invalid' ? accepted() : answer;
      }),
  },
  {
    fault: 'does not wait for retry_after',
    check: 'source.message.deliver/waits',
    seed: () =>
      calling('message.deliver', async (call) => {
        const answer = await call();
        return answer.kind === 'refused' ? { ...answer, retryAfter: 0 } : answer;
      }),
  },
  {
    fault: 'delivers to another relay although the first may have accepted',
    check: 'source.message.deliver/stays-after-unknown-outcome',
    seed: () =>
      calling('message.deliver', async (call) => {
        const answer = await call();
        if (answer.kind !== 'unknown') return answer;
        return { kind: 'refused', code: 'route_stale', message: '' };
      }),
  },
];
