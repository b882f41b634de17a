/** `peer`: other relays, their state, why they fail, and the mail that waits for them. */
import { ProtocolError, RelayId, Type } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { retryRelay } from '../../federation/index.ts';
import { peerWire, readPeers, unlocatedWire } from '../inventory/peers.ts';
import { defineVerb, type Verb } from '../verb.ts';

/** Items of a page: each has a descriptor to be read. */
const maxPeersOfPage = 100;

const list = defineVerb({
  noun: 'peer',
  name: 'list',
  description:
    'Lists other relays in the order of their IDs; `unlocated` is mail whose relay is not known. Mail is counted up to 500 messages for each relay; if there are more, `mail_more` is true and `mail_oldest` is the oldest of those.',
  params: Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxPeersOfPage })),
    cursor: Type.Optional(RelayId),
  }),
  changes: false,
  async run({ storage, clock, config }, { limit = maxPeersOfPage, cursor = '' }) {
    const { blockedRelays } = config.limits;
    const found = await readPeers(storage, {
      ...{ now: clock.now(), blockedRelays, from: cursor, limit: limit + 1 },
    });
    const items = found.peers.slice(0, limit).map(peerWire);
    const unlocated = unlocatedWire(found.unlocated);
    const answer: JsonObject = { items, processes: found.processes, unlocated };
    const next = found.peers[limit]?.relayId;
    return next === undefined ? answer : { ...answer, next };
  },
});

const retry = defineVerb({
  noun: 'peer',
  name: 'retry',
  description: 'Tries a failing relay again now, not at its next try.',
  params: Type.Object({ relay_id: RelayId }),
  changes: true,
  subject: ({ relay_id }, { is_retried }) => (is_retried === true ? relay_id : undefined),
  async run({ storage, clock }, { relay_id }) {
    const result = await retryRelay(storage, relay_id, clock.now());
    switch (result) {
      case 'not_known':
        throw new ProtocolError('not_found', `relay ${relay_id} is not known: see posthouse peers`);
      case 'blocked':
        throw new ProtocolError(
          'state_conflict',
          `relay ${relay_id} is blocked: end that with posthouse block remove`,
        );
      default:
        return { relay_id, is_retried: result === 'retried' };
    }
  },
});

export const peerVerbs: readonly Verb[] = [list, retry];
