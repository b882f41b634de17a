import { ProtocolError } from '@posthouse/protocol';
import { expect, test } from 'vitest';
import type { Sessions } from '../../src/context.ts';
import { RateLimiter } from '../../src/dispatch/rate-limiter.ts';
import { TokenLookups } from '../../src/dispatch/token-lookups.ts';
import { defaultLimits } from '../../src/limits.ts';
import type { Session } from '../../src/sessions/session.ts';
import { ManualClock } from '../support/clock.ts';

/** 02 §18: what looking up tokens costs their address. */

const session: Session = { id: 'x', mode: 'account', account: 'ann', expiresAt: 2 ** 40 };

interface Lookup {
  readonly end: (session: Session | undefined) => void;
  readonly fail: (error: Error) => void;
}

function lookups(burst: number) {
  const pending: Lookup[] = [];
  const sessions = {
    isKnown: (token: string) => token === 'known',
    find: () => new Promise((end, fail) => pending.push({ end, fail })),
  } as unknown as Sessions;
  const limits = { ...defaultLimits, tokenLookups: 2 };
  const clock = new ManualClock();
  const addresses = new RateLimiter({ keys: 10, rate: 1, burst, clock });
  const tokens = new TokenLookups({ context: { clock, limits, sessions }, addresses });
  const find = async (token: string, address = 'a') => {
    try {
      return (await tokens.find({ token, origin: 'o', address })) === undefined ? 'none' : 'found';
    } catch (error) {
      return (error as { readonly code: string }).code;
    }
  };
  return { find, pending, addresses, clock };
}

test('a token that is good for nothing costs one call, a good one nothing', async () => {
  const { find, pending, addresses } = lookups(2);
  const answers = [find('a'), find('b')];
  pending[0]?.end(undefined);
  pending[1]?.end(session);
  expect(await Promise.all(answers)).toEqual(['none', 'found']);
  expect([addresses.take('a'), addresses.take('a')]).toEqual([0, 1]);
});

test('02 §18: a look-up that fails costs nothing', async () => {
  const { find, pending, addresses } = lookups(2);
  const answer = find('a');
  pending[0]?.fail(new ProtocolError('temporarily_unavailable', 'storage is away'));
  expect(await answer).toBe('temporarily_unavailable');
  expect([addresses.take('a'), addresses.take('a'), addresses.take('a')]).toEqual([0, 0, 1]);
});

test('of an address without calls, a few tokens at once are looked up, and others wait', async () => {
  const { find, pending, addresses } = lookups(1);
  addresses.take('a');
  const answers = [find('guessed 1'), find('guessed 2'), find('good'), find('guessed 3')];
  await Promise.resolve();
  expect(pending.length).toBe(2);
  const known = find('known');
  pending[2]?.end(session);
  expect(await known).toBe('found');
  pending[0]?.end(undefined);
  expect(await answers[0]).toBe('rate_limited');
  await turn();
  expect(pending.length).toBe(4);
  pending[3]?.end(session);
  expect(await answers[2]).toBe('found');
  await turn();
  pending[4]?.end(undefined);
  pending[1]?.end(undefined);
  expect(await Promise.all(answers)).toEqual([
    ...['rate_limited', 'rate_limited', 'found', 'rate_limited'],
  ]);
  const next = find('next');
  await turn();
  pending[5]?.end(session);
  expect(await next).toBe('found');
});

test('02 §18: a look-up waits five seconds for its place at the most', async () => {
  const { find, pending, addresses, clock } = lookups(1);
  addresses.take('a');
  const [first, , late] = [find('1'), find('2'), find('3')];
  await turn();
  clock.advance(5);
  expect(await late).toBe('rate_limited');
  pending[0]?.end(session);
  expect(await first).toBe('found');
  await turn();
  expect(pending.length).toBe(2);
  // A look-up that waits no more takes no place.
  addresses.charge('a', 10);
  void find('4');
  await turn();
  expect(pending.length).toBe(3);
});

const turn = () => new Promise<void>((go) => setImmediate(go));
