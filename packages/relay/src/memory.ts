/** What the process may use, and what each kind of memory takes at the most by its limits. */
import { totalmem } from 'node:os';
import { limits as protocolLimits } from '@posthouse/protocol';
import { lowerDependent } from './limit-rules.ts';
import type { RelayLimits } from './limits.ts';

/** One kind of memory. */
export interface MemoryKind {
  readonly name: string;
  /** Bytes at the most. */
  readonly bytes: number;
  /** The limits that it grows with. */
  readonly limits: readonly (keyof RelayLimits)[];
}

/**
 * Bytes of one entry of each kind, measured or rounded up. A connection is an idle WebSocket over
 * TLS that has made a call.
 */
const bytesOf = {
  connection: 69_632,
  peerConnection: 65_536,
  subscription: 512,
  allowance: 200,
  session: 1_024,
  key: 2_048,
  verifiedText: 160,
  routeLookup: 512,
  relay: 2_560,
  relayQuery: 262_144,
  /** The relay before it serves, and the caches of its database. */
  program: 251_658_240,
} as const;
/** A descriptor is held as text and as objects. */
const formsOfDescriptor = 3;
/** Bytes that wait for a client are held once more by TLS. */
const formsOfAnswer = 2;
/** An answer with records is held as bytes, as text and as what it becomes: 19 times, measured. */
const formsOfList = 20;
/** Kinds of allowance: calls and bytes of accounts and addresses, lookups, queries of relays. */
const kindsOfAllowance = 9;

/** Returns the kinds of memory with the most that each can take. */
export function memoryKinds(limits: RelayLimits): MemoryKind[] {
  const delivery = protocolLimits.envelopeBytes + limits.credentialBytes;
  const kind = (name: string, bytes: number, ...of: (keyof RelayLimits)[]): MemoryKind => ({
    ...{ name, bytes, limits: of },
  });
  return [
    kind('the program and its database', bytesOf.program),
    kind('requests, and what is read', limits.receivedBytes, 'receivedBytes'),
    kind('bytes waiting to be sent', formsOfAnswer * limits.waitingBytes, 'waitingBytes'),
    kind('bytes of other relays', limits.peerBytes, 'peerBytes'),
    kind('connections', bytesOf.connection * limits.connections, 'connections'),
    kind(
      'connections with other relays',
      bytesOf.peerConnection * limits.peerConnections,
      'peerConnections',
    ),
    kind('subscriptions', 2 * bytesOf.subscription * limits.subscriptions, 'subscriptions'),
    kind(
      'allowances',
      kindsOfAllowance * bytesOf.allowance * limits.rememberedCallers,
      'rememberedCallers',
    ),
    kind('cached sessions', bytesOf.session * limits.cachedSessions, 'cachedSessions'),
    kind('facts of accounts', limits.accountFactsBytes, 'accountFactsBytes'),
    kind('cached keys', bytesOf.key * limits.cachedKeys, 'cachedKeys'),
    kind('verified texts', bytesOf.verifiedText * limits.verifiedTexts, 'verifiedTexts'),
    kind(
      'route lookups',
      bytesOf.routeLookup * limits.rememberedRouteLookups,
      'rememberedRouteLookups',
    ),
    kind(
      'descriptors',
      formsOfDescriptor * limits.federationDescriptorBytes * limits.federationDescriptors,
      ...(['federationDescriptors', 'federationDescriptorBytes'] as const),
    ),
    kind(
      'relays of the registry',
      bytesOf.relay * limits.federationRegistryRelays,
      'federationRegistryRelays',
    ),
    kind(
      'an answer with the list of the registry',
      formsOfList * limits.federationRegistryBytes,
      'federationRegistryBytes',
    ),
    kind('deliveries', delivery * limits.deliveryConcurrency, 'deliveryConcurrency'),
    kind('queries to relays', bytesOf.relayQuery * limits.relayQueries, 'relayQueries'),
  ];
}

/** Bytes that the process may have: of its control group if that has a limit, or of the machine. */
export function processMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}

/** Returns `memory` of the limits, or its default for a process that may have so many bytes. */
function allowedMemory({ memory }: RelayLimits, available: number): number {
  return memory === 0 ? Math.floor(available / 2) : memory;
}

const sumOf = (kinds: readonly MemoryKind[]) => kinds.reduce((sum, { bytes }) => sum + bytes, 0);

/** Limits that are lowered to fit, each with the least that it is lowered to. */
const lowered: Readonly<Partial<Record<keyof RelayLimits, number>>> = {
  connections: 1_000,
  strangerConnections: 800,
  receivedBytes: 16_777_216,
  receivedBytesOfStrangers: 8_388_608,
  waitingBytes: 16_777_216,
  waitingBytesOfStrangers: 8_388_608,
  peerBytes: 33_554_432,
  peerConnections: 128,
  subscriptions: 5_000,
  subscriptionsPerAccount: 1_000,
  rememberedCallers: 5_000,
  cachedSessions: 1_000,
  accountFactsBytes: 1_048_576,
  cachedKeys: 1_000,
  verifiedTexts: 1_000,
  rememberedRouteLookups: 10_000,
  federationRegistryRelays: 2_000,
  federationRegistryBytes: 1_048_576,
  federationDescriptors: 200,
  federationPeers: 100,
  deliveryConcurrency: 64,
  relayQueries: 64,
};

/**
 * Lowers limits that the operator has not set, all in the same ratio, until the totals fit `memory`,
 * and those that must not be larger than one of them.
 *
 * @param options.available bytes that the process may have
 * @param options.isSet whether the operator has set a limit
 * @returns the lowered limits
 */
export function fitMemory(
  limits: RelayLimits,
  options: { readonly available: number; readonly isSet: (name: string) => boolean },
): Partial<RelayLimits> {
  const allowed = allowedMemory(limits, options.available);
  if (sumOf(memoryKinds(limits)) <= allowed) return {};
  const free = Object.entries(lowered).filter(([name]) => !options.isSet(name));
  const at = (ratio: number): Partial<RelayLimits> =>
    Object.fromEntries(
      free.map(([name, least]) => {
        const value = limits[name as keyof RelayLimits];
        return [name, Math.min(value, Math.max(least, Math.floor(value * ratio)))];
      }),
    );
  // The largest ratio that fits; sums grow with it, but not evenly, because of the least values.
  let [low, high] = [0, 1];
  for (let step = 0; step < 20; step += 1) {
    const middle = (low + high) / 2;
    if (sumOf(memoryKinds({ ...limits, ...at(middle) })) <= allowed) low = middle;
    else high = middle;
  }
  const fitted = at(low);
  return lowerDependent(limits, fitted, options.isSet);
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 1_048_576)} MiB`;

/**
 * Checks that the totals of all kinds of memory fit `memory`.
 *
 * @param available bytes that the process may have
 * @returns a sentence that names the sum and the largest kinds, if they do not fit
 */
export function checkMemory(limits: RelayLimits, available: number): string[] {
  const allowed = allowedMemory(limits, available);
  const kinds = memoryKinds(limits);
  const sum = sumOf(kinds);
  if (sum <= allowed) return [];
  const largest = kinds
    .filter((kind) => kind.limits.length > 0)
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, 4)
    .map((kind) => `${kind.name} ${mebibytes(kind.bytes)} (${kind.limits.join(', ')})`);
  const whose = limits.memory === 0 ? `half of the ${mebibytes(available)} of the process` : 'set';
  return [
    `limits.memory: the limits permit ${mebibytes(sum)} in all, more than ${mebibytes(allowed)} ` +
      `(${whose}). The largest are ${largest.join(', ')}: lower them, or set limits.memory`,
  ];
}
