import { encodeBase64url } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, expect, test, vi } from 'vitest';
import { BoundedMap } from '../../src/bounded-map.ts';
import { defaultLimits } from '../../src/limits.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { SessionCache } from '../../src/sessions/session-cache.ts';
import type { Storage } from '../../src/storage/types.ts';
import { ManualClock } from '../support/clock.ts';

const origin = 'https://here';

let bus: MemoryBus;
let sessions: SessionCache;
/** Whose session is read from storage, and how many were. */
let stored: { account: string; deviceId: string } | undefined;
let reads: number;

beforeEach(() => open(20));

function open(cachedSessions: number): void {
  reads = 0;
  const clock = new ManualClock();
  const row = () => ({
    ...{ account: stored?.account, mode: 'device', device_id: stored?.deviceId },
    ...{ origin, expires_at: clock.now() + 100, home_relay: null },
  });
  const storage = {
    read: (work: (tx: object) => Promise<unknown>) => {
      reads += 1;
      return work({ get: async () => (stored === undefined ? undefined : row()) });
    },
  } as object as Storage;
  bus = new MemoryBus((error) => {
    throw error;
  });
  const limits = { ...defaultLimits, cachedSessions };
  sessions = new SessionCache({ storage, clock, bus, limits, blocks: { hasAccount: () => false } });
}

const find = (token: string) => sessions.find(token, origin);

/** Reads a new session, which is remembered; returns its token. */
async function remembered(account: string, deviceId = 'phone'): Promise<string> {
  stored = { account, deviceId };
  const token = encodeBase64url(nodeRandom(32));
  expect(await find(token)).toMatchObject({ account, deviceId });
  stored = undefined;
  return token;
}

const revoke = (account: string) =>
  bus.publish([{ kind: 'revoked', account, deviceIds: ['phone'] }]);

test('02 §10.3: sessions of a removed device are forgotten, and those of others stay', async () => {
  const phone = await remembered('ann');
  const others = [await remembered('ann', 'laptop'), await remembered('bob')];
  revoke('ann');
  expect(await find(phone)).toBeUndefined();
  for (const token of others) expect(await find(token)).toBeDefined();
});

test('02 §18: for a removed device, only sessions of its account are looked at', async () => {
  for (const account of ['ann', 'bob', 'cem']) await remembered(account);
  const looked = vi.spyOn(BoundedMap.prototype, 'peek');
  const walked = vi.spyOn(BoundedMap.prototype, 'entries');
  revoke('bob');
  expect(walked).not.toHaveBeenCalled();
  expect(new Set(looked.mock.calls.map(([key]) => key)).size).toBe(1);
  vi.restoreAllMocks();
});

test('02 §10.3: sessions of an account that were evicted and read again are forgotten, too', async () => {
  open(2);
  const first = await remembered('ann');
  for (const account of ['bob', 'cem', 'dan']) await remembered(account);
  stored = { account: 'ann', deviceId: 'phone' };
  const before = reads;
  await find(first);
  expect(reads).toBe(before + 1);
  stored = undefined;
  expect(await find(first)).toBeDefined();
  revoke('ann');
  expect(await find(first)).toBeUndefined();
});
