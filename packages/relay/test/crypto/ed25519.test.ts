/** One verdict of both engines for each Ed25519 signature (01 §5.2; decision 0026). */
import { decodeBase64url, fromHex } from '@posthouse/protocol';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { craft, multiply, order, Point, torsion } from '../../../protocol/test/crypto/crafted.ts';
import { littleEndian } from '../../../protocol/test/crypto/numbers.ts';
import signatures from '../../../protocol/vectors/signatures.json' with { type: 'json' };
import { type Engine, engines, verifiers } from './verifiers.ts';

const { ed25519 } = nodePrimitives;
const openVerifier = verifiers();

/** What one engine says of one signature, through the front door of the relay's verifier. */
async function verdict(
  engine: Engine,
  { publicKey, message, signature }: Record<'publicKey' | 'message' | 'signature', Uint8Array>,
): Promise<boolean> {
  const check = { scheme: 'ed25519', publicKey, message, signature } as const;
  const outcome = openVerifier(engine).verify([check], 'object');
  return await outcome.then(
    () => true,
    (error) => {
      if (error.code !== 'invalid_signature') throw error;
      return false;
    },
  );
}

describe.each(engines)('01 §5.2: Ed25519 on %s', (engine) => {
  const cases = signatures.cases.filter(
    ({ operation, input }) => operation === 'signature.verify' && input.scheme === 'ed25519',
  );

  test.each(cases)('the vector "$name"', async ({ input, expected }) => {
    const bytes = (text: string | undefined) => decodeBase64url(text ?? '') as Uint8Array;
    const parts = {
      publicKey: bytes(input.public_key),
      message: fromHex(input.message_hex ?? ''),
      signature: bytes(input.signature),
    };
    expect(await verdict(engine, parts)).toBe(expected.valid);
  });

  test('every combination of torsion parts is judged without the cofactor', async () => {
    for (let keyTorsion = 0n; keyTorsion < 8n; keyTorsion += 1n) {
      for (let nonceTorsion = 0n; nonceTorsion < 8n; nonceTorsion += 1n) {
        const message = Uint8Array.of(Number(keyTorsion), Number(nonceTorsion));
        const { valid, ...crafted } = craft({ a: 5n, r: 7n, keyTorsion, nonceTorsion, message });
        expect(await verdict(engine, { ...crafted, message })).toBe(valid);
      }
    }
  });

  test('keys and R of small order, S from the group order on, are refused', async () => {
    const message = Uint8Array.of(1);
    const seed = nodeRandom(32);
    const publicKey = ed25519.publicKey(seed);
    const signature = ed25519.sign(seed, message);
    const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];
    const above = BigInt(`0x${Buffer.from(s).reverse().toString('hex')}`) + order;
    const others = [Buffer.concat([r, littleEndian(above, 32)])];
    for (let index = 0n; index < 8n; index += 1n) {
      const small = multiply(torsion, index).toBytes();
      others.push(Buffer.concat([small, s]));
      const forged = Buffer.concat([Point.BASE.toBytes(), littleEndian(1n, 32)]);
      expect(await verdict(engine, { publicKey: small, message, signature: forged })).toBe(false);
    }
    for (const other of others) {
      expect(await verdict(engine, { publicKey, message, signature: other })).toBe(false);
    }
    expect(await verdict(engine, { publicKey, message, signature })).toBe(true);
  });
});

test('01 §5.2: the engines agree on changed keys, signatures and messages', async () => {
  const part = fc.bigInt({ min: 0n, max: 7n });
  const scalar = fc.bigInt({ min: 1n, max: order - 1n });
  // No change, or one bit of the key, the signature or the message.
  const change = fc.option(fc.nat((32 + 64 + 8) * 8 - 1));
  const property = fc.asyncProperty(
    ...[scalar, scalar, part, part, fc.uint8Array({ minLength: 8, maxLength: 8 }), change],
    async (a, r, keyTorsion, nonceTorsion, message, bit) => {
      const crafted = craft({ a, r, keyTorsion, nonceTorsion, message });
      const bytes = Buffer.concat([crafted.publicKey, crafted.signature, message]);
      if (bit !== null) bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
      const parts = {
        publicKey: bytes.subarray(0, 32),
        signature: bytes.subarray(32, 96),
        message: bytes.subarray(96),
      };
      const [openSsl, libsodium] = await Promise.all(engines.map((one) => verdict(one, parts)));
      expect(libsodium).toBe(openSsl);
      if (bit === null) expect(openSsl).toBe(crafted.valid);
    },
  );
  await fc.assert(property, { numRuns: 300 });
});
