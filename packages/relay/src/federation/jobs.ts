/** The jobs that check again whether admitted relays are eligible (07 §B5). */
import type { RelayEntry } from '@posthouse/protocol';
import { ownRoutesJobName } from '../accounts/index.ts';
import type { Job, RelayContext } from '../context.ts';
import { ownRecordNotActive } from '../observability/events.ts';
import { readBlocked } from './block-store.ts';
import type { Descriptors } from './descriptors.ts';
import { descriptorsJobName, type Eligibility, type EligibilityParts } from './eligibility.ts';
import { PeerRefusal } from './peer-refusal.ts';
import type { DropReason } from './peer-set.ts';
import { peersJobName } from './peers-job.ts';
import type { KeptRegistry } from './registry/kept-registry.ts';
import { deleteUnlisted, knownRelays, storeRecords } from './store.ts';
import type { EligiblePeer } from './verify-descriptor.ts';

/** Woken when the registry file changed. */
const registryJobName = 'federation.registry';
/** Woken when the operator's blocks changed. */
export const changesJobName = 'federation.changes';

/** Relays stored in one transaction. */
const batchSize = 200;

/** Descriptors that the job fetches at once. */
const fetchesAtOnce = 4;

export interface JobOptions extends EligibilityParts {
  readonly eligibility: Eligibility;
  /** Seconds that admitted relays stay while the registry cannot be read. */
  readonly registryGrace: number;
}

/** Makes the jobs of the federation. */
export function federationJobs(options: JobOptions): Job[] {
  return [registryJob(options), changesJob(options), descriptorsJob(options)];
}

/**
 * Makes the job of a relay without other relays: it reads a registry file that has changed, so that one
 * that breaks is in health, metrics and log.
 */
export function registryFileJob(registry: KeptRegistry): Job {
  return {
    name: 'registry.file',
    async run({ clock, limits }) {
      if (registry.isFile && (await registry.isChanged())) await registry.refresh();
      return clock.now() + limits.federationBlockCheck;
    },
  };
}

/**
 * Looks every few seconds for what an operator changed: drops relays that were blocked, and has a
 * registry file read that has changed.
 */
function changesJob({ registry, peers }: Pick<JobOptions, 'registry' | 'peers'>): Job {
  return {
    name: changesJobName,
    retryAtMost: 2,
    async run({ clock, jobs, limits, storage }) {
      if (await registry.isChanged()) jobs.wake(registryJobName);
      const blocked = await storage.read((tx) => readBlocked(tx, clock.now()));
      for (const relayId of blocked) peers.drop(relayId, 'blocked');
      return clock.now() + limits.federationBlockCheck;
    },
  };
}

/**
 * Reads the registry at intervals and drops relays that are no longer listed as active, or that the
 * operator blocked.
 */
function registryJob({ registry, peers, registryGrace }: JobOptions): Job {
  let dueAt = 0;
  let failures = 0;
  let wasActive = true;
  return {
    name: registryJobName,
    async run(context) {
      const { clock, limits, random, identity, jobs, storage } = context;
      const now = clock.now();
      // A due time that lies further ahead than an interval is from before the clock was set back.
      const isDue = now >= dueAt || dueAt - now > 2 * limits.federationRegistryRefresh;
      const before = new Set(registry.activeRelays());
      // A file costs little.
      const isRead = (isDue || registry.isFile) && (await registry.refresh());
      const isNew = (relayId: string) => !before.has(relayId);
      if (isRead && registry.activeRelays().some(isNew)) {
        jobs.wake(peersJobName);
        // After a start, before the first reading, no other relay could be asked for own accounts.
        jobs.wake(ownRoutesJobName);
      }
      if (isDue) {
        failures = isRead ? 0 : failures + 1;
        dueAt = now + intervalAfter(failures, limits, random);
      }
      if (isRead) {
        const status = registry.peek(identity.relayId)?.status ?? 'not listed';
        if (wasActive && status !== 'active') ownRecordNotActive(context, status);
        wasActive = status === 'active';
      }
      // First what needs no storage: a database out of reach must not keep a suspended relay in.
      for (const peer of peers.entries()) {
        const reason = await dropReason(peer, { registry, peers, registryGrace });
        if (reason !== undefined) peers.drop(peer.relayId, reason);
      }
      const blocked = await storage.read((tx) => readBlocked(tx, clock.now()));
      for (const relayId of blocked) peers.drop(relayId, 'blocked');
      if (isRead) await store(context, registry, now);
      return Math.min(dueAt, now + limits.federationRegistryCheck);
    },
  };
}

/** Seconds to the next reading: an interval, up to a fifth later; sooner after failures. */
function intervalAfter(
  failures: number,
  limits: RelayContext['limits'],
  random: RelayContext['random'],
): number {
  const { federationRegistryRetry: first, federationRegistryRefresh: most } = limits;
  const seconds = failures === 0 ? most : Math.min(most, first * 2 ** Math.min(failures - 1, 20));
  const [chance = 0] = random(1);
  return Math.round(seconds * (1 + chance / 255 / 5));
}

/** Stores the last reading, and deletes the relays that it no longer has. */
async function store(
  { storage }: Pick<RelayContext, 'storage'>,
  registry: KeptRegistry,
  seenAt: number,
): Promise<void> {
  const entries = registry.entries();
  for (let start = 0; start < entries.length; start += batchSize) {
    const batch = entries.slice(start, start + batchSize);
    await storage.write(knownRelays, (tx) => storeRecords(tx, batch, seenAt));
  }
  if (registry.isComplete) await storage.write(knownRelays, (tx) => deleteUnlisted(tx, seenAt));
}

/** Returns why an admitted relay is no longer eligible, or `undefined`. */
async function dropReason(
  peer: EligiblePeer,
  { registry, peers, registryGrace }: Pick<JobOptions, 'registry' | 'peers' | 'registryGrace'>,
): Promise<DropReason | undefined> {
  const { relayId } = peer;
  if (!peers.isCurrent(peer)) return 'descriptor_expired';
  const entry = await latestRecord(registry, relayId);
  const age = registry.ageOf(relayId);
  // A clock that was set back tells nothing of the age; the next reading does.
  if (Number.isFinite(age) && age >= registryGrace) return 'registry_unavailable';
  return entry?.status === 'active' ? undefined : 'not_active';
}

/** Returns the record of an admitted relay; reads it if the reading of the registry lacks it. */
async function latestRecord(
  registry: KeptRegistry,
  relayId: string,
): Promise<RelayEntry | undefined> {
  const known = registry.peek(relayId);
  if (registry.isComplete) return known;
  try {
    return await registry.current(relayId);
  } catch (error) {
    // The last answer serves until the grace period is over.
    if (error instanceof PeerRefusal) return known;
    throw error;
  }
}

/** Fetches the descriptors of admitted relays again, and drops relays whose own is not valid. */
function descriptorsJob({ registry, descriptors, peers, eligibility }: JobOptions): Job {
  return {
    name: descriptorsJobName,
    async run({ clock }, signal) {
      const now = clock.now();
      const due: RelayEntry[] = [];
      for (const peer of peers.entries()) {
        const entry = registry.peek(peer.relayId);
        if (!peers.isCurrent(peer)) peers.drop(peer.relayId, 'descriptor_expired');
        else if (entry !== undefined && descriptors.dueAt(entry) <= now) due.push(entry);
      }
      for (let start = 0; start < due.length && !signal.aborted; start += fetchesAtOnce) {
        const batch = due.slice(start, start + fetchesAtOnce);
        await Promise.all(batch.map((entry) => fetchAgain(descriptors, eligibility, entry)));
      }
      const deadlines = peers.entries().map(({ relayId, descriptor }) => {
        const entry = registry.peek(relayId);
        const dueAt = entry === undefined ? descriptor.expires_at : descriptors.dueAt(entry);
        return Math.min(dueAt, descriptor.expires_at);
      });
      if (deadlines.length === 0) return undefined;
      // A fetch that found too many others under way is tried again, not at once.
      return Math.max(now + 1, Math.min(...deadlines));
    },
  };
}

async function fetchAgain(
  descriptors: Descriptors,
  eligibility: Eligibility,
  entry: RelayEntry,
): Promise<void> {
  try {
    const { descriptor } = await descriptors.fetch(entry, 'regular');
    eligibility.updateDescriptor(descriptor);
  } catch (error) {
    if (!(error instanceof PeerRefusal)) throw error;
    // An endpoint that cannot be reached changes nothing until the known descriptor expires.
    const isInvalid = ['descriptor_invalid', 'descriptor_signature'].includes(error.check);
    if (isInvalid) eligibility.drop(entry.relay_id, 'descriptor_invalid');
  }
}
