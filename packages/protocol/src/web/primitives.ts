/**
 * The primitives of `@posthouse/protocol` for browsers: those of `@noble/*`, and the costly ones on
 * Web Crypto as well, which computes on other threads. An entry of its own, so that only programs
 * that use them load them.
 */
import { p256 } from '@noble/curves/nist.js';
import { isAcceptableEd25519Key, isAcceptableEd25519Signature } from '../crypto/ed25519-keys.ts';
import { noblePrimitives } from '../crypto/noble.ts';
import type { Primitives, SignatureCheck } from '../crypto/primitives.ts';
import { concatBytes, equalBytes, fromHex } from '../encoding/bytes.ts';
import { agreementProbe, ed25519Probes, p256Probes } from './probes.ts';
import { shortTurns } from './short-turns.ts';

const { subtle } = globalThis.crypto;

/** What the platform does not compute: one after the other, in short turns of the page's thread. */
const here = shortTurns();

/** Before the 32 bytes of an X25519 private key: Web Crypto imports no raw ones. */
const privateKeyPrefix = fromHex('302e020100300506032b656e04220420');

const algorithms = {
  ed25519: { imported: { name: 'Ed25519' }, verified: { name: 'Ed25519' } },
  p256: {
    imported: { name: 'ECDSA', namedCurve: 'P-256' },
    verified: { name: 'ECDSA', hash: 'SHA-256' },
  },
} as const;

/**
 * {@link Primitives} for browsers. Signatures and key agreements are computed by Web Crypto, if it
 * has the algorithm, and if it decides samples as chapter 01, section 5, does; else by `@noble/*`.
 * The profile of section 5.2 is applied before either sees a signature.
 *
 * @example
 * import { webPrimitives } from '@posthouse/client/web';
 * import { Network } from '@posthouse/protocol';
 * const network = new Network({ context: `neo:860833102:0x${'01'.repeat(20)}`, primitives: webPrimitives });
 */
export const webPrimitives: Primitives = {
  ...noblePrimitives,
  asynchronous: {
    async verify(check) {
      return (
        isWellFormed(check) &&
        ((await verifiedByPlatform(check)) ?? (await here(() => verifiedByNoble(check))))
      );
    },
    async shared(privateKey, publicKey) {
      if (publicKey.length !== 32) return undefined;
      const shared = await agreedByPlatform(privateKey, publicKey);
      if (shared === undefined) {
        return await here(() => noblePrimitives.x25519.shared(privateKey, publicKey));
      }
      return shared.every((byte) => byte === 0) ? undefined : shared;
    },
  },
};

/** Whether a signature may verify at all: the profile of 01 §5.2, and the lengths of 01 §5.1. */
function isWellFormed({ scheme, publicKey, signature }: SignatureCheck): boolean {
  if (scheme === 'p256') return publicKey.length === 33 && signature.length === 64;
  return isAcceptableEd25519Key(publicKey) && isAcceptableEd25519Signature(signature);
}

function verifiedByNoble({ scheme, publicKey, message, signature }: SignatureCheck): boolean {
  return noblePrimitives[scheme].verify(publicKey, message, signature);
}

/**
 * Which algorithms the platform decides as the chapter does; asked at the first use. WebKit on
 * libgcrypt does not for Ed25519 keys with a part of small order.
 */
const isTrusted = {
  ed25519: once(() => decidesAsExpected('ed25519', ed25519Probes)),
  p256: once(() => decidesAsExpected('p256', p256Probes)),
  x25519: once(async () => {
    const { privateKey, publicKey, shared } = agreementProbe;
    return equalBytes(await agree(privateKey, publicKey), shared);
  }),
};

async function decidesAsExpected(
  scheme: SignatureCheck['scheme'],
  probes: typeof ed25519Probes,
): Promise<boolean> {
  for (const { isValid, ...probe } of probes) {
    if ((await verify({ scheme, ...probe })) !== isValid) return false;
  }
  return true;
}

/** @returns `undefined` if the platform does not decide it */
async function verifiedByPlatform(check: SignatureCheck): Promise<boolean | undefined> {
  if (!(await isTrusted[check.scheme]())) return undefined;
  // Platforms refuse keys that are no points when they import them.
  return await verify(check).catch(() => undefined);
}

/** @returns `undefined` if the platform does not compute it; some refuse a secret of zeros */
async function agreedByPlatform(
  privateKey: Uint8Array,
  publicKey: Uint8Array,
): Promise<Uint8Array | undefined> {
  if (!(await isTrusted.x25519())) return undefined;
  return await agree(privateKey, publicKey).catch(() => undefined);
}

async function verify({ scheme, publicKey, message, signature }: SignatureCheck): Promise<boolean> {
  const { imported, verified } = algorithms[scheme];
  // Platforms import no compressed point of this curve.
  const point = scheme === 'p256' ? p256.Point.fromBytes(publicKey).toBytes(false) : publicKey;
  const key = await subtle.importKey('raw', bytesOf(point), imported, false, ['verify']);
  return await subtle.verify(verified, key, bytesOf(signature), bytesOf(message));
}

async function agree(privateKey: Uint8Array, publicKey: Uint8Array): Promise<Uint8Array> {
  const name = 'X25519';
  const secret = concatBytes(privateKeyPrefix, privateKey);
  const [own, peer] = await Promise.all([
    subtle.importKey('pkcs8', bytesOf(secret), { name }, false, ['deriveBits']),
    subtle.importKey('raw', bytesOf(publicKey), { name }, false, []),
  ]);
  return new Uint8Array(await subtle.deriveBits({ name, public: peer }, own, 256));
}

/** Types of Web Crypto refuse memory that threads share. */
const bytesOf = (bytes: Uint8Array) => bytes as Uint8Array<ArrayBuffer>;

/** Asks the platform at the first call; an algorithm that is missing is not trusted. */
function once(ask: () => Promise<boolean>): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined;
  return () => {
    answer ??= ask().catch(() => false);
    return answer;
  };
}
