/** Replaces what a relay makes of the DHT answers of others, and what it resolves for its clients. */
import type { PeerStream } from '@posthouse/peer';
import type { FinalRoute } from '@posthouse/protocol';
import {
  decodeKadMessage,
  encodeKadMessage,
  type KadMessage,
} from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { Dispatcher } from '../../../relay/src/dispatch/dispatcher.ts';
import { JsonText } from '../../../relay/src/dispatch/handler.ts';
import { PeerConnections } from '../../../relay/src/federation/connections.ts';
import { DhtRoutes } from '../../../relay/src/federation/dht/routes.ts';
import { all, replace } from './replace.ts';

const bounds = { peers: 100, addresses: 100 };

export interface WireChange {
  /** What is sent instead of a request. */
  readonly request?: (request: KadMessage) => KadMessage;
  /** What an answer is read as; gets the request before it was changed. */
  readonly reply?: (reply: KadMessage, request: KadMessage) => KadMessage;
}

/** Changes the relay's DHT requests and their answers on the wire. */
export function changingWire({
  request: changeRequest,
  reply: changeReply,
}: WireChange): Disposable {
  return replace(
    PeerConnections.prototype,
    'openStream',
    (original) =>
      async function (this: PeerConnections, relayId, protocol, signal) {
        const opened = await original.call(this, relayId, protocol, signal);
        if (!protocol.includes('/kad/')) return opened;
        let sent: KadMessage | undefined;
        const changed = {
          writeFrame: async (frame: Uint8Array) => {
            sent = decodeKadMessage(frame, bounds);
            const bytes =
              changeRequest === undefined ? frame : encodeKadMessage(changeRequest(sent));
            await opened.stream.writeFrame(bytes);
          },
          readFrame: async () => {
            const frame = await opened.stream.readFrame();
            if (frame === undefined || sent === undefined || changeReply === undefined)
              return frame;
            return encodeKadMessage(changeReply(decodeKadMessage(frame, bounds), sent));
          },
        };
        return { ...opened, stream: overriding(opened.stream, changed) };
      },
  );
}

/** Makes an object that has some other methods; those of the original have its private members. */
function overriding(stream: PeerStream, methods: Partial<PeerStream>): PeerStream {
  return new Proxy(stream, {
    get(target, name) {
      const value = Reflect.get(methods, name) ?? Reflect.get(target, name, target);
      return typeof value === 'function' && !(name in methods) ? value.bind(target) : value;
    },
  });
}

/** Changes what lookups find. */
export function finding(
  change: (routes: readonly FinalRoute[]) => readonly FinalRoute[],
): Disposable {
  return replace(
    DhtRoutes.prototype,
    'resolveRemote',
    (original) =>
      async function (this: DhtRoutes, ...args) {
        const found = await original.apply(this, args);
        return { ...found, routes: change(found.routes) };
      },
  );
}

type Answer = Awaited<ReturnType<Dispatcher['answer']>>;

/** Changes the answers to `account.route.resolve`; gets the routes that lookups found before. */
export function resolving(
  change: (answer: Answer, found: readonly FinalRoute[]) => Answer,
): Disposable {
  const found = new Map<string, readonly FinalRoute[]>();
  return all(
    finding((routes) => {
      const [first] = routes;
      if (first !== undefined) found.set(first.account, routes);
      return routes;
    }),
    replace(
      Dispatcher.prototype,
      'answer',
      (original) =>
        async function (this: Dispatcher, request) {
          const answer = await original.call(this, request);
          if (request.method !== 'account.route.resolve') return answer;
          const { account } = (await (request.query ?? request.params)()) as {
            readonly account?: string;
          };
          return change(answer, found.get(account ?? '') ?? []);
        },
    ),
  );
}

/** Resolves the first route that a lookup found, whatever the relay knows. */
export const resolvingFirstFound = () =>
  resolving((answer, [first]) =>
    first === undefined ? answer : { ok: true, result: new JsonText(canonicalJson(first)) },
  );
