/**
 * Replacing the client secret in two phases: boxes for every member are uploaded to the host, then
 * one signed commit activates them. Everything is stored before it is sent, so that an interrupted
 * rotation can be resumed at any point (05 §13.26, §13.27, §17.5).
 */
import type { GroupProjection } from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import type { StoreWriter } from '../../store/index.ts';
import {
  accountsAtOnce,
  ClientError,
  callHost,
  clientSecretCommitment,
  createGroupSecret,
  encodeBase64url,
  isRefusal,
  newMemberKey,
  putMemberKey,
  refreshGroup,
  requireGroup,
  rotationCandidates,
  sealBoxes,
  secretBytes,
  writeChainEvent,
} from '../../taken.ts';
import type { RotationCandidate } from './key-candidates.ts';

export interface RotationOptions {
  /** Whether to replace the owner's member key as well. */
  readonly newOwnerKey?: boolean;
  /**
   * Whether to discard a rotation under way and start with a fresh secret: needed if a member left
   * meanwhile that must not learn the new secret even together with the host (05 §1.3).
   */
  readonly fresh?: boolean;
}

/** Limit of preparations: each one may expire before it is committed. */
const attempts = 3;

/** The preparation at the host can never be committed. */
class RotationOutdated extends ClientError {
  constructor(message: string) {
    super('invalid_input', message);
  }
}

/**
 * Rotates the client secret, or resumes the rotation under way.
 *
 * @throws ClientError `not_permitted` if the account is not the owner; `invalid_input` with the
 *   member to whose key nothing can be sealed: remove that member first
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; a second call resumes
 */
export async function rotateSecret(
  core: AccountCore,
  { groupId, ...options }: RotationOptions & { readonly groupId: string },
  signal: AbortSignal,
): Promise<void> {
  const { store } = core;
  const before = await store.read((tx) => rotationCandidates.get(tx, groupId));
  await refreshGroup(core, groupId, signal);
  // Only after reading: a commit whose answer was lost may have taken effect.
  if (options.fresh) await store.write((tx) => rotationCandidates.delete(tx, groupId));
  else if (before !== undefined && meetsOptions(before, options)) {
    if (await isInUse(core, groupId, before)) return;
  }
  for (let attempt = 1; ; attempt += 1) {
    const { group } = await requireOwned(core, groupId);
    const candidate = await candidateFor(core, group, options);
    try {
      await uploadMissingBoxes(core, { groupId, candidate }, signal);
      return await commit(core, { groupId, candidate }, signal);
    } catch (error) {
      await refreshGroup(core, groupId, signal);
      // An earlier commit took effect.
      if (await isInUse(core, groupId, candidate)) return;
      const isOver = isRefusal(error, 'state_conflict') || error instanceof RotationOutdated;
      if (!isOver || attempt >= attempts) throw error;
      // Expired or replaced: the preparation at the host can never be committed.
      await removeCandidate(core, groupId, candidate);
    }
  }
}

/** Whether a rotation under way satisfies the options. */
function meetsOptions(
  { ownerKey }: RotationCandidate,
  { newOwnerKey = false }: RotationOptions,
): boolean {
  return ownerKey !== undefined || !newOwnerKey;
}

async function isInUse(
  core: AccountCore,
  groupId: string,
  { client_secret_commitment, ownerKey }: RotationCandidate,
): Promise<boolean> {
  const { group } = await requireGroup(core, groupId);
  if (group.client_secret_commitment !== client_secret_commitment) return false;
  const key = group.members.get(core.account)?.member_encryption_public_key;
  return ownerKey === undefined || ownerKey === key;
}

/** @throws ClientError `not_permitted` */
async function requireOwned(core: AccountCore, groupId: string) {
  const owned = await requireGroup(core, groupId);
  if (owned.group.owner !== core.account) {
    throw new ClientError('not_permitted', 'only the owner can rotate the secret: ask the owner');
  }
  return owned;
}

/** Returns the candidate under way, or stores a new one with a fresh secret. */
async function candidateFor(
  core: AccountCore,
  { group_id, client_secret_commitment: base_commitment }: GroupProjection,
  options: RotationOptions,
): Promise<RotationCandidate> {
  const { network, random, store } = core;
  return await store.write(async (tx) => {
    const stored = await rotationCandidates.get(tx, group_id);
    const isUnderWay = stored?.base_commitment === base_commitment;
    if (isUnderWay && meetsOptions(stored, options)) return stored;
    const secret = createGroupSecret(random);
    const fresh: RotationCandidate = {
      base_commitment,
      client_secret_commitment: clientSecretCommitment(network, group_id, secret),
      secret: encodeBase64url(secret),
      uploaded: {},
      signatures: [],
      landed: false,
    };
    const candidate = {
      ...(isUnderWay ? stored : fresh),
      ...(options.newOwnerKey && { ownerKey: await addMemberKey(core, tx, group_id) }),
    };
    await rotationCandidates.put(tx, group_id, candidate);
    return candidate;
  });
}

/** Makes and stores the owner's next member key. @returns the public key */
async function addMemberKey(core: AccountCore, tx: StoreWriter, groupId: string): Promise<string> {
  const { publicKey, privateKey } = newMemberKey(core);
  await putMemberKey(tx, { groupId, publicKey }, { privateKey, isOwn: true });
  return publicKey;
}

/**
 * Changes the stored candidate.
 * @throws RotationOutdated if it was discarded, or another program replaced it
 */
async function changeCandidate(
  core: AccountCore,
  of: { readonly groupId: string; readonly candidate: RotationCandidate },
  change: (latest: RotationCandidate) => RotationCandidate,
): Promise<RotationCandidate> {
  const { groupId, candidate } = of;
  return await core.store.write(async (tx) => {
    const latest = await rotationCandidates.get(tx, groupId);
    if (latest === undefined || !isSame(latest, candidate)) {
      throw new RotationOutdated('the rotation was replaced or discarded: try again');
    }
    const next = change(latest);
    if (next !== latest) await rotationCandidates.put(tx, groupId, next);
    return next;
  });
}

async function removeCandidate(core: AccountCore, groupId: string, candidate: RotationCandidate) {
  await core.store.write(async (tx) => {
    const latest = await rotationCandidates.get(tx, groupId);
    if (latest !== undefined && isSame(latest, candidate)) {
      await rotationCandidates.delete(tx, groupId);
    }
  });
}

function isSame(a: RotationCandidate, b: RotationCandidate): boolean {
  return a.client_secret_commitment === b.client_secret_commitment;
}

/** Returns the key for each member's box: from verified state, and the owner's next one. */
function targetKeys(
  core: AccountCore,
  group: GroupProjection,
  { ownerKey }: RotationCandidate,
): Map<string, string> {
  const targets = new Map(
    [...group.members.values()].map((member) => [
      member.account,
      member.member_encryption_public_key,
    ]),
  );
  if (ownerKey !== undefined) targets.set(core.account, ownerKey);
  return targets;
}

/** Uploads the missing boxes in batches and stores which ones the host accepted. */
async function uploadMissingBoxes(
  core: AccountCore,
  { groupId, candidate }: { readonly groupId: string; readonly candidate: RotationCandidate },
  signal: AbortSignal,
): Promise<RotationCandidate> {
  let current = candidate;
  for (;;) {
    const { row, group } = await requireOwned(core, groupId);
    const missing = [...targetKeys(core, group, current)].filter(
      ([account, key]) => current.uploaded[account] !== key,
    );
    if (missing.length === 0) return current;
    const batch = missing.slice(0, accountsAtOnce);
    try {
      const part = { relayId: row.relay_id, groupId, candidate: current, batch };
      current = await uploadBatch(core, part, signal);
    } catch (error) {
      // A member left meanwhile: the host refused the whole batch and stored none of it.
      if (!isRefusal(error, 'bad_request')) throw error;
      await refreshGroup(core, groupId, signal);
      const { group: next } = await requireOwned(core, groupId);
      if (batch.every(([account]) => next.members.has(account))) throw error;
    }
  }
}

async function uploadBatch(
  core: AccountCore,
  part: {
    readonly relayId: string;
    readonly groupId: string;
    readonly candidate: RotationCandidate;
    readonly batch: readonly (readonly [string, string])[];
  },
  signal: AbortSignal,
): Promise<RotationCandidate> {
  const { relayId, groupId, candidate, batch } = part;
  const { base_commitment, client_secret_commitment } = candidate;
  const secret = secretBytes(candidate.secret);
  const sealed = { group_id: groupId, client_secret_commitment, secret };
  const targets = batch.map(([account, member_encryption_public_key]) => ({
    account,
    member_encryption_public_key,
  }));
  const client_secret_boxes = sealBoxes(core, sealed, targets);
  const params = {
    group_id: groupId,
    base_commitment,
    client_secret_commitment,
    client_secret_boxes,
  };
  const method = 'group.secret.rotation.prepare';
  const { expires_at } = await callHost(core, relayId, { method, params, signal });
  return await changeCandidate(core, { groupId, candidate }, (latest) => {
    // A preparation's expiry never moves: another device has replaced this preparation.
    if (latest.expires_at !== undefined && latest.expires_at !== expires_at) {
      throw new RotationOutdated('another device started a rotation: try again');
    }
    const uploaded = { ...latest.uploaded, ...Object.fromEntries(batch) };
    return { ...latest, uploaded, expires_at };
  });
}

/** Signs and commits; members that joined or changed keys meanwhile get their boxes first. */
async function commit(
  core: AccountCore,
  { groupId, candidate }: { readonly groupId: string; readonly candidate: RotationCandidate },
  signal: AbortSignal,
): Promise<void> {
  const of = { groupId, candidate };
  await writeChainEvent(core, groupId, {
    kind: 'group.secret.rotation',
    method: 'group.secret.rotation.commit',
    signal,
    fields: async () => {
      const latest = await changeCandidate(core, of, (each) => each);
      const { client_secret_commitment, ownerKey } = await uploadMissingBoxes(
        core,
        { groupId, candidate: latest },
        signal,
      );
      return {
        client_secret_commitment,
        ...(ownerKey !== undefined && { owner_encryption_public_key: ownerKey }),
      };
    },
    // Stored before it is sent: the chain shows later which signed commit took effect.
    before: async ({ device_signature }) => {
      await changeCandidate(core, of, (latest) => ({
        ...latest,
        signatures: [...latest.signatures, device_signature],
      }));
    },
  });
}
