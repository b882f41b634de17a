import { base58 } from '@scure/base';
import type { Primitives } from '../crypto/primitives.ts';
import { decodeBase64url } from '../encoding/base64url.ts';
import { concatBytes, equalBytes } from '../encoding/bytes.ts';
import { badRequest } from '../errors.ts';
import type { Network } from './network.ts';

/** Version byte of a Neo N3 address. */
const addressVersion = 0x35;
/** PUSHDATA1 33, the key, SYSCALL System.Crypto.CheckSig. */
const scriptHead = Uint8Array.of(0x0c, 0x21);
const scriptTail = Uint8Array.of(0x41, 0x56, 0xe7, 0xb3, 0x27);

/**
 * Returns the script of the single-signature account of a compressed P-256 key, 40 bytes (chapter
 * 01, section 7).
 *
 * @param publicKey 33 bytes
 */
export function accountScript(publicKey: Uint8Array): Uint8Array {
  return concatBytes(scriptHead, publicKey, scriptTail);
}

/**
 * Derives the script hash of the single-signature account of a compressed P-256 key, 20 bytes in
 * chain order (chapter 01, section 7).
 *
 * @param publicKey 33 bytes
 */
export function scriptHash(primitives: Primitives, publicKey: Uint8Array): Uint8Array {
  return primitives.ripemd160(primitives.sha256(accountScript(publicKey)));
}

/**
 * Derives the account ID of an account public key (chapter 01, section 7).
 *
 * @param publicKey canonical base64url of 33 bytes
 * @throws ProtocolError `bad_request` when the key is not 33 bytes of canonical base64url
 * @example
 * deriveAccountId(network, certificate.account_public_key) === certificate.account;
 */
export function deriveAccountId(network: Network, publicKey: string): string {
  const { primitives, magic } = network;
  const hash = scriptHash(primitives, compressedKey(publicKey));
  const payload = concatBytes(Uint8Array.of(addressVersion), hash);
  return `neo:${magic}:${base58.encode(concatBytes(payload, checksum(primitives, payload)))}`;
}

/**
 * Checks an account ID without its public key: three parts, this network's magic, and an address
 * with right length, version and checksum.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkAccountId(network, account, 'account');
 */
export function checkAccountId(network: Network, id: string, path = ''): void {
  const prefix = `neo:${network.magic}:`;
  if (!id.startsWith(prefix)) throw badRequest(path, `expected an account of ${prefix}`);
  if (validIds.has(id)) return;
  const decoded = decodeBase58(id.slice(prefix.length));
  if (decoded?.length !== 25 || decoded[0] !== addressVersion) {
    throw badRequest(path, 'expected a Neo N3 address');
  }
  if (!equalBytes(decoded.subarray(21), checksum(network.primitives, decoded.subarray(0, 21)))) {
    throw badRequest(path, 'checksum of the address is wrong');
  }
  if (validIds.size >= validIdsLimit) validIds.clear();
  validIds.add(id);
}

/** IDs that passed: each is checked with every object that names it, and stays valid. */
const validIds = new Set<string>();
const validIdsLimit = 10_000;

/** Decodes a compressed key from its text form. */
export function compressedKey(publicKey: string): Uint8Array {
  const bytes = decodeBase64url(publicKey);
  if (bytes?.length !== 33) throw badRequest('', 'expected a public key of 33 bytes');
  return bytes;
}

function checksum(primitives: Primitives, payload: Uint8Array): Uint8Array {
  return primitives.sha256(primitives.sha256(payload)).subarray(0, 4);
}

/** Decodes an address of 34 characters; decoding is quadratic, so nothing longer is decoded. */
function decodeBase58(text: string): Uint8Array | undefined {
  if (!/^[1-9A-HJ-NP-Za-km-z]{34}$/.test(text)) return undefined;
  return base58.decode(text);
}
