/** `block`: the accounts, addresses and relays that the operator refuses (02 §18). */
import {
  AccountId,
  badRequest,
  ChannelId,
  ProtocolError,
  RelayId,
  Type,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import {
  addressToBlock,
  type Block,
  type BlockKind,
  blockAccount,
  blockAddress,
  blockChannel,
  isWide,
  networkOf,
  readBlocks,
  unblock,
} from '../../blocks/index.ts';
import { blockRelay, unblockRelay } from '../../federation/index.ts';
import { rejectFrom } from '../../registration/index.ts';
import { pageParams, readPage } from '../pages.ts';
import { defineVerb, type Verb } from '../verb.ts';

/** The end of the year 9999. */
const lastSecond = 253_402_300_799;

/** What is blocked: exactly one of them. */
const blocked = {
  account: Type.Optional(AccountId),
  address: Type.Optional(Type.String({ maxLength: 64 })),
  channel: Type.Optional(ChannelId),
  relay: Type.Optional(RelayId),
};

interface Named {
  readonly account?: string;
  readonly address?: string;
  readonly channel?: string;
  readonly relay?: string;
}

/** @throws ProtocolError `bad_request` unless one thing is named */
function named({ account, address, channel, relay }: Named): Pick<Block, 'kind' | 'id'> {
  const kinds: readonly (readonly [BlockKind, string | undefined])[] = [
    ['account', account],
    ['address', address],
    ['channel', channel],
    ['relay', relay],
  ];
  const given = kinds.flatMap(([kind, id]) => (id === undefined ? [] : [{ kind, id }]));
  if (given.length === 1 && given[0] !== undefined) return given[0];
  throw badRequest('', 'give one of account, address, channel and relay');
}

/** Names the block in the log line. */
const subject = (_: unknown, { kind, address, ...result }: JsonObject) =>
  kind === 'address' ? { address: String(address) } : `${kind} ${String(result[String(kind)])}`;

const changeOf = {
  account: blockAccount,
  address: blockAddress,
  channel: blockChannel,
  relay: blockRelay,
} as const;

const add = defineVerb({
  noun: 'block',
  name: 'add',
  description:
    'Blocks an account, an address (or network), a channel or a relay, until a time or until it is removed; is_new is false if it was. Requests of accounts that asked from a blocked address are removed (rejected). wide is needed for a network larger than a /8 of IPv4 or a /19 of IPv6.',
  params: Type.Object({
    ...blocked,
    reason: Type.Optional(Type.String()),
    until: Type.Optional(Type.Integer({ minimum: 1, maximum: lastSecond })),
    wide: Type.Optional(Type.Boolean()),
  }),
  changes: true,
  subject,
  run: async ({ storage, clock, config }, { reason = '', until, wide, ...names }) => {
    const { kind, id: text } = named(names);
    const { limits, trustedProxies } = config;
    const now = clock.now();
    if (Buffer.byteLength(reason) > limits.blockReason) {
      throw badRequest('reason', `over ${limits.blockReason} bytes: give a shorter one`);
    }
    if (until !== undefined && until <= now) throw badRequest('until', 'has passed');
    const id = kind === 'address' ? addressToBlock(text, trustedProxies) : text;
    if (kind === 'address' && wide !== true && isWide(id)) {
      throw badRequest('wide', `${id} has very many addresses: give it if all are meant`);
    }
    const block = changeOf[kind];
    const isNew = await block(storage, { id, reason, endsAt: until }, { now, limits });
    const rejected = kind === 'address' ? await rejectFrom(storage, networkOf(id).holds) : 0;
    return { kind, [kind]: id, is_new: isNew, ...(rejected > 0 && { rejected }) };
  },
});

const remove = defineVerb({
  noun: 'block',
  name: 'remove',
  description: 'Ends the block of an account, an address, a channel or a relay.',
  params: Type.Object(blocked),
  changes: true,
  subject,
  run: async ({ storage, clock }, names) => {
    const { kind, id: text } = named(names);
    // An address may have become a proxy's, or this machine's, since it was blocked.
    const id = kind === 'address' ? networkOf(text).network : text;
    const now = clock.now();
    const wasBlocked =
      kind === 'relay'
        ? await unblockRelay(storage, id, now)
        : await unblock(storage, { kind, id }, now);
    if (wasBlocked) return { kind, [kind]: id };
    throw new ProtocolError('not_found', `${kind} ${id} is not blocked: see posthouse block list`);
  },
});

const list = defineVerb({
  noun: 'block',
  name: 'list',
  description: 'Lists what is blocked, in the order of kind and ID.',
  params: Type.Object(pageParams),
  changes: false,
  run: ({ storage, clock }, params) =>
    readPage({
      params,
      start: ['', ''] as readonly [kind: string, id: string],
      read: ([kind, id], limit) =>
        storage.read((tx) => readBlocks(tx, clock.now(), { after: { kind, id }, limit })),
      positionOf: ({ kind, id }) => [kind, id] as const,
      wireOf,
    }),
});

function wireOf({ kind, id, reason, createdAt, endsAt }: Block) {
  const until = endsAt === undefined ? {} : { until: endsAt };
  return { kind, [kind]: id, reason, blocked_at: createdAt, ...until };
}

export const blockVerbs: readonly Verb[] = [add, list, remove];
