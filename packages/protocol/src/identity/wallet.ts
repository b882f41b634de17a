/**
 * Account keys from a NEP-6 wallet file (chapter 01, appendix C). Not part of the protocol; the
 * file is JSON by its own rules, so it is read with `JSON.parse` and its extras are ignored.
 */
import { scryptAsync } from '@noble/hashes/scrypt.js';
import { base58 } from '@scure/base';
import type { Primitives } from '../crypto/primitives.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import { concatBytes, equalBytes, utf8 } from '../encoding/bytes.ts';
import { checkSchema, type Static, Type } from '../schema.ts';
import { deriveAccountId } from './account-id.ts';
import type { Network } from './network.ts';

/**
 * The costs a file may ask for, so that a hostile one cannot take the memory or the day. Standard
 * wallets have 16384, 8, 8: 16 MiB, and a sixteenth of the work allowed here.
 */
const scryptBounds = {
  /** Bytes, `128 * r * (n + p)`. */
  memory: 268_435_456,
  /** Block operations, `n * r * p`. */
  work: 16_777_216,
} as const;

/** The used members of a wallet file; everything else in it is tolerated. */
export const Nep6Wallet = Type.Object({
  scrypt: Type.Object({
    n: Type.Integer({ minimum: 2 }),
    r: Type.Integer({ minimum: 1 }),
    p: Type.Integer({ minimum: 1 }),
  }),
  accounts: Type.Array(
    Type.Object({
      address: Type.String(),
      isDefault: Type.Optional(Type.Boolean()),
      /** NEP-2 text of the private key; `null` for an account that is only watched. */
      key: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    }),
  ),
});
export type Nep6Wallet = Static<typeof Nep6Wallet>;

/**
 * Why a wallet did not open:
 * - `format`: not a NEP-6 wallet, or a key text that is damaged;
 * - `cost`: scrypt parameters beyond `scryptBounds`;
 * - `account`: the wallet has no such account, or none with a key;
 * - `password`: the password is wrong, or the key is damaged.
 */
export type WalletFault = 'format' | 'cost' | 'account' | 'password';

/** A wallet that does not open. Its message holds no secret. */
export class WalletError extends Error {
  override readonly name = 'WalletError';
  readonly fault: WalletFault;

  constructor(fault: WalletFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** An account key taken out of a wallet. */
export interface WalletKey {
  /** Account ID on the network given. */
  readonly account: string;
  /** Neo N3 address. */
  readonly address: string;
  /** 32 bytes. */
  readonly privateKey: Uint8Array;
  /** Compressed, base64url. */
  readonly publicKey: string;
}

/**
 * Checks the parsed content of a wallet file.
 * @throws WalletError `format`, `cost`
 */
export function checkNep6Wallet(value: unknown): asserts value is Nep6Wallet {
  try {
    checkSchema(Nep6Wallet, value);
  } catch (cause) {
    throw new WalletError('format', 'not a NEP-6 wallet: choose the file of a wallet', { cause });
  }
  const { n, r, p } = value.scrypt;
  if (128 * r * (n + p) > scryptBounds.memory || n * r * p > scryptBounds.work) {
    throw new WalletError('cost', 'scrypt parameters of the wallet are too costly');
  }
  if (!Number.isInteger(Math.log2(n))) {
    throw new WalletError('format', 'scrypt n is not a power of two');
  }
}

/**
 * Decrypts one account of a wallet: the one with `address`, else the default one, else the first
 * with a key. Gives way to other work every few milliseconds, so that a page stays responsive; with
 * usual costs it takes about a second.
 *
 * @param value parsed content of the file
 * @throws WalletError
 * @example
 * const key = await openNep6Wallet(network, JSON.parse(text), { password: 'secret' });
 * const signer = accountSigner(network, key.privateKey);
 */
export async function openNep6Wallet(
  network: Network,
  value: unknown,
  { password, address }: { readonly password: string; readonly address?: string },
): Promise<WalletKey> {
  const { account, encrypted, addressHash, cost } = encryptedKey(network, value, address);
  const { mask, cipher } = await nep2Keys({ password, salt: addressHash, cost });
  const privateKey = xor(cipher.decrypt(encrypted), mask);
  return checkKey(network, privateKey, account);
}

/**
 * Checks, without the password, that a wallet has an undamaged key of an address.
 *
 * @param value parsed content of the file
 * @throws WalletError `format`, `cost`, `account`
 * @example
 * const [, , address = ''] = account.split(':');
 * checkWalletKey(network, JSON.parse(text), address);
 */
export function checkWalletKey(network: Network, value: unknown, address: string): void {
  encryptedKey(network, value, address);
}

/** The key that {@link openNep6Wallet} decrypts, and what it needs for that. */
function encryptedKey({ primitives }: Network, value: unknown, address: string | undefined) {
  checkNep6Wallet(value);
  const account = chooseAccount(value, address);
  const { encrypted, addressHash } = decodeNep2(primitives, account.key);
  if (!equalBytes(addressHash, hashOfAddress(primitives, account.address))) {
    throw new WalletError('format', 'the key is of another address');
  }
  return { account: account.address, encrypted, addressHash, cost: value.scrypt };
}

function chooseAccount(
  { accounts }: Nep6Wallet,
  address: string | undefined,
): { readonly address: string; readonly key: string } {
  const usable = accounts.flatMap(({ key, ...rest }) =>
    typeof key === 'string' ? [{ ...rest, key }] : [],
  );
  const chosen =
    address === undefined
      ? (usable.find(({ isDefault }) => isDefault === true) ?? usable[0])
      : usable.find((account) => account.address === address);
  if (chosen === undefined)
    throw new WalletError('account', 'the wallet has no such key: choose one that it has');
  return chosen;
}

/** NEP-2: `01 42 E0`, address hash (4), encrypted key (32), checksum (4), in Base58. */
function decodeNep2(
  primitives: Primitives,
  text: string,
): { addressHash: Uint8Array; encrypted: Uint8Array } {
  const damaged = new WalletError('format', 'the key text is not NEP-2');
  if (!/^6P[1-9A-HJ-NP-Za-km-z]{56}$/.test(text)) throw damaged;
  const bytes = base58.decode(text);
  const payload = bytes.subarray(0, 39);
  const [first, second, flags] = payload;
  const checksum = doubleHash(primitives, payload).subarray(0, 4);
  const framed = bytes.length === 43 && equalBytes(bytes.subarray(39), checksum);
  if (!framed || first !== 0x01 || second !== 0x42 || flags !== 0xe0) throw damaged;
  return { addressHash: payload.slice(3, 7), encrypted: payload.slice(7) };
}

function hashOfAddress(primitives: Primitives, address: string): Uint8Array {
  return doubleHash(primitives, utf8(address)).subarray(0, 4);
}

function doubleHash(primitives: Primitives, bytes: Uint8Array): Uint8Array {
  return primitives.sha256(primitives.sha256(bytes));
}

/**
 * Encrypts a private key as a NEP-2 text.
 *
 * @param privateKey 32 bytes; of `address`
 */
export async function encryptNep2(
  primitives: Primitives,
  privateKey: Uint8Array,
  { address, ...from }: { password: string; address: string; cost: Nep6Wallet['scrypt'] },
): Promise<string> {
  const salt = hashOfAddress(primitives, address);
  const { mask, cipher } = await nep2Keys({ ...from, salt });
  const encrypted = cipher.encrypt(xor(privateKey, mask));
  const payload = concatBytes(Uint8Array.of(0x01, 0x42, 0xe0), salt, encrypted);
  return base58.encode(concatBytes(payload, doubleHash(primitives, payload).subarray(0, 4)));
}

async function nep2Keys(from: {
  readonly password: string;
  readonly salt: Uint8Array;
  readonly cost: Nep6Wallet['scrypt'];
}) {
  const { n, r, p } = from.cost;
  // The only text of the protocol that is normalized (appendix C).
  const password = utf8(from.password.normalize('NFC'));
  const derived = await scryptAsync(password, from.salt, { N: n, r, p, dkLen: 64 });
  // Loaded here: it computes tables that a program without a wallet does not need.
  const { ecb } = await import('@noble/ciphers/aes.js');
  const cipher = ecb(derived.subarray(32), { disablePadding: true });
  return { mask: derived.subarray(0, 32), cipher };
}

function xor(bytes: Uint8Array, mask: Uint8Array): Uint8Array {
  return bytes.map((byte, index) => byte ^ (mask[index] as number));
}

/** Only the right password gives the key of the address: a wrong one gives other 32 bytes. */
function checkKey(network: Network, privateKey: Uint8Array, address: string): WalletKey {
  const publicKey = publicKeyOf(network.primitives, privateKey);
  const account = publicKey === undefined ? undefined : deriveAccountId(network, publicKey);
  if (publicKey === undefined || account !== `neo:${network.magic}:${address}`) {
    throw new WalletError(
      'password',
      'the password is wrong, or the key is damaged: try the password again, or another backup',
    );
  }
  return { account, address, privateKey, publicKey };
}

/** `undefined` for the few 32-byte values that are no P-256 private key. */
function publicKeyOf(primitives: Primitives, privateKey: Uint8Array): string | undefined {
  try {
    return encodeBase64url(primitives.p256.publicKey(privateKey));
  } catch {
    return undefined;
  }
}
