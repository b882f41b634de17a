import { encodeBase64url } from '../encoding/base64url.ts';
import { deriveAccountId } from './account-id.ts';
import { deriveDeviceId } from './device-id.ts';
import type { Network } from './network.ts';

/**
 * Signs with an account key, or with a relay's Neo key. `sign` may return a promise, so that it can
 * call a wallet; it signs the bytes as they are, without any prefix (chapter 01, section 5.1).
 */
export interface AccountSigner {
  /** Account ID of the key. */
  readonly account: string;
  /** Compressed key, base64url. */
  readonly publicKey: string;
  /** 64 bytes: `r` then `s`. */
  sign(message: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** A device's public keys and its signing key in use. */
export interface DeviceSigner {
  /** Ed25519, base64url. */
  readonly signingPublicKey: string;
  /** X25519, base64url. */
  readonly encryptionPublicKey: string;
  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}

/** A device as it signs the daily objects of its account: envelopes, grants, invites, requests. */
export interface SigningDevice {
  /** Account ID. */
  readonly account: string;
  readonly deviceId: string;
  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}

/**
 * Adds account and device ID to a device's signer.
 *
 * @example
 * const device = signingDevice(network, account, deviceSigner(network, deviceKeys));
 */
export function signingDevice(
  network: Network,
  account: string,
  device: DeviceSigner,
): SigningDevice {
  const deviceId = deriveDeviceId(network, {
    account,
    signing_public_key: device.signingPublicKey,
    encryption_public_key: device.encryptionPublicKey,
  });
  return { account, deviceId, sign: (message) => device.sign(message) };
}

/**
 * Makes a signer from an account's or relay's private key in memory.
 *
 * @param privateKey 32 bytes
 * @example
 * const signer = accountSigner(network, privateKey);
 * const state = await signDeviceState(network, signer, { revision: 0, certificates: [] });
 */
export function accountSigner(network: Network, privateKey: Uint8Array): AccountSigner {
  const { p256 } = network.primitives;
  const publicKey = encodeBase64url(p256.publicKey(privateKey));
  return {
    account: deriveAccountId(network, publicKey),
    publicKey,
    sign: (message) => p256.sign(privateKey, message),
  };
}

/**
 * Makes a signer from device private keys in memory.
 *
 * @example
 * const device = deviceSigner(network, { signingSeed: random(32), encryptionKey: random(32) });
 */
export function deviceSigner(
  network: Network,
  keys: { readonly signingSeed: Uint8Array; readonly encryptionKey: Uint8Array },
): DeviceSigner {
  const { ed25519, x25519 } = network.primitives;
  return {
    signingPublicKey: encodeBase64url(ed25519.publicKey(keys.signingSeed)),
    encryptionPublicKey: encodeBase64url(x25519.publicKey(keys.encryptionKey)),
    sign: (message) => ed25519.sign(keys.signingSeed, message),
  };
}
