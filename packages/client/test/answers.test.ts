import { expect, test } from 'vitest';
import { checkResult } from '../src/connect/check-response.ts';

const challenge = { nonce: 'x', created_at: 1, expires_at: 2 };

test('01 §2.1 J9: null in a member of an answer that no rule knows is refused', () => {
  expect(checkResult('auth.challenge', { ...challenge, later: 1 })).toMatchObject(challenge);
  expect(() => checkResult('auth.challenge', { ...challenge, later: { x: null } })).toThrow(
    expect.objectContaining({ reason: 'malformed_result' }),
  );
});

test('02 §3.1: a method without a response object answers null, and nothing else', () => {
  expect(checkResult('profile.publish', null)).toBe(null);
  expect(() => checkResult('profile.publish', {})).toThrow(
    expect.objectContaining({ reason: 'malformed_result' }),
  );
});
