/** Each limit of what a relay remembers is that of its own memory: the oldest is forgotten above it. */
import { accountSigner, deriveRelayId, type RelayEntry, signDescriptor } from '@posthouse/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RelayContext } from '../src/context.ts';
import { Descriptors } from '../src/federation/descriptors.ts';
import { KeptRegistry } from '../src/federation/index.ts';
import { defaultLimits } from '../src/limits.ts';
import { secretHash } from '../src/sessions/secrets.ts';
import { SessionCache } from '../src/sessions/session-cache.ts';
import { insertSession } from '../src/sessions/session-store.ts';
import type { StorageFaults } from '../src/storage/types.ts';
import { peerText } from './federation/remote-relay.ts';
import { ManualClock } from './support/clock.ts';
import { RelayData } from './support/engine.ts';
import {
  defaultRelay,
  network,
  openModules,
  partsOfOneRelay,
  relayKeys,
} from './support/modules.ts';

/** No two are the same, so that each is only found where it counts. */
const limits = {
  federationUnknownRelays: 2,
  federationDescriptors: 3,
  rememberedRouteLookups: 4,
  cachedSessions: 5,
};
/** What each memory is given, oldest first: more than the largest limit. */
const given = Array.from({ length: 8 }, (_, index) => index);
const newestFirst = given.toReversed();

let parts: AsyncDisposableStack;
let faults: StorageFaults;
let context: RelayContext;

beforeEach(async () => {
  parts = new AsyncDisposableStack();
  faults = {};
  const data = parts.use(await RelayData.withSchema());
  const storage = parts.use(await data.open(faults));
  // Registry reads are not to be refused for their rate.
  const all = { ...defaultLimits, ...limits, federationLookupRate: 1_000 };
  const clock = new ManualClock();
  const opened = { storage, clock, limits: all, ...partsOfOneRelay() };
  context = openModules(opened, relayKeys(defaultRelay)).context;
});
afterEach(() => parts.disposeAsync());

/** Returns how many of the newest are found without a read of their source. */
async function foundInMemory(find: (one: number) => Promise<unknown>, reads: () => number) {
  let found = 0;
  for (const one of newestFirst) {
    const before = reads();
    await find(one);
    if (reads() === before) found += 1;
  }
  return found;
}

async function unknownRelays(): Promise<number> {
  let reads = 0;
  const source = {
    getRelay: async () => {
      reads += 1;
      return undefined;
    },
    listRelays: async function* () {},
  };
  using registry = new KeptRegistry(source, context);
  let stranger = 0;
  const ask = (one: number) => {
    stranger += 1;
    return registry.current(`0x${`${one}`.repeat(40)}`, `192.0.2.${stranger}`);
  };
  for (const one of given) await ask(one);
  return await foundInMemory(ask, () => reads);
}

/** Descriptors that handshakes proved. */
async function offered() {
  const descriptors = parts.use(new Descriptors(context, {} as never));
  const entries: RelayEntry[] = [];
  for (const one of given) {
    const signer = accountSigner(network, new Uint8Array(32).fill(one + 1));
    const relay_id = deriveRelayId(network, signer.publicKey);
    const endpoint = `https://relay${one}.example/svc/v1`;
    const entry = { relay_id, endpoint, status: 'active', updated_at: 1 } as const;
    entries.push(entry);
    const address = `/ip4/192.0.2.1/tcp/4201/p2p/${peerText(one + 1)}`;
    const fields = { endpoints: [endpoint, address], expires_at: context.clock.now() + 86_400 };
    await descriptors.offer(entry, await signDescriptor(network, signer, fields));
  }
  return { descriptors, entryOf: (one: number) => entries[one] as RelayEntry };
}

async function knownDescriptors(): Promise<number> {
  const { descriptors, entryOf } = await offered();
  let statements = 0;
  faults.beforeStatement = () => {
    statements += 1;
  };
  const find = async (one: number) => expect(await descriptors.find(entryOf(one))).toBeDefined();
  return await foundInMemory(find, () => statements);
}

async function attemptsForDescriptors(): Promise<number> {
  const { descriptors, entryOf } = await offered();
  return given.filter((one) => descriptors.dueAt(entryOf(one)) > 0).length;
}

async function routeLookups(): Promise<number> {
  const { routeLookups: lookups } = context;
  const home = { kind: 'unknown' } as const;
  const lookUp = async () => ({ home, hasFound: false, missed: [], claimed: [] }) as never;
  for (const one of given) await lookups.run(`account ${one}`, { asker: undefined, lookUp });
  return given.filter((one) => lookups.isFresh(`account ${one}`, home)).length;
}

async function sessions(): Promise<number> {
  const origin = 'https://relay.example';
  const { clock, storage } = context;
  using cache = new SessionCache(context);
  for (const one of given) {
    const id = secretHash(`token${one}`);
    const whose = { account: `account ${one}`, deviceId: 'phone', mode: 'device' } as const;
    const session = { id, ...whose, expiresAt: clock.now() + 1_000 };
    await storage.write('test', (tx) => insertSession(tx, { session, origin }, clock.now()));
    expect(await cache.find(`token${one}`, origin)).toBeDefined();
  }
  return given.filter((one) => cache.isKnown(`token${one}`)).length;
}

test.each([
  ['federationUnknownRelays', 'relays that the registry does not list', unknownRelays],
  ['federationDescriptors', 'descriptors', knownDescriptors],
  ['federationDescriptors', 'attempts to fetch them', attemptsForDescriptors],
  ['rememberedRouteLookups', 'lookups of routes', routeLookups],
  ['cachedSessions', 'sessions', sessions],
] as const)('%s: of %s the newest are remembered, as many as that', async (name, _, remembered) => {
  expect(await remembered()).toBe(limits[name]);
});
