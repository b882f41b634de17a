/** Pages of `group.key.sync` as a client verifies them (05 §4.11, §7.5). */
import { badRequest } from '../errors.ts';
import type { Network } from '../identity/network.ts';
import { Counter, checkNoNull, checkPart, checkSchema, type Static, Type } from '../schema.ts';
import { checkGroupSecretBox, GroupSecretBox, openClientSecret, openRelaySecret } from './boxes.ts';
import { type GroupEpochKeys, type GroupKeyHistory, keysOfEpoch, sameKeys } from './key-history.ts';
import { checkPageOrder, type GroupPageRequest } from './paging.ts';
import { deriveEpochApplicationSecret } from './secrets.ts';

/** The material of one epoch for the calling device (05 §4.11). */
export const GroupKeyEntry = Type.Object({
  epoch: Counter,
  /** In the first entry of a page, and if commitment or member key differ from the entry before. */
  client_secret_box: Type.Optional(GroupSecretBox),
  relay_secret_box: GroupSecretBox,
});
export type GroupKeyEntry = Static<typeof GroupKeyEntry>;

/** Response of `group.key.sync`. */
export const GroupKeyPage = Type.Object({
  /** In strictly ascending epoch, gaps allowed. */
  keys: Type.Array(GroupKeyEntry),
  has_more: Type.Boolean(),
});
export type GroupKeyPage = Static<typeof GroupKeyPage>;

/**
 * Checks a page: order, boxes, and the box that its first entry owes.
 *
 * @throws ProtocolError `bad_request`: the response is refused
 * @example
 * checkGroupKeyPage(value, { after: -1, limit: 50 });
 * console.log(value.keys.length);
 */
export function checkGroupKeyPage(
  value: unknown,
  request: GroupPageRequest,
): asserts value is GroupKeyPage {
  checkSchema(GroupKeyPage, value, 'page');
  checkNoNull(value, 'page');
  const { keys, has_more } = value;
  checkPageOrder({ positions: keys.map((entry) => entry.epoch), has_more, name: 'keys' }, request);
  for (const [index, entry] of keys.entries()) {
    const at = `keys.${index}`;
    checkPart(entry, at);
    checkGroupSecretBox(entry.relay_secret_box, `${at}.relay_secret_box`);
    if (entry.client_secret_box !== undefined) {
      checkGroupSecretBox(entry.client_secret_box, `${at}.client_secret_box`);
    } else if (index === 0) {
      throw badRequest(`${at}.client_secret_box`, 'missing in the first entry');
    }
  }
}

/** The reading device with its keys and the verified key history. */
export interface GroupKeyReader {
  readonly group_id: string;
  readonly account: string;
  readonly deviceId: string;
  /** Of the verified chain, for `account`. */
  readonly history: GroupKeyHistory;
  /** X25519 private key of the device, 32 bytes. */
  readonly devicePrivateKey: Uint8Array;
  /** Returns the private key of a member public key, if this device has it. */
  memberPrivateKey(publicKey: string): Uint8Array | undefined;
}

/** The result of one entry. Only `verified` material may be used. */
export type GroupKeyResult =
  | {
      readonly epoch: number;
      readonly status: 'verified';
      readonly clientSecret: Uint8Array;
      readonly applicationSecret: Uint8Array;
    }
  | {
      readonly epoch: number;
      readonly status:
        | 'unknown_epoch' /** The verified chain has no such epoch; perhaps not yet. */
        | 'missing_private_key' /** Blocks this box only (05 §7.5). */
        | 'missing_box' /** The relay left out a box it owed. */
        | 'rejected' /** A box does not open, or holds another secret than the committed one. */;
    };

/** The client secret of the entry before on the page, or why there is none. */
interface Carried {
  readonly keys: GroupEpochKeys;
  readonly secret: Uint8Array | 'missing_private_key' | 'missing_box' | 'rejected';
}

/**
 * Opens a page of keys against the verified chain. An entry that fails leaves the others alone.
 *
 * @param page checked by {@link checkGroupKeyPage}
 * @returns one result for every entry, in their order
 * @example
 * checkGroupKeyPage(value, { after: -1 });
 * for (const key of openGroupKeys(network, value, keyReader)) {
 *   if (key.status === 'verified') console.log(key.epoch, key.applicationSecret.length);
 * }
 */
export function openGroupKeys(
  network: Network,
  page: GroupKeyPage,
  reader: GroupKeyReader,
): GroupKeyResult[] {
  let carried: Carried | undefined;
  return page.keys.map((entry): GroupKeyResult => {
    const { epoch } = entry;
    const keys = keysOfEpoch(reader.history, epoch);
    if (keys === undefined) {
      carried = undefined;
      return { epoch, status: 'unknown_epoch' };
    }
    carried = { keys, secret: clientSecret(network, { entry, keys, carried, reader }) };
    if (typeof carried.secret === 'string') return { epoch, status: carried.secret };
    return applicationSecret(network, { entry, keys, reader, clientSecret: carried.secret });
  });
}

function clientSecret(
  network: Network,
  input: {
    readonly entry: GroupKeyEntry;
    readonly keys: GroupEpochKeys;
    readonly carried: Carried | undefined;
    readonly reader: GroupKeyReader;
  },
): Carried['secret'] {
  const { entry, keys, carried, reader } = input;
  const box = entry.client_secret_box;
  if (box === undefined) {
    return carried !== undefined && sameKeys(carried.keys, keys) ? carried.secret : 'missing_box';
  }
  const { member_encryption_public_key, client_secret_commitment } = keys;
  if (member_encryption_public_key === undefined) return 'rejected';
  const privateKey = reader.memberPrivateKey(member_encryption_public_key);
  if (privateKey === undefined) return 'missing_private_key';
  const { group_id, account } = reader;
  const context = { group_id, account, member_encryption_public_key, client_secret_commitment };
  return openClientSecret(network, context, { box, privateKey }) ?? 'rejected';
}

function applicationSecret(
  network: Network,
  input: {
    readonly entry: GroupKeyEntry;
    readonly keys: GroupEpochKeys;
    readonly reader: GroupKeyReader;
    readonly clientSecret: Uint8Array;
  },
): GroupKeyResult {
  const { entry, keys, reader, clientSecret } = input;
  const { epoch } = entry;
  const { group_id, account, deviceId: device_id } = reader;
  const relaySecret = openRelaySecret(
    network,
    { group_id, account, device_id, epoch },
    { box: entry.relay_secret_box, privateKey: reader.devicePrivateKey },
  );
  if (relaySecret === undefined) return { epoch, status: 'rejected' };
  const { client_secret_commitment } = keys;
  const secrets = { group_id, epoch, client_secret_commitment, clientSecret, relaySecret };
  const applicationSecret = deriveEpochApplicationSecret(network, secrets);
  return { epoch, status: 'verified', clientSecret, applicationSecret };
}
