/** Faults in the publication of routes. */
import type { FinalRoute } from '@posthouse/protocol';
import { deriveRouteKey, type KadMessage, kadTypes } from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject, parseJson } from '@posthouse/protocol/json';
import type { Relay } from '@posthouse/relay';
import { Dispatcher } from '../../../relay/src/dispatch/dispatcher.ts';
import { DhtRoutes } from '../../../relay/src/federation/dht/routes.ts';
import { changingWire } from './questions.ts';
import { all, replace, type SeededFault } from './replace.ts';
import { answeringDht } from './streams.ts';

const { putValue, getValue } = kadTypes;

/** Changes how a committed route is sent to other relays. */
function replicating(
  change: (
    send: DhtRoutes['replicate'],
    args: Parameters<DhtRoutes['replicate']>,
    routes: DhtRoutes,
  ) => ReturnType<DhtRoutes['replicate']>,
): Disposable {
  return replace(
    DhtRoutes.prototype,
    'replicate',
    (original) =>
      async function (this: DhtRoutes, ...args) {
        return await change(original.bind(this), args, this);
      },
  );
}

const enough = { isEnough: true, reachedLeaving: true } as const;

/** Has the answers to PUT_VALUE read as echoes if they are of one kind. */
const takingForEcho = (isOfKind: (reply: KadMessage) => boolean) =>
  changingWire({
    reply: (reply, { type, record }) =>
      type === putValue && record !== undefined && isOfKind(reply) ? { ...reply, record } : reply,
  });

/** Shows a route to clients and relays only after its publication was answered. */
function committingLast({ context }: Relay): Disposable {
  const pending = new Set<string>();
  const { network } = context;
  const keyOf = (account: string) => Buffer.from(deriveRouteKey(network, account)).toString('hex');
  return all(
    replace(
      Dispatcher.prototype,
      'answer',
      (original) =>
        async function (this: Dispatcher, request) {
          if (request.method !== 'account.route.publish') return await original.call(this, request);
          const { account } = (await request.params()) as { readonly account: string };
          pending.add(keyOf(account));
          try {
            return await original.call(this, request);
          } finally {
            pending.delete(keyOf(account));
          }
        },
    ),
    answeringDht(({ type, key = new Uint8Array() }) =>
      type === getValue && pending.has(Buffer.from(key).toString('hex'))
        ? Promise.resolve({ type, key })
        : undefined,
    ),
  );
}

/** Sends the routes that it refuses to publish. */
function sendingRefused({ context }: Relay): Disposable {
  return replace(
    Dispatcher.prototype,
    'answer',
    (original) =>
      async function (this: Dispatcher, request) {
        const answer = await original.call(this, request);
        if (answer.ok || request.method !== 'account.route.publish') return answer;
        const route = {
          ...((await request.params()) as JsonObject),
          relay_signature: 'A'.repeat(86),
        };
        await context.routeDirectory.replicate(route as unknown as FinalRoute, undefined);
        return answer;
      },
  );
}

export const publicationFaults: readonly SeededFault[] = [
  {
    fault: 'sends its routes to no other relay',
    check: 'dht.publication/copies',
    seed: () => replicating(() => Promise.resolve(enough)),
  },
  {
    fault: 'sends a route without the members that it does not know',
    check: 'dht.publication/copies',
    seed: () =>
      changingWire({
        request: (request) => {
          const { key, value } = request.record ?? {};
          if (value === undefined) return request;
          const { future: _, ...known } = parseJson(Buffer.from(value).toString()) as JsonObject;
          const text = Buffer.from(canonicalJson(known));
          return { ...request, record: { ...(key && { key }), value: text } };
        },
        reply: (reply, { record }) => (reply.record && record ? { ...reply, record } : reply),
      }),
  },
  {
    fault: 'sends a route before it is committed',
    check: 'dht.publication/after-the-commit',
    seed: committingLast,
  },
  {
    fault: 'answers a client before another relay has stored the route',
    check: 'dht.publication/waits',
    seed: () =>
      replicating((send, args) => {
        void send(...args);
        return Promise.resolve(enough);
      }),
  },
  {
    fault: 'counts an answer without a record as a replica',
    check: 'dht.publication/missed-by-answers-without-a-record',
    seed: () => takingForEcho(({ record }) => record === undefined),
  },
  {
    fault: 'counts an altered record as a replica',
    check: 'dht.publication/missed-by-answers-with-an-altered-value',
    seed: () => takingForEcho(({ record }) => record !== undefined),
  },
  {
    fault: 'counts a relay that gave no answer as a replica',
    check: 'dht.publication/missed-by-answers-that-ends-the-stream',
    seed: () => replicating(async (send, args) => ({ ...(await send(...args)), isEnough: true })),
  },
  {
    fault: 'sends routes that it refuses to sign',
    check: 'dht.publication/nothing-refused',
    seed: sendingRefused,
  },
  {
    fault: 'sends its routes once, and not again',
    check: 'dht.republication/again',
    seed: () =>
      replicating((send, args) =>
        args[2] === undefined ? send(...args) : Promise.resolve(enough),
      ),
  },
  {
    fault: 'publishes routes although its own record is suspended',
    check: 'dht.publication/not-while-suspended',
    seed: ({ context }) =>
      replace(context.registryStatus, 'isActive', () => () => Promise.resolve(true)),
  },
];

/** Faults that show in a network of many relays, which stays so for the rest of a run. */
export const distanceFaults: readonly SeededFault[] = [
  {
    fault: 'sends a route to relays that are far from its key',
    check: 'dht.publication/nearest',
    seed: ({ context }) =>
      replicating((send, [route, leaving], { table }) => {
        const near = table.closest(deriveRouteKey(context.network, route.account), 100);
        return send(
          route,
          leaving,
          near.slice(-10).map(({ relayId }) => relayId),
        );
      }),
  },
  {
    fault: 'does not send a route to the relay that the account leaves',
    check: 'dht.publication/to-the-relay-left',
    seed: () => replicating((send, [route, , nearest]) => send(route, undefined, nearest)),
  },
];
