import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { utf8 } from '@posthouse/protocol';
import { noblePrimitives, type SignatureCheck } from '@posthouse/protocol/crypto';
import { describe, expect, test } from 'vitest';
import { parallelOnPool } from '../../src/crypto/thread-pool.ts';
import { defaultVerifierLimits } from '../../src/crypto/verifier.ts';
import { countTurns } from '../support/full-turns.ts';
import { engines, verifiers } from './verifiers.ts';

const openVerifier = verifiers();
const key = new Uint8Array(32).fill(7);

function check(scheme: 'ed25519' | 'p256', text = 'text'): SignatureCheck {
  const { publicKey, sign } = noblePrimitives[scheme];
  const message = utf8(text);
  return { scheme, publicKey: publicKey(key), message, signature: sign(key, message) };
}

const flipped = (bytes: Uint8Array) => bytes.map((byte, index) => (index === 40 ? byte ^ 1 : byte));

const oneAtOnce = { ...defaultVerifierLimits, parallel: 1, parallelInWorker: 1 };

describe.each(engines)('%s', (engine) => {
  test.each(['ed25519', 'p256'] as const)(
    'a good %s signature passes, a changed one does not',
    async (scheme) => {
      const verifier = openVerifier(engine);
      const good = check(scheme);
      await verifier.verify([good, good], 'object');
      const bad = [
        { ...good, signature: flipped(good.signature) },
        { ...good, message: utf8('other') },
        { ...good, signature: good.signature.subarray(1) },
        { ...good, publicKey: good.publicKey.subarray(1) },
        { ...good, publicKey: new Uint8Array(good.publicKey.length) },
      ];
      for (const one of bad) {
        await expect(verifier.verify([good, one], 'object')).rejects.toMatchObject({
          code: 'invalid_signature',
          message: 'object: signature does not verify',
        });
      }
    },
  );

  test('01 §5.1 S2: both forms of s are valid', async () => {
    const good = check('p256');
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const hex = Buffer.from(good.signature.subarray(32)).toString('hex');
    const other = (order - BigInt(`0x${hex}`)).toString(16).padStart(64, '0');
    const signature = Buffer.concat([good.signature.subarray(0, 32), Buffer.from(other, 'hex')]);
    await openVerifier(engine).verify([{ ...good, signature }], 'object');
  });

  test('the main thread goes on while signatures are verified', async () => {
    const verifier = openVerifier(engine);
    using turns = countTurns();
    await Promise.all(Array.from({ length: 50 }, () => verifier.verify([check('p256')], 'object')));
    expect(turns.count).toBeGreaterThan(1);
  });

  test('a text is verified once, for each kind of object', async () => {
    const verifier = openVerifier(engine);
    let asked = 0;
    const checks = () => {
      asked += 1;
      return [check('ed25519')];
    };
    await verifier.verifyOnce('a', checks, 'certificate');
    await verifier.verifyOnce('a', checks, 'certificate');
    expect(asked).toBe(1);
    await verifier.verifyOnce('b', checks, 'certificate');
    await verifier.verifyOnce('a', checks, 'grant');
    expect(asked).toBe(3);
  });

  test('a text that did not verify is not remembered', async () => {
    const verifier = openVerifier(engine);
    const good = check('ed25519');
    const bad = { ...good, signature: flipped(good.signature) };
    await expect(verifier.verifyOnce('a', () => [bad], 'x')).rejects.toMatchObject({
      code: 'invalid_signature',
    });
    await verifier.verifyOnce('a', () => [good], 'x');
  });

  test('tells without a check whether a text of a kind verified before', async () => {
    const verifier = openVerifier(engine);
    const good = check('ed25519');
    const bad = { ...good, signature: flipped(good.signature) };
    expect(verifier.hasVerified('text', 'grant')).toBe(false);
    await expect(verifier.verifyOnce('text', () => [bad], 'grant')).rejects.toThrow();
    expect(verifier.hasVerified('text', 'grant')).toBe(false);
    await verifier.verifyOnce('text', () => [good], 'grant');
    expect(verifier.hasVerified('text', 'grant')).toBe(true);
    expect(verifier.hasVerified('text', 'profile')).toBe(false);
    expect(verifier.hasVerified('other', 'grant')).toBe(false);
  });

  test('tells when all verifications have ended, the refused ones too', async () => {
    const verifier = openVerifier(engine, oneAtOnce);
    expect(verifier.settled).toBeUndefined();
    const ended: string[] = [];
    const good = check('ed25519');
    const bad = { ...good, signature: flipped(good.signature) };
    const all = [
      ...[good, check('p256'), good].map((one) =>
        verifier.verify([one], 'object').then(() => ended.push('valid')),
      ),
      verifier.verify([bad], 'object').catch(() => ended.push('refused')),
    ];
    while (verifier.settled !== undefined) await verifier.settled;
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended.sort()).toEqual(['refused', 'valid', 'valid', 'valid']);
    await Promise.all(all);
  });

  test('what is remembered has a bound', async () => {
    const verifier = openVerifier(engine, { ...defaultVerifierLimits, texts: 2, keys: 1 });
    let asked = 0;
    const verify = (text: string) =>
      verifier.verifyOnce(
        text,
        () => {
          asked += 1;
          return [check('ed25519'), check('p256')];
        },
        'x',
      );
    for (const text of ['a', 'b', 'a', 'c', 'a', 'b']) await verify(text);
    // The third text drove out `b`, which was unused for longest.
    expect(asked).toBe(4);
  });

  test('more than may wait are refused for now, and the rest is verified', async () => {
    const verifier = openVerifier(engine, { ...oneAtOnce, waiting: 4 });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, () => verifier.verify([check('ed25519')], 'x')),
    );
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    expect(outcomes[4]).toMatchObject({ reason: { code: 'temporarily_unavailable' } });
    await verifier.verify([check('ed25519')], 'x');
  });

  test('a payer with many delays another by one, and is refused before it', async () => {
    const verifier = openVerifier(engine, { ...oneAtOnce, waiting: 8 });
    const ended: string[] = [];
    const verify = (payer: string) =>
      verifier.verify([check('ed25519')], 'x', payer).then(
        () => ended.push(payer),
        () => ended.push(`${payer} refused`),
      );
    // One is under way, four wait, and the others find no room.
    const many = Array.from({ length: 7 }, () => verify('many'));
    const few = [verify('few'), verify('few')];
    await Promise.all([...many, ...few]);
    const refused = ['many refused', 'many refused'];
    expect(ended).toEqual([...refused, 'many', 'many', 'few', 'many', 'few', 'many', 'many']);
  });
});

describe('decision 0025: verifications on the thread pool', () => {
  test.each([
    [undefined, 3],
    ['5', 4],
    ['2', 1],
    ['1', 1],
    ['0', 1],
    ['-8', 1],
    ['many', 1],
    ['33', 32],
    ['100000', 32],
  ])(
    'with UV_THREADPOOL_SIZE %s are at most %d at once, so that a flush finds a thread',
    (setting, most) => {
      expect(parallelOnPool(32, setting)).toBe(most);
    },
  );

  test('with the threads of this process leave one free', async () => {
    const { verify } = crypto;
    let underWay = 0;
    let most = 0;
    crypto.verify = ((digest: never, data: never, key: never, signature: never, done: never) => {
      underWay += 1;
      most = Math.max(most, underWay);
      const ended = (...results: unknown[]) => {
        underWay -= 1;
        (done as (...results: unknown[]) => void)(...results);
      };
      verify(digest, data, key, signature, ended);
    }) as typeof verify;
    syncBuiltinESMExports();
    try {
      const verifier = openVerifier('OpenSSL');
      const checks = Array.from({ length: 50 }, () => check('ed25519'));
      await Promise.all(checks.map((one) => verifier.verify([one], 'object')));
    } finally {
      crypto.verify = verify;
      syncBuiltinESMExports();
    }
    expect(most).toBe(parallelOnPool(defaultVerifierLimits.parallel));
  });
});
