/** Tests that Web Crypto and `@noble/*` agree; they run on Node and in a page of each engine. */
import { describe, expect, test } from 'vitest';
import { run } from '../../scripts/vectors/operations.ts';
import {
  type AsyncPrimitives,
  noblePrimitives,
  type SignatureCheck,
} from '../../src/crypto/index.ts';
import { concatBytes } from '../../src/encoding/bytes.ts';
import { fromHex, hex, Network, utf8 } from '../../src/index.ts';
import { type JsonObject, parseJson } from '../../src/json/index.ts';
import { webPrimitives } from '../../src/web/primitives.ts';
import { craft } from '../crypto/crafted.ts';
import { bigEndian } from '../crypto/numbers.ts';

interface VectorFile {
  readonly service_word: string;
  readonly network_context: string;
  readonly cases: readonly {
    readonly name: string;
    readonly network_context?: string;
    readonly operation: string;
    readonly input: JsonObject;
    readonly expected: JsonObject;
  }[];
}

const asynchronous = webPrimitives.asynchronous as AsyncPrimitives;
const key = fromHex('c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721');
const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** @param vectors texts of our own vectors, by name */
export function agreementTests(vectors: Iterable<readonly [string, string]>): void {
  describe('01 §5: Web Crypto', () => {
    for (const [file, text] of vectors) {
      const { cases, service_word: word, ...given } = parseJson(text) as unknown as VectorFile;
      test(`has the results of our vectors: ${file}`, async () => {
        for (const { name, operation, input, expected, ...own } of cases) {
          const context = own.network_context ?? given.network_context;
          const network = new Network({ context, word, primitives: webPrimitives });
          const result = await network.computeAsync((each) => run(operation, each, input));
          expect([name, result]).toEqual([name, expected]);
        }
      });
    }

    test('§5.2: decides on crafted Ed25519 signatures as noble does', async () => {
      const checks: SignatureCheck[] = [];
      for (let part = 0; part < 64; part += 1) {
        const message = utf8(`message ${part}`);
        const [keyTorsion, nonceTorsion] = [BigInt(part >> 3), BigInt(part & 7)];
        const crafted = craft({ a: 5n, r: 7n, keyTorsion, nonceTorsion, message });
        checks.push({ scheme: 'ed25519', ...crafted, message });
        // R of small order, or both.
        const small = craft({ a: 3n, r: 0n, keyTorsion, nonceTorsion, message });
        checks.push({ scheme: 'ed25519', ...small, message });
      }
      const [first] = checks as [SignatureCheck];
      checks.push(...malformed(first), { ...first, message: utf8('another') });
      await expectAgreement(checks, { valid: 5 });
    });

    test('§5.1: decides on P-256 signatures as noble does, with each form of s', async () => {
      const message = utf8('sample');
      const publicKey = noblePrimitives.p256.publicKey(key);
      const signature = noblePrimitives.p256.sign(key, message);
      const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
      const other = concatBytes(r, bigEndian(n - BigInt(`0x${hex(s)}`), 32));
      const check = { scheme: 'p256', publicKey, message, signature } as const;
      const numbers = [0n, n, n + 1n, 2n ** 256n - 1n].map((value) => bigEndian(value, 32));
      const keys = [0, 2, 4, 255].map((prefix) => Uint8Array.of(prefix, ...publicKey.subarray(1)));
      const checks: SignatureCheck[] = [
        check,
        { ...check, signature: other },
        ...numbers.map((value) => ({ ...check, signature: concatBytes(value, s) })),
        ...numbers.map((value) => ({ ...check, signature: concatBytes(r, value) })),
        ...[...keys, new Uint8Array(33)].map((each) => ({ ...check, publicKey: each })),
        { ...check, publicKey: Uint8Array.of(2, ...new Uint8Array(32).fill(255)) },
        ...malformed(check),
      ];
      await expectAgreement(checks, { valid: 2 });
    });

    test('E2 to E4: agrees on keys as noble does, and refuses a secret of zeros', async () => {
      const peer = noblePrimitives.x25519.publicKey(new Uint8Array(32).fill(9));
      const unusable = [
        new Uint8Array(32),
        Uint8Array.of(1, ...new Uint8Array(31)),
        fromHex('e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800'),
        fromHex(`ec${'ff'.repeat(30)}7f`),
        new Uint8Array(31),
        new Uint8Array(33),
      ];
      const usable = [peer, new Uint8Array(32).fill(255), Uint8Array.of(2, ...new Uint8Array(31))];
      for (const publicKey of [...unusable, ...usable]) {
        const shared = await asynchronous.shared(key, publicKey);
        expect(shared).toEqual(noblePrimitives.x25519.shared(key, publicKey));
        expect(shared === undefined).toBe(unusable.includes(publicKey));
      }
    });
  });
}

/** The check with key or signature too short, too long, and with each of some bits changed. */
function malformed(check: SignatureCheck): SignatureCheck[] {
  const { publicKey, signature } = check;
  const changed = (bytes: Uint8Array, at: number) =>
    bytes.map((byte, index) => (index === at ? byte ^ 0x80 : byte));
  return [
    { ...check, publicKey: publicKey.subarray(1) },
    { ...check, publicKey: concatBytes(publicKey, Uint8Array.of(0)) },
    { ...check, signature: signature.subarray(1) },
    { ...check, signature: concatBytes(signature, Uint8Array.of(0)) },
    ...[0, 15, 31].map((at) => ({ ...check, publicKey: changed(publicKey, at) })),
    ...[0, 31, 32, 63].map((at) => ({ ...check, signature: changed(signature, at) })),
  ];
}

async function expectAgreement(
  checks: readonly SignatureCheck[],
  { valid }: { readonly valid: number },
): Promise<void> {
  const found = await Promise.all(checks.map((check) => asynchronous.verify(check)));
  const expected = checks.map(({ scheme, publicKey, message, signature }) =>
    noblePrimitives[scheme].verify(publicKey, message, signature),
  );
  expect(found).toEqual(expected);
  expect(found.filter((isValid) => isValid).length).toBeGreaterThanOrEqual(valid);
}
