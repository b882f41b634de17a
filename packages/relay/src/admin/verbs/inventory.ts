/** `list` and `show` of accounts, groups and channels, and the relay's `stats`. */
import { AccountId, ChannelId, GroupId, ProtocolError, Type } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { Storage } from '../../storage/types.ts';
import { devicesOf } from '../inventory/devices.ts';
import { listAccounts, listChannels, listGroups, type Owner } from '../inventory/owners.ts';
import { type Amount, amountsOf, type OwnerKind } from '../inventory/records.ts';
import { step } from '../inventory/scan.ts';
import { mostTop, readTotals } from '../inventory/totals.ts';
import { defineVerb, type Verb, type VerbTools } from '../verb.ts';

/** Items of a page, and records that are added up for one, unless its first item has more. */
const maxItemsOfPage = 100;
const maxRecordsOfPage = 20_000;
const secondsOfDay = 86_400;
/** Seconds for which totals are answered again. */
const cachedFor = 10;

const lists = { account: listAccounts, group: listGroups, channel: listChannels } as const;
const ids = { account: AccountId, group: GroupId, channel: ChannelId } as const;
/** The member that has the ID, in parameters and items. */
const idMembers = { account: 'account', group: 'group_id', channel: 'channel_id' } as const;

function listOf(kind: OwnerKind): Verb {
  return defineVerb({
    noun: kind,
    name: 'list',
    description: `Lists the ${kind}s with what they have stored, in the order of their IDs.`,
    params: Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxItemsOfPage })),
      cursor: Type.Optional(ids[kind]),
    }),
    changes: false,
    async run(tools, { limit = maxItemsOfPage, cursor = '' }) {
      const { storage } = tools;
      const found = await storage.read((tx) => lists[kind](tx, { from: cursor, limit: limit + 1 }));
      const page = found.slice(0, limit);
      const { amounts, until } = await amountsOfPage(tools, kind, page);
      const shown = page.filter(({ id }) => until === undefined || id < until);
      const items = shown.map(({ id, wire }) => ({ ...wire, ...amountWire(amounts.get(id)) }));
      const next = found[shown.length]?.id;
      return next === undefined ? { items } : { items, next };
    },
  });
}

/** Adds up the records of a page; those from the owner `until` on are not added up. */
async function amountsOfPage(
  { storage, clock }: VerbTools,
  kind: OwnerKind,
  page: readonly Owner[],
): Promise<{ readonly amounts: ReadonlyMap<string, Amount>; readonly until?: string }> {
  const amounts = new Map<string, Amount>();
  const [from = '', last = ''] = [page[0]?.id, page.at(-1)?.id];
  if (page.length === 0) return { amounts };
  let records = 0;
  let until: string | undefined;
  await amountsOf(storage, kind, { since: clock.now() - secondsOfDay, from }, (amount) => {
    if (amount.owner > last) return false;
    amounts.set(amount.owner, amount);
    records += amount.records;
    if (records < maxRecordsOfPage) return true;
    until = page.find(({ id }) => id > amount.owner)?.id;
    return false;
  });
  return until === undefined ? { amounts } : { amounts, until };
}

function amountWire(amount: Amount | undefined): JsonObject {
  const { records = 0, bytes = 0, recent = 0 } = amount ?? {};
  const { oldest = null, newest = null } = amount ?? {};
  return { records, bytes, last_day_bytes: recent, oldest, newest };
}

function showOf(kind: OwnerKind): Verb {
  const member = idMembers[kind];
  return defineVerb({
    noun: kind,
    name: 'show',
    description: `Shows one ${kind} with what it has stored.`,
    params: Type.Object({ [member]: ids[kind] }),
    changes: false,
    async run(tools, params) {
      const id = String((params as JsonObject)[member]);
      const { storage } = tools;
      const [found] = await storage.read((tx) => lists[kind](tx, { from: id, limit: 1 }));
      if (found?.id !== id) {
        throw new ProtocolError(
          'not_found',
          `there is no such ${kind} here: see posthouse ${kind} list`,
        );
      }
      const { amounts } = await amountsOfPage(tools, kind, [found]);
      const more = kind === 'account' ? await storage.read((tx) => devicesOf(tx, id)) : {};
      return { ...found.wire, ...amountWire(amounts.get(id)), ...more };
    },
  });
}

/** Totals that were read last. */
interface Totals {
  /** When they were complete, Unix seconds; `undefined` while they are being read. */
  at: number | undefined;
  readonly found: Promise<JsonObject>;
  /** Who wants to know how far they are. */
  readonly listeners: Set<NonNullable<VerbTools['progress']>>;
}

/** Of each database: reading them takes long on a large one. */
const totals = new WeakMap<object, Totals>();

function totalsOf({ storage, clock, progress, signal }: VerbTools): Promise<JsonObject> {
  const last = totals.get(storage);
  const isOld = last?.at !== undefined && Math.abs(clock.now() - last.at) >= cachedFor;
  if (last !== undefined && !isOld) {
    if (progress !== undefined && last.at === undefined) last.listeners.add(progress);
    return last.found;
  }
  const listeners = new Set(progress === undefined ? [] : [progress]);
  let rows = 0;
  const read: Storage['read'] = async (work) => {
    signal?.throwIfAborted();
    rows += step;
    const state = { step: 'reading rows', done: rows, total: undefined };
    for (const listener of listeners) listener(state);
    return await storage.read(work);
  };
  const source = { read, space: () => storage.space() };
  const next: Totals = { at: undefined, found: readTotals(source, clock.now()), listeners };
  totals.set(storage, next);
  next.found.then(
    () => {
      next.at = clock.now();
      listeners.clear();
    },
    () => totals.delete(storage),
  );
  return next.found;
}

const stats = defineVerb({
  noun: 'relay',
  name: 'stats',
  description: 'Counts what the relay holds: accounts, groups, channels, bytes, growth, queue.',
  params: Type.Object({ top: Type.Optional(Type.Integer({ minimum: 0, maximum: mostTop })) }),
  changes: false,
  async run(tools, { top = 20 }) {
    const found = await totalsOf(tools);
    const largest = found.top as Record<string, JsonObject[]>;
    const cut = Object.entries(largest).map(([kind, owners]) => [kind, owners.slice(0, top)]);
    return { ...found, top: Object.fromEntries(cut) };
  },
});

export const inventoryVerbs: readonly Verb[] = [
  stats,
  ...(['account', 'group', 'channel'] as const).flatMap((kind) => [listOf(kind), showOf(kind)]),
];
