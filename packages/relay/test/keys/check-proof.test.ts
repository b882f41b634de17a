import { expect, test } from 'vitest';
import { checkSecret, isCheckProof, makeCheckProof } from '../../src/keys/check-proof.ts';

const secret = checkSecret(Buffer.alloc(32, 1));

test('a proof holds for a minute before and after it was made, for the same key alone', () => {
  const proof = makeCheckProof(secret, 1_000);
  const accepted = [940, 1_000, 1_060].map((now) => isCheckProof(secret, proof, now));
  expect(accepted).toEqual([true, true, true]);
  const late = [939, 1_061].map((now) => isCheckProof(secret, proof, now));
  expect(late).toEqual([false, false]);
  expect(isCheckProof(checkSecret(Buffer.alloc(32, 2)), proof, 1_000)).toBe(false);
});

test('a proof with another time, nonce or MAC, or of another form, is none', () => {
  const [time, nonce, mac = ''] = makeCheckProof(secret, 1_000).split('.');
  const other = `${mac.startsWith('0') ? '1' : '0'}${mac.slice(1)}`;
  const wrong = [
    `1001.${nonce}.${mac}`,
    `${time}.${'0'.repeat(32)}.${mac}`,
    `${time}.${nonce}.${other}`,
  ];
  for (const proof of [...wrong, `${time}.${nonce}`, '', undefined, ['x'], mac]) {
    expect(isCheckProof(secret, proof, 1_000)).toBe(false);
  }
});
