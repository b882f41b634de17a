/** What `group.key.sync` gives a device: chosen in a snapshot, sealed behind it (05 §4.11). */
import { setImmediate } from 'node:timers/promises';
import { decodeBase64url, sealRelaySecret } from '@posthouse/protocol';
import type { Caller } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import { JsonText, type ResultValue } from '../../dispatch/handler.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { markDelivered, type StoredInterval } from '../chain/access-store.ts';
import { readBox, readKeys, type StoredKey } from '../chain/key-store.ts';
import type { PageBounds } from './event-page.ts';
import { type GroupReader, permittedRanges } from './read-access.ts';

/** Key versions of one page, before their relay secrets are sealed. */
export interface KeyMaterial {
  readonly groupId: string;
  readonly caller: Caller;
  readonly keys: readonly {
    readonly epoch: number;
    /** 32 bytes, base64url. */
    readonly relaySecret: string;
    /** Canonical JSON, where the entry must have it. */
    readonly box: string | undefined;
  }[];
  readonly hasMore: boolean;
}

/** An entry without its client secret box, generously. */
const entryOverhead = 512;

/**
 * The key versions a device may read behind an epoch, as many as fit, at least one where there is
 * one; with the client box where it is another one
 * than that of the entry before: another set is another commitment, another epoch to begin with is
 * another member key.
 */
export async function readKeyMaterial(
  tx: Reader,
  reader: GroupReader,
  { after, most, maxBytes }: PageBounds,
): Promise<KeyMaterial> {
  const { caller, group } = reader;
  const { group_id: groupId } = group.stored;
  // One more than asked for tells whether there is more.
  const found = await retained(tx, reader, { after, most: most + 1 });
  const keys: KeyMaterial['keys'][number][] = [];
  let before: StoredKey | undefined;
  let bytes = 0;
  for (const key of found.slice(0, most)) {
    const { epoch, relaySecret, boxSet, fromEpoch } = key;
    const isSame = boxSet === before?.boxSet && fromEpoch === before.fromEpoch;
    const box = isSame ? undefined : await ownBox(tx, groupId, { key, account: caller.account });
    // Whoever sealed a box may have made it as large as a request can be.
    bytes += entryOverhead + Buffer.byteLength(box ?? '');
    if (keys.length > 0 && bytes > maxBytes) break;
    keys.push({ epoch, relaySecret, box });
    before = key;
  }
  return { groupId, caller, keys, hasMore: keys.length < found.length };
}

async function retained(
  tx: Reader,
  { caller, group, intervals }: GroupReader,
  { after, most }: { readonly after: number; readonly most: number },
): Promise<StoredKey[]> {
  const { group_id: groupId, epoch: highest } = group.stored;
  const { account } = caller;
  const keys: StoredKey[] = [];
  for (const range of permittedRanges(intervals, 'keys', { after, highest })) {
    if (keys.length === most) break;
    keys.push(...(await readKeys(tx, groupId, { account, ...range, most: most - keys.length })));
  }
  return keys;
}

async function ownBox(
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
 * Remembers that the page gives the device the current relay secret, so that the device's end
 * demands a new one (05 §7.3).
 *
 * @returns whether it is remembered: not where that needs a write and there is no writer
 */
export async function rememberDelivery(
  material: KeyMaterial,
  { group, intervals }: GroupReader,
  writer: Writer | undefined,
): Promise<boolean> {
  const { epoch } = group.stored;
  const current = intervals.find(isCurrent);
  const isOwed = current !== undefined && current.deliveredEpoch < epoch;
  if (!isOwed || material.keys.at(-1)?.epoch !== epoch) return true;
  if (writer === undefined) return false;
  const { account, deviceId } = material.caller;
  await markDelivered(writer, material.groupId, { account, deviceId, epoch });
  return true;
}

function isCurrent({ authority, messages }: StoredInterval): boolean {
  return authority && messages.to === undefined;
}

/** Sealing is work of a third of a millisecond each: others have their turn in between. */
const sealedAtOnce = 16;

/** Seals the relay secrets to the device (05 §3.7). */
export async function sealKeys(
  { network, random }: Pick<RelayContext, 'network' | 'random'>,
  { groupId: group_id, caller, keys }: KeyMaterial,
): Promise<ResultValue[]> {
  const { account, deviceId: device_id, certificate } = caller;
  const { encryption_public_key: deviceKey } = certificate;
  const sealed: ResultValue[] = [];
  for (const [index, { epoch, relaySecret, box }] of keys.entries()) {
    if (index > 0 && index % sealedAtOnce === 0) await setImmediate();
    const secret = decodeBase64url(relaySecret) as Uint8Array;
    const context = { group_id, account, device_id, epoch };
    sealed.push({
      epoch,
      client_secret_box: box === undefined ? undefined : new JsonText(box),
      relay_secret_box: sealRelaySecret(network, context, { deviceKey, secret, random }),
    });
  }
  return sealed;
}
