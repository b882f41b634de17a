/**
 * Secret boxes: a 32-byte secret sealed to one X25519 key. The two kinds have different contexts
 * and can never be opened as each other (05 §3.5 to §3.7).
 */
import type { Random } from '../crypto/primitives.ts';
import { type KeyToSeal, type SealedKey, sealKey } from '../crypto/seal-key.ts';
import { decodeBase64url, encodeBase64url } from '../encoding/base64url.ts';
import type { Network } from '../identity/network.ts';
import { keyWrapAlgorithm, sealingInput, unwrapKey, wrappedKey } from '../messages/key-wrap.ts';
import {
  Base64url,
  checkPart,
  checkSchema,
  type Static,
  Type,
  X25519PublicKey,
} from '../schema.ts';
import { clientSecretCommitment } from './secrets.ts';

/** A sealed secret: nonce, ciphertext and tag are 60 bytes together (05 §3.5). */
export const GroupSecretBox = Type.Object({
  alg: Type.Literal(keyWrapAlgorithm),
  /** Ephemeral public key made for this box. */
  enc: X25519PublicKey,
  sealed_secret: Base64url(60),
});
export type GroupSecretBox = Static<typeof GroupSecretBox>;

/**
 * Checks a box's algorithm and lengths: everything the relay can check (05 §3.6).
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupSecretBox(value);
 * console.log(value.enc);
 */
export function checkGroupSecretBox(value: unknown, path = ''): asserts value is GroupSecretBox {
  checkSchema(GroupSecretBox, value, path);
  checkPart(value, path);
}

/** The context of a client secret box; no epoch, because it serves many (05 §3.6). */
export interface ClientBoxContext {
  readonly group_id: string;
  /** The member the box is for. */
  readonly account: string;
  /** The key it is sealed to. */
  readonly member_encryption_public_key: string;
  readonly client_secret_commitment: string;
}

/** The context of a relay secret box (05 §3.7). */
export interface RelayBoxContext {
  readonly group_id: string;
  /** Account and device of the session that asks. */
  readonly account: string;
  readonly device_id: string;
  readonly epoch: number;
}

/** Returns the KDF info and associated data of a client secret box (05 §3.6). */
export function clientBoxInput(network: Network, context: ClientBoxContext): Uint8Array {
  const { group_id, account, member_encryption_public_key, client_secret_commitment } = context;
  return network.bytes({
    $type: network.type('group.client_secret_box.aad'),
    group_id,
    account,
    member_encryption_public_key,
    client_secret_commitment,
  });
}

/** Returns the KDF info and associated data of a relay secret box (05 §3.7). */
function relayBoxInput(network: Network, context: RelayBoxContext): Uint8Array {
  const { group_id, account, device_id, epoch } = context;
  const $type = network.type('group.relay_secret_box.aad');
  return network.bytes({ $type, group_id, account, device_id, epoch });
}

/**
 * Seals the client secret to a member. Account and key must come from a verified request or the
 * verified chain (05 §3.6). Draws 32 bytes for the ephemeral key, then 12 for the nonce.
 *
 * @throws ProtocolError `bad_request` for a member key whose shared secret is all zero (01 E2)
 * @example
 * const secret = createGroupSecret(random);
 * const client_secret_commitment = clientSecretCommitment(network, group_id, secret);
 * const context = { group_id, account, member_encryption_public_key, client_secret_commitment };
 * const box = sealClientSecret(network, context, { secret, random });
 */
export function sealClientSecret(
  network: Network,
  context: ClientBoxContext,
  { secret, random }: { readonly secret: Uint8Array; readonly random: Random },
): GroupSecretBox {
  const info = clientBoxInput(network, context);
  const publicKey = context.member_encryption_public_key;
  const parts = sealingInput(network, { publicKey, random });
  return secretBox(sealKey(network.primitives, { ...parts, info, key: secret }));
}

/**
 * Opens a client secret box and compares the commitment (05 §3.6, §7.5).
 *
 * @param context expected values: for a historical box, key and commitment of that epoch
 * @param privateKey the X25519 private key of the context's member key, 32 bytes
 * @returns the secret, or `undefined` for a box that MUST be rejected: another key, a failed
 *   authentication, or a secret that is not the committed one
 * @example
 * const { client_secret_commitment } = group;
 * const context = { group_id, account, member_encryption_public_key, client_secret_commitment };
 * const secret = openClientSecret(network, context, { box, privateKey });
 */
export function openClientSecret(
  network: Network,
  context: ClientBoxContext,
  { box, privateKey }: { readonly box: GroupSecretBox; readonly privateKey: Uint8Array },
): Uint8Array | undefined {
  const publicKey = encodeBase64url(network.primitives.x25519.publicKey(privateKey));
  if (publicKey !== context.member_encryption_public_key) return undefined;
  const secret = open(network, box, { privateKey, info: clientBoxInput(network, context) });
  if (secret === undefined) return undefined;
  const commitment = clientSecretCommitment(network, context.group_id, secret);
  return commitment === context.client_secret_commitment ? secret : undefined;
}

/**
 * Seals the relay secret of an epoch to the calling device (05 §3.7).
 *
 * @param input.deviceKey the encryption key of that device's certificate, base64url
 * @throws ProtocolError `bad_request` for a device key whose shared secret is all zero (01 E2)
 * @example
 * const context = { group_id, account, device_id: device.deviceId, epoch: group.epoch };
 * const deviceKey = certificate.encryption_public_key;
 * const box = sealRelaySecret(network, context, { deviceKey, secret: relaySecret, random });
 */
export function sealRelaySecret(
  network: Network,
  context: RelayBoxContext,
  input: {
    readonly deviceKey: string;
    readonly secret: Uint8Array;
    readonly random: Random;
  },
): GroupSecretBox {
  return secretBox(sealKey(network.primitives, relaySecretToSeal(network, context, input)));
}

/**
 * Returns a relay secret as a value to seal (05 §3.7), for another thread; {@link secretBox}
 * makes a box of the result. Draws as {@link sealRelaySecret}.
 *
 * @throws ProtocolError `bad_request` for a device key that is not canonical base64url
 * @example
 * const context = { group_id, account, device_id: device.deviceId, epoch: group.epoch };
 * const deviceKey = certificate.encryption_public_key;
 * const toSeal = relaySecretToSeal(network, context, { deviceKey, secret: relaySecret, random });
 * const box = secretBox(sealKey(network.primitives, toSeal));
 */
export function relaySecretToSeal(
  network: Network,
  context: RelayBoxContext,
  { deviceKey, secret, random }: Parameters<typeof sealRelaySecret>[2],
): KeyToSeal {
  const parts = sealingInput(network, { publicKey: deviceKey, random });
  return { ...parts, info: relayBoxInput(network, context), key: secret };
}

/**
 * Makes a box of a sealed secret (05 §3.5).
 *
 * @throws ProtocolError `bad_request` if it was not sealed: the shared secret is all zero (01 E2)
 * @example
 * const deviceKey = certificate.encryption_public_key;
 * const context = { group_id, account, device_id: device.deviceId, epoch: group.epoch };
 * const toSeal = relaySecretToSeal(network, context, { deviceKey, secret: relaySecret, random });
 * const box = secretBox(sealKey(network.primitives, toSeal));
 */
export function secretBox(key: SealedKey | undefined): GroupSecretBox {
  const { enc, sealed } = wrappedKey(key);
  return { alg: keyWrapAlgorithm, enc, sealed_secret: sealed };
}

/**
 * Opens a relay secret box with the device's X25519 private key (05 §3.7).
 *
 * @returns the secret, or `undefined` for a box that MUST be rejected
 * @example
 * const context = { group_id, account, device_id: device.deviceId, epoch: group.epoch };
 * const relaySecret = openRelaySecret(network, context, { box, privateKey });
 */
export function openRelaySecret(
  network: Network,
  context: RelayBoxContext,
  { box, privateKey }: { readonly box: GroupSecretBox; readonly privateKey: Uint8Array },
): Uint8Array | undefined {
  return open(network, box, { privateKey, info: relayBoxInput(network, context) });
}

/**
 * Returns the private key that belongs to a member public key, among those received from own
 * devices. The order in which they arrived decides nothing (05 §16).
 *
 * @param candidates X25519 private keys, base64url; malformed ones are passed over
 * @example
 * const key = findMemberPrivateKey(network, member_encryption_public_key, [text]);
 */
export function findMemberPrivateKey(
  network: Network,
  publicKey: string,
  candidates: Iterable<string>,
): Uint8Array | undefined {
  for (const candidate of candidates) {
    const bytes = decodeBase64url(candidate);
    if (bytes?.length !== 32) continue;
    if (encodeBase64url(network.primitives.x25519.publicKey(bytes)) === publicKey) return bytes;
  }
  return undefined;
}

function open(
  network: Network,
  box: GroupSecretBox,
  input: { readonly privateKey: Uint8Array; readonly info: Uint8Array },
): Uint8Array | undefined {
  return unwrapKey(network, { ...input, enc: box.enc, sealed: box.sealed_secret });
}
