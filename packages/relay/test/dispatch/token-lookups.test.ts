import { expect, test } from 'vitest';
import type { Sessions } from '../../src/context.ts';
import { RateLimiter } from '../../src/dispatch/rate-limiter.ts';
import { TokenLookups } from '../../src/dispatch/token-lookups.ts';
import { defaultLimits } from '../../src/limits.ts';
import type { Session } from '../../src/sessions/session.ts';
import { ManualClock } from '../support/clock.ts';

/** 02 §18: what looking up tokens costs their address. */

const session: Session = { id: 'x', mode: 'account', account: 'ann', expiresAt: 2 ** 40 };

function lookups(burst: number) {
  const pending: ((session: Session | undefined) => void)[] = [];
  const sessions = {
    isKnown: (token: string) => token === 'known',
    find: () => new Promise((resolve) => pending.push(resolve)),
  } as unknown as Sessions;
  const limits = { ...defaultLimits, tokenLookups: 2 };
  const addresses = new RateLimiter({ keys: 10, rate: 1, burst, clock: new ManualClock() });
  const tokens = new TokenLookups({ context: { limits, sessions }, addresses });
  const find = async (token: string, address = 'a') => {
    try {
      return (await tokens.find({ token, origin: 'o', address })) === undefined ? 'none' : 'found';
    } catch (error) {
      return (error as { readonly code: string }).code;
    }
  };
  return { find, pending, addresses };
}

test('a token that is good for nothing costs one call, a good one nothing', async () => {
  const { find, pending, addresses } = lookups(2);
  const answers = [find('a'), find('b')];
  pending[0]?.(undefined);
  pending[1]?.(session);
  expect(await Promise.all(answers)).toEqual(['none', 'found']);
  expect([addresses.take('a'), addresses.take('a')]).toEqual([0, 1]);
});

test('of an address without calls, a few tokens at once are looked up', async () => {
  const { find, pending, addresses } = lookups(1);
  addresses.take('a');
  const [good, guessed] = [find('1'), find('2')];
  expect(await find('3')).toBe('rate_limited');
  expect(pending.length).toBe(2);
  const known = find('known');
  pending[0]?.(session);
  pending[1]?.(undefined);
  pending[2]?.(session);
  expect(await Promise.all([good, guessed, known])).toEqual(['found', 'rate_limited', 'found']);
  const next = find('4');
  pending[3]?.(session);
  expect(await next).toBe('found');
});
