/** Pages of `group.key.sync`: read from a snapshot, sealed after it (05 §4.11). */
import { decodeBase64url, relaySecretToSeal, secretBox } from '@posthouse/protocol';
import type { KeyToSeal, SealedKey } from '@posthouse/protocol/crypto';
import type { Caller } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import { JsonText, type ResultValue } from '../../dispatch/handler.ts';
import type { PageSize } from '../../pages/fill-page.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { markDelivered } from '../chain/access-store.ts';
import { readBox, readKeys, type StoredKey } from '../chain/key-store.ts';
import { type GroupReader, permittedRanges } from './read-access.ts';

/** Key versions of one page, before their relay secrets are sealed. */
export interface KeyMaterial {
  readonly groupId: string;
  readonly caller: Caller;
  readonly keys: readonly {
    readonly epoch: number;
    /** 32 bytes, base64url. */
    readonly relaySecret: string;
    /** Canonical JSON, if the entry must have it. */
    readonly box: string | undefined;
  }[];
  readonly hasMore: boolean;
}

/** An entry without its client secret box, generously. */
const entryOverhead = 512;

/**
 * Reads the key versions that a device may read after an epoch, as many as fit, at least one if
 * there is one. An entry has the client box if that differs from the box of the entry before:
 * another set means another commitment, another first epoch means another member key.
 */
export async function readKeyMaterial(
  tx: Reader,
  reader: GroupReader,
  { after, limit, maxBytes }: PageSize & { readonly after: number },
): Promise<KeyMaterial> {
  const { caller, group } = reader;
  const { group_id: groupId } = group.stored;
  // One more than requested shows whether there is more.
  const found = await readRetained(tx, reader, { after, limit: limit + 1 });
  const keys: KeyMaterial['keys'][number][] = [];
  let before: StoredKey | undefined;
  let bytes = 0;
  for (const key of found.slice(0, limit)) {
    const { epoch, relaySecret, boxSet, fromEpoch } = key;
    const isSame = boxSet === before?.boxSet && fromEpoch === before.fromEpoch;
    const box = isSame
      ? undefined
      : await readOwnBox(tx, groupId, { key, account: caller.account });
    // A box may be as large as the request that brought it.
    bytes += entryOverhead + Buffer.byteLength(box ?? '');
    if (keys.length > 0 && bytes > maxBytes) break;
    keys.push({ epoch, relaySecret, box });
    before = key;
  }
  return { groupId, caller, keys, hasMore: keys.length < found.length };
}

async function readRetained(
  tx: Reader,
  { caller, group, intervals }: GroupReader,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<StoredKey[]> {
  const { group_id: groupId, epoch: highest } = group.stored;
  const { account } = caller;
  const keys: StoredKey[] = [];
  for (const range of permittedRanges(intervals, 'keys', { after, highest })) {
    if (keys.length === limit) break;
    keys.push(...(await readKeys(tx, groupId, { account, ...range, limit: limit - keys.length })));
  }
  return keys;
}

async function readOwnBox(
  tx: Reader,
  groupId: string,
  { key, account }: { readonly key: StoredKey; readonly account: string },
): Promise<string> {
  const { epoch, boxSet, fromEpoch } = key;
  const box =
    fromEpoch === null ? undefined : await readBox(tx, groupId, { boxSet, account, fromEpoch });
  if (box === undefined) throw new Error(`epoch ${epoch} lacks the box of a member`);
  return box;
}

/**
 * Records that the page delivers the current relay secret to the device, so that the secret is
 * rotated when the device becomes inactive (05 §7.3).
 *
 * @returns `false` if that needs a write and there is no writer
 */
export async function recordDelivery(
  material: KeyMaterial,
  { group, intervals }: GroupReader,
  writer: Writer | undefined,
): Promise<boolean> {
  const { epoch } = group.stored;
  const current = intervals.find(({ messages }) => messages.to === undefined);
  const isNew = current !== undefined && current.deliveredEpoch < epoch;
  if (!isNew || material.keys.at(-1)?.epoch !== epoch) return true;
  if (writer === undefined) return false;
  const { account, deviceId } = material.caller;
  await markDelivered(writer, material.groupId, { account, deviceId, epoch });
  return true;
}

/** Returns the relay secrets of a page as keys to seal to the device (05 §3.7). */
export function* keysToSeal(
  { network, random }: Pick<RelayContext, 'network' | 'random'>,
  { groupId: group_id, caller, keys }: KeyMaterial,
): Generator<KeyToSeal> {
  const { account, deviceId: device_id, certificate } = caller;
  const { encryption_public_key: deviceKey } = certificate;
  for (const { epoch, relaySecret } of keys) {
    const secret = decodeBase64url(relaySecret) as Uint8Array;
    const context = { group_id, account, device_id, epoch };
    yield relaySecretToSeal(network, context, { deviceKey, secret, random });
  }
}

/**
 * Returns the entries of a page.
 *
 * @param sealed the secrets of {@link keysToSeal}, sealed
 * @throws ProtocolError `bad_request` if nothing can be sealed to the device's key (01 E2)
 */
export function keyEntries(
  { keys }: KeyMaterial,
  sealed: readonly (SealedKey | undefined)[],
): ResultValue[] {
  return keys.map(({ epoch, box }, index) => ({
    epoch,
    client_secret_box: box === undefined ? undefined : new JsonText(box),
    relay_secret_box: secretBox(sealed[index]),
  }));
}
