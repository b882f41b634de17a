import { expect, test, vi } from 'vitest';
import { WaitingChallenges } from '../../src/auth/index.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ManualClock } from '../support/clock.ts';

test('02 §18: challenges that expire at one moment are forgotten a few at a time, and leave room at once', () => {
  const clock = new ManualClock();
  const limits = { ...defaultLimits, challenges: 100 };
  const room = new WaitingChallenges({ clock, limits });
  let count = 0;
  const take = (network: number) => {
    count += 1;
    const address = `192.0.${network}.1`;
    const expiresAt = clock.now() + limits.challengeLifetime;
    return room.take({ hash: `hash ${count}`, account: `account ${count}`, address, expiresAt });
  };
  for (let network = 0; network < 100; network += 1) take(network);
  clock.advance(limits.challengeLifetime);
  const forget = vi.spyOn(room, 'forget');
  const forgotten: number[] = [];
  for (let network = 100; network < 200; network += 1) {
    forget.mockClear();
    expect(take(network)).toBeUndefined();
    forgotten.push(forget.mock.calls.length);
  }
  expect(forgotten.slice(0, 8)).toEqual([16, 16, 16, 16, 16, 16, 4, 0]);
});
