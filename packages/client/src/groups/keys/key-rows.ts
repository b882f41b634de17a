/** Stored keys and secrets of groups: what the verified chain names, and what opens its boxes. */
import {
  decodeBase64url,
  encodeBase64url,
  type GroupEpochKeys,
  type GroupKeyHistory,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { ClientError } from '../../errors.ts';
import { Collection } from '../../store/collection.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';

/** Commitment and own member key of every epoch of the verified chain (05 §7.5). */
const epochs = new Collection<GroupEpochKeys>('group-epochs');

/** A member private key, base64url. Only verified state decides which one is used (05 §16). */
export interface MemberKey {
  readonly privateKey: string;
  /** Whether this device made it and shares it with the other own devices. */
  readonly isOwn: boolean;
}
const memberKeys = new Collection<MemberKey>('group-keys');

/** Client secrets by the commitment that they were verified against. */
const clientSecrets = new Collection<string>('group-secrets');

/** Application secrets by epoch, derived from two verified boxes. */
const epochSecrets = new Collection<string>('group-epoch-secrets');
/** Application secrets from other own devices; used only for epochs that the chain confirms. */
const stagedSecrets = new Collection<string>('group-staged-secrets');

/** Decodes 32 stored bytes. @throws ClientError `store_mismatch` if the row is damaged */
export function secretBytes(text: string): Uint8Array {
  const bytes = decodeBase64url(text);
  if (bytes?.length !== 32) throw new ClientError('store_mismatch', 'a stored secret is damaged');
  return bytes;
}

/** Makes a member key pair, base64url. */
export function newMemberKey(core: AccountCore): {
  readonly publicKey: string;
  readonly privateKey: string;
} {
  const privateKey = core.random(32);
  const publicKey = core.network.primitives.x25519.publicKey(privateKey);
  return { publicKey: encodeBase64url(publicKey), privateKey: encodeBase64url(privateKey) };
}

export async function putEpochs(
  tx: StoreWriter,
  groupId: string,
  history: GroupKeyHistory,
): Promise<void> {
  for (const { epochs: each, ...keys } of history) {
    for (const epoch of each) await epochs.put(tx, keyOf(groupId, epoch), keys);
  }
}

/** Reads commitment and own key of an epoch, if the verified chain has that epoch. */
export async function epochKeys(
  tx: StoreReader,
  groupId: string,
  epoch: number,
): Promise<GroupEpochKeys | undefined> {
  return await epochs.get(tx, keyOf(groupId, epoch));
}

/** Stores a member private key; a stored key is not replaced. */
export async function putMemberKey(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly publicKey: string },
  key: MemberKey,
): Promise<void> {
  const at = keyOf(id.groupId, id.publicKey);
  const known = await memberKeys.get(tx, at);
  if (known === undefined) await memberKeys.put(tx, at, key);
}

/** Reads a group's member private keys by their public keys. */
export async function memberKeysOf(
  tx: StoreReader,
  groupId: string,
): Promise<Map<string, MemberKey>> {
  const prefix = `${groupId}/`;
  const rows = await memberKeys.list(tx, { prefix });
  return new Map(rows.map(({ key, value }) => [key.slice(prefix.length), value]));
}

export async function clientSecret(
  tx: StoreReader,
  groupId: string,
  commitment: string,
): Promise<string | undefined> {
  return await clientSecrets.get(tx, keyOf(groupId, commitment));
}

export async function putClientSecret(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly commitment: string },
  secret: string,
): Promise<void> {
  await clientSecrets.put(tx, keyOf(id.groupId, id.commitment), secret);
}

/** An application secret and whether this device verified it itself. */
export interface EpochSecret {
  readonly secret: string;
  readonly isVerified: boolean;
}

/**
 * Reads the application secret of an epoch. A secret from another device counts only after the
 * verified history has that epoch (05 §16).
 */
export async function epochSecret(
  tx: StoreReader,
  groupId: string,
  epoch: number,
): Promise<EpochSecret | undefined> {
  const key = keyOf(groupId, epoch);
  const secret = await epochSecrets.get(tx, key);
  if (secret !== undefined) return { secret, isVerified: true };
  if ((await epochs.get(tx, key)) === undefined) return undefined;
  const staged = await stagedSecrets.get(tx, key);
  return staged === undefined ? undefined : { secret: staged, isVerified: false };
}

export async function putEpochSecret(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly epoch: number },
  secret: string,
): Promise<void> {
  const key = keyOf(id.groupId, id.epoch);
  await epochSecrets.put(tx, key, secret);
  await stagedSecrets.delete(tx, key);
}

/** Stages a secret from another own device (05 §16). */
export async function stageEpochSecret(
  tx: StoreWriter,
  id: { readonly groupId: string; readonly epoch: number },
  secret: string,
): Promise<void> {
  const key = keyOf(id.groupId, id.epoch);
  if ((await epochSecrets.get(tx, key)) === undefined) await stagedSecrets.put(tx, key, secret);
}

/** Lists the newest verified application secrets of a group, oldest first. */
export async function verifiedSecrets(
  tx: StoreReader,
  groupId: string,
  limit: number,
): Promise<{ readonly epoch: number; readonly secret: string }[]> {
  const prefix = `${groupId}/`;
  const rows = await epochSecrets.list(tx, { prefix, limit, reverse: true });
  return rows
    .map(({ key, value }) => ({ epoch: Number(key.slice(prefix.length)), secret: value }))
    .reverse();
}
