/**
 * Replacing the client secret in two phases: boxes for every member are prepared at the host, then
 * one signed commit activates them. Everything is kept before it leaves, so that a rotation that
 * was interrupted anywhere goes on where it stood (05 §13.26, §13.27, §17.5).
 */
import {
  clientSecretCommitment,
  createGroupSecret,
  encodeBase64url,
  type GroupProjection,
  sealClientSecret,
} from '@posthouse/protocol';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError, isRefusal, RelayMisbehaviour } from '../errors.ts';
import { accountsAtOnce } from './admissions.ts';
import { type RotationCandidate, rotationCandidates } from './candidates.ts';
import { newMemberKey } from './found.ts';
import { manageGroup } from './manage.ts';
import { secretBytes } from './open.ts';
import { refreshGroup, requireGroup } from './sync.ts';

export interface RotationOptions {
  /** Whether the owner's member key is replaced as well. */
  readonly newOwnerKey?: boolean;
  /**
   * Whether a preparation that is under way is given up for a fresh secret: after somebody left or
   * was removed who must not know the new secret even together with the host (05 §1.3).
   */
  readonly fresh?: boolean;
}

/** Preparations that are begun before giving up: each one may expire under way. */
const attempts = 3;

/**
 * Rotates the client secret, or finishes the rotation that is under way.
 *
 * @throws ClientError `not_permitted` where the account is not the owner
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; called again it goes on
 */
export async function rotateSecret(
  core: AccountCore,
  { groupId, ...options }: RotationOptions & { readonly groupId: string },
  signal: AbortSignal,
): Promise<void> {
  const { store } = core;
  if (options.fresh) await store.write((tx) => rotationCandidates.delete(tx, groupId));
  const before = await store.read((tx) => rotationCandidates.get(tx, groupId));
  await refreshGroup(core, groupId, signal);
  if (before !== undefined && (await isInUse(core, groupId, before))) return;
  for (let attempt = 1; ; attempt += 1) {
    const { group } = await requireOwned(core, groupId);
    const candidate = await candidateFor(core, group, options);
    try {
      await prepare(core, { groupId, candidate }, signal);
      return await commit(core, groupId, signal);
    } catch (error) {
      await refreshGroup(core, groupId, signal);
      // An earlier commit had been carried out.
      if (await isInUse(core, groupId, candidate)) return;
      const isOver = isRefusal(error, 'state_conflict') || isOutdated(error);
      if (!isOver || attempt >= attempts) throw error;
      // Expired or replaced: whatever the host has of it can never be committed.
      await store.write((tx) => rotationCandidates.delete(tx, groupId));
    }
  }
}

function isOutdated(error: unknown): boolean {
  return isClientError(error, 'invalid_input');
}

async function isInUse(
  core: AccountCore,
  groupId: string,
  { client_secret_commitment }: RotationCandidate,
): Promise<boolean> {
  const { group } = await requireGroup(core, groupId);
  return group.client_secret_commitment === client_secret_commitment;
}

/** @throws ClientError `not_permitted` */
async function requireOwned(core: AccountCore, groupId: string) {
  const kept = await requireGroup(core, groupId);
  if (kept.group.owner !== core.account) {
    throw new ClientError('not_permitted', 'only the owner rotates the secret');
  }
  return kept;
}

/** The candidate under way, or a fresh one: new secret, new commitment, nothing uploaded. */
async function candidateFor(
  core: AccountCore,
  group: GroupProjection,
  { newOwnerKey = false }: RotationOptions,
): Promise<RotationCandidate> {
  const { network, random, store } = core;
  const { group_id, client_secret_commitment: base_commitment } = group;
  const kept = await store.read((tx) => rotationCandidates.get(tx, group_id));
  if (kept?.base_commitment === base_commitment) return kept;
  const secret = createGroupSecret(random);
  const candidate: RotationCandidate = {
    base_commitment,
    client_secret_commitment: clientSecretCommitment(network, group_id, secret),
    secret: encodeBase64url(secret),
    ...(newOwnerKey && { owner: newMemberKey(core) }),
    uploaded: {},
    signatures: [],
    landed: false,
  };
  await store.write((tx) => rotationCandidates.put(tx, group_id, candidate));
  return candidate;
}

/** The key each member's box is sealed to: those of verified state, and the owner's next one. */
function targetKeys(
  core: AccountCore,
  group: GroupProjection,
  { owner }: RotationCandidate,
): Map<string, string> {
  const targets = new Map(
    [...group.members.values()].map((member) => [
      member.account,
      member.member_encryption_public_key,
    ]),
  );
  if (owner !== undefined) targets.set(core.account, owner.publicKey);
  return targets;
}

/** Uploads the boxes that are missing, in batches; what the host confirmed is remembered. */
async function prepare(
  core: AccountCore,
  { groupId, candidate }: { readonly groupId: string; readonly candidate: RotationCandidate },
  signal: AbortSignal,
): Promise<void> {
  let current = candidate;
  for (;;) {
    const { row, group } = await requireOwned(core, groupId);
    const missing = [...targetKeys(core, group, current)].filter(
      ([account, key]) => current.uploaded[account] !== key,
    );
    if (missing.length === 0) return;
    const batch = missing.slice(0, accountsAtOnce);
    try {
      current = await upload(
        core,
        { relayId: row.relay_id, group, candidate: current, batch },
        signal,
      );
    } catch (error) {
      // Somebody left meanwhile: the whole batch was refused, and nothing of it was kept.
      if (!isRefusal(error, 'bad_request')) throw error;
      await refreshGroup(core, groupId, signal);
      const { group: next } = await requireOwned(core, groupId);
      if (batch.every(([account]) => next.members.has(account))) throw error;
    }
  }
}

async function upload(
  core: AccountCore,
  {
    relayId,
    group,
    candidate,
    batch,
  }: {
    readonly relayId: string;
    readonly group: GroupProjection;
    readonly candidate: RotationCandidate;
    readonly batch: readonly (readonly [string, string])[];
  },
  signal: AbortSignal,
): Promise<RotationCandidate> {
  const { group_id } = group;
  const { base_commitment, client_secret_commitment } = candidate;
  const secret = secretBytes(candidate.secret);
  const boxes = batch.map(([account, member_encryption_public_key]) => {
    const context = { group_id, account, member_encryption_public_key, client_secret_commitment };
    const sealing = { secret, random: core.random };
    return [account, sealClientSecret(core.network, context, sealing)] as const;
  });
  const method = 'group.secret.rotation.prepare';
  const answer = await core.relay(relayId).call(
    method,
    {
      group_id,
      base_commitment,
      client_secret_commitment,
      client_secret_boxes: Object.fromEntries(boxes),
    },
    { signal },
  );
  const { expires_at } = answer;
  if (candidate.expires_at !== undefined && candidate.expires_at !== expires_at) {
    throw new RelayMisbehaviour('invalid_group_answer', 'the period of a rotation changed', {
      method,
    });
  }
  const uploaded = { ...candidate.uploaded, ...Object.fromEntries(batch) };
  const next = { ...candidate, uploaded, expires_at };
  await core.store.write((tx) => rotationCandidates.put(tx, group_id, next));
  return next;
}

/** Signs and commits; members that joined or changed keys under way get their boxes first. */
async function commit(core: AccountCore, groupId: string, signal: AbortSignal): Promise<void> {
  const find = async () => {
    const candidate = await core.store.read((tx) => rotationCandidates.get(tx, groupId));
    if (candidate === undefined) throw new ClientError('invalid_input', 'the rotation is over');
    return candidate;
  };
  await manageGroup(core, groupId, {
    kind: 'group.secret.rotation',
    method: 'group.secret.rotation.commit',
    signal,
    fields: async () => {
      await prepare(core, { groupId, candidate: await find() }, signal);
      const { client_secret_commitment, owner } = await find();
      return {
        client_secret_commitment,
        ...(owner !== undefined && { owner_encryption_public_key: owner.publicKey }),
      };
    },
    // Kept before it leaves: the chain will show which of the signed commits it was.
    before: async ({ device_signature }) => {
      const candidate = await find();
      const signatures = [...candidate.signatures, device_signature];
      await core.store.write((tx) =>
        rotationCandidates.put(tx, groupId, { ...candidate, signatures }),
      );
    },
  });
}
