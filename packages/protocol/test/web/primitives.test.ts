import { afterEach, describe, expect, test, vi } from 'vitest';
import { computeAsync, noblePrimitives, verifySignatures } from '../../src/crypto/index.ts';
import { utf8 } from '../../src/index.ts';
import { webPrimitives } from '../../src/web/primitives.ts';
import { ownVectorTexts } from '../vectors/files.ts';
import { agreementTests } from './agreement.ts';

agreementTests(ownVectorTexts());

const seed = new Uint8Array(32).fill(7);
const publicKey = noblePrimitives.ed25519.publicKey(seed);
const checkOf = (text: string, signed = text) => ({
  ...({ scheme: 'ed25519', publicKey, message: utf8(text) } as const),
  signature: noblePrimitives.ed25519.sign(seed, utf8(signed)),
});

describe('work on asynchronous primitives', () => {
  afterEach(() => vi.restoreAllMocks());

  test('is computed by the platform: nothing is left for the calling thread', async () => {
    const platform = vi.spyOn(crypto.subtle, 'verify');
    const here = { ...webPrimitives.ed25519, verify: vi.fn(() => true) };
    const primitives = { ...webPrimitives, ed25519: here };
    const checks = ['one', 'two', 'one'].map((text) => checkOf(text));
    await computeAsync(primitives, (each) => verifySignatures(each, checks, 'notes'));
    expect(here.verify).not.toHaveBeenCalled();
    expect(platform.mock.calls.length).toBeGreaterThanOrEqual(3);
  });

  test('has the result of its second run: a signature that is not valid is refused', async () => {
    const checks = [checkOf('one'), checkOf('two', 'other'), checkOf('three')];
    const work = computeAsync(webPrimitives, (each) => verifySignatures(each, checks, 'notes'));
    await expect(work).rejects.toMatchObject({ code: 'invalid_signature' });
    const verdicts = await computeAsync(webPrimitives, ({ ed25519 }) =>
      checks.map((check) => ed25519.verify(check.publicKey, check.message, check.signature)),
    );
    expect(verdicts).toEqual([true, false, true]);
  });

  test('what only the second run asks for is decided on the calling thread', async () => {
    const [first, other, forged] = [
      checkOf('one', 'another'),
      checkOf('two'),
      checkOf('three', 'forged'),
    ];
    const isValid = ({ ed25519 }: typeof noblePrimitives, check: typeof first) =>
      ed25519.verify(check.publicKey, check.message, check.signature);
    const verdicts = await computeAsync(webPrimitives, (each) =>
      isValid(each, first) ? [] : [isValid(each, other), isValid(each, forged)],
    );
    expect(verdicts).toEqual([true, false]);
  });

  test('a result of one scheme is none of the other', async () => {
    const verify = vi.fn(async ({ scheme }: { scheme: string }) => scheme === 'ed25519');
    const refuse = { ...webPrimitives.p256, verify: () => false };
    const primitives = {
      ...webPrimitives,
      p256: refuse,
      asynchronous: { verify, shared: async () => undefined },
    };
    const check = checkOf('one');
    const input = [check.publicKey, check.message, check.signature] as const;
    const verdicts = await computeAsync(primitives, ({ ed25519, p256 }) => [
      ed25519.verify(...input),
      p256.verify(...input),
    ]);
    expect(verdicts).toEqual([true, false]);
  });

  test('runs once, as it is, without asynchronous primitives', async () => {
    const work = vi.fn(() => 'done');
    expect(await computeAsync(noblePrimitives, work)).toBe('done');
    expect(work.mock.calls).toEqual([[noblePrimitives]]);
  });
});
