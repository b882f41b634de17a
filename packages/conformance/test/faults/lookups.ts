/** Faults in lookups of the relay DHT. */
import { ProtocolError } from '@posthouse/protocol';
import { type KadMessage, kadTypes, Lookup } from '@posthouse/protocol/federation';
import { SignatureVerifier } from '../../../relay/src/crypto/verifier.ts';
import { DhtClient } from '../../../relay/src/federation/dht/client.ts';
import { DhtRoutes } from '../../../relay/src/federation/dht/routes.ts';
import { Eligibility } from '../../../relay/src/federation/eligibility.ts';
import { PeerRefusal } from '../../../relay/src/federation/peer-refusal.ts';
import { admittingWithout } from './peers.ts';
import { changingWire, finding, resolving, resolvingFirstFound } from './questions.ts';
import { all, replace, type SeededFault } from './replace.ts';

const { getValue } = kadTypes;

const keyOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString('hex');

/** Changes the valid answers to the relay's GET_VALUE; gets the earlier ones with the same key. */
function answersToGet(
  change: (reply: KadMessage, earlier: readonly KadMessage[]) => KadMessage,
): Disposable {
  const answers = new Map<string, KadMessage[]>();
  return replace(
    DhtClient.prototype,
    'ask',
    (original) =>
      async function (this: DhtClient, relayId, request, signal) {
        const reply = await original.call(this, relayId, request, signal);
        if (reply === undefined || request.type !== getValue) return reply;
        const earlier = answers.get(keyOf(request.key)) ?? [];
        answers.set(keyOf(request.key), [...earlier, reply]);
        return change(reply, earlier);
      },
  );
}

const withoutRecord = ({ type, key, closerPeers }: KadMessage): KadMessage => ({
  ...{ type, key },
  ...(closerPeers && { closerPeers }),
});

/** Drops the records of a key once one answer had none, in whatever order the answers come. */
function concludingFromOneAnswer(): Disposable {
  const empty = new Map<string, PromiseWithResolvers<void>>();
  return replace(
    DhtClient.prototype,
    'ask',
    (original) =>
      async function (this: DhtClient, relayId, request, signal) {
        const reply = await original.call(this, relayId, request, signal);
        if (reply === undefined || request.type !== getValue) return reply;
        const key = keyOf(request.key);
        const answer = empty.get(key) ?? Promise.withResolvers<void>();
        empty.set(key, answer);
        if (reply.record === undefined) answer.resolve();
        await answer.promise;
        return withoutRecord(reply);
      },
  );
}

/** Verifies no signature of a route. */
const trustingRoutes = () =>
  replace(
    SignatureVerifier.prototype,
    'verifyOnce',
    (original) =>
      async function (this: SignatureVerifier, text, checks, what) {
        if (what !== 'route') await original.call(this, text, checks, what);
      },
  );

/** Uses routes to relays that are not active; their keys are unknown, so nothing verifies either. */
const trustingRelays = () =>
  all(
    trustingRoutes(),
    replace(
      Eligibility.prototype,
      'verifyRouteRelay',
      (original) =>
        async function (this: Eligibility, relayId, cause) {
          try {
            return await original.call(this, relayId, cause);
          } catch (error) {
            if (error instanceof PeerRefusal) return '';
            throw error;
          }
        },
    ),
  );

export const lookupFaults: readonly SeededFault[] = [
  {
    fault: 'concludes from one answer without a record that there is none',
    check: 'dht.lookup/past-an-answer-without-record',
    seed: concludingFromOneAnswer,
  },
  {
    fault: 'selects the lowest revision that it finds',
    check: 'dht.lookup/highest',
    seed: () => finding((routes) => routes.toSorted((a, b) => a.revision - b.revision).slice(0, 1)),
  },
  {
    fault: 'returns a found route below the highest revision that it verified',
    check: 'dht.lookup/lower-than-known',
    seed: resolvingFirstFound,
  },
  {
    fault: 'selects one of two contents of a revision by their arrival',
    check: 'dht.lookup/conflict',
    seed: () => finding((routes) => routes.slice(0, 1)),
  },
  {
    fault: 'compares a found route with no stored contents',
    check: 'dht.lookup/conflict-with-known',
    seed: resolvingFirstFound,
  },
  {
    fault: 'compares signatures in addition to contents',
    check: 'dht.lookup/same-contents',
    seed: () =>
      resolving((answer, found) =>
        found.length < 2
          ? answer
          : { ok: false, error: new ProtocolError('invalid_state', 'routes conflict') },
      ),
  },
  {
    fault: 'serves a found route past its end',
    check: 'dht.lookup/expires',
    seed: resolvingFirstFound,
  },
  {
    fault: 'serves what it found before a higher route came',
    check: 'dht.lookup/memory-before-cache',
    seed: resolvingFirstFound,
  },
  {
    fault: 'verifies no signature of a found route',
    check: 'dht.answers/drops-the-account-signature-altered',
    seed: trustingRoutes,
  },
  {
    fault: 'uses found routes that were signed for another network',
    check: 'dht.answers/drops-the-context-of-another-network',
    seed: trustingRoutes,
  },
  {
    fault: 'uses found routes to relays that the registry does not list',
    check: 'dht.answers/drops-an-unlisted-relay',
    seed: trustingRelays,
  },
  {
    fault: 'uses an answer with another key than it asked for',
    check: 'dht.answers/drops-an-answer-with-another-key',
    seed: () => changingWire({ reply: (reply, { key }) => ({ ...reply, key }) }),
  },
  {
    fault: 'uses an answer of another type than it asked for',
    check: 'dht.answers/drops-an-answer-with-another-type',
    seed: () => changingWire({ reply: (reply, { type }) => ({ ...reply, type }) }),
  },
  {
    fault: 'ends a lookup when one relay gives no answer',
    check: 'dht.answers/past-a-relay-that-resets-streams',
    seed: () =>
      replace(
        DhtRoutes.prototype,
        'resolveRemote',
        (original) =>
          async function (this: DhtRoutes, ...args) {
            const found = await original.apply(this, args);
            return found.missed.length === 0 ? found : { ...found, routes: [] };
          },
      ),
  },
  {
    fault: 'asks a relay that gives no answer again and again',
    check: 'dht.answers/past-a-relay-that-ends-streams',
    seed: () =>
      replace(
        DhtClient.prototype,
        'ask',
        (original) =>
          async function (this: DhtClient, relayId, request, signal) {
            for (let count = 0; count < 10; count += 1) {
              const reply = await original.call(this, relayId, request, signal);
              if (reply !== undefined) return reply;
              this.resume(relayId);
            }
            return undefined;
          },
      ),
  },
];

/** Faults that show in a network of many relays, which stays so for the rest of a run. */
export const candidateFaults: readonly SeededFault[] = [
  {
    fault: 'asks no candidates',
    check: 'dht.candidates/found',
    seed: () =>
      replace(
        Lookup.prototype,
        'answered',
        (original) =>
          function (this: Lookup, peer) {
            original.call(this, peer, []);
          },
      ),
  },
  {
    fault: 'ends a lookup with the first record',
    check: 'dht.candidates/to-the-last',
    seed: () =>
      answersToGet((reply, earlier) =>
        earlier.some(({ record }) => record !== undefined) ? withoutRecord(reply) : reply,
      ),
  },
  {
    fault: 'asks candidates that the registry does not list',
    check: 'dht.candidates/not-one-that-the-registry-does-not-list',
    seed: () => admittingWithout('not_listed', 'registry_busy'),
  },
  {
    fault: 'asks candidates that are suspended',
    check: 'dht.candidates/not-one-that-the-registry-lists-as-suspended',
    seed: () => admittingWithout('not_active', 'registry_busy'),
  },
  {
    fault: 'asks candidates with an expired descriptor',
    check: 'dht.candidates/not-one-that-shows-an-expired-descriptor',
    seed: () => admittingWithout('descriptor_expired'),
  },
  {
    fault: 'verifies no descriptor of a candidate',
    check: 'dht.candidates/not-one-that-shows-an-altered-descriptor',
    seed: () => admittingWithout('descriptor_signature'),
  },
];
