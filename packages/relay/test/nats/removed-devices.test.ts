/**
 * Devices removed at a process whose notices reach no other one, as if it had died after its commit:
 * what they still read and hear at the others. The clock stands still unless a test moves it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { TestChannel } from '../fixtures/channel.ts';
import { nextHint, receivedHints } from '../fixtures/hints.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { withoutNats } from '../support/nats.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { startApart } from './processes-apart.ts';

const title = `02 §10.3: a device removed without a notice (${withoutNats ?? 'real'})`;
const patience = { timeout: 20_000, interval: 20 };
const unauthorized = -32001;

describe.skipIf(withoutNats !== undefined)(title, () => {
  const parts = new AsyncDisposableStack();
  /** Cut off from NATS. */
  let a: ServedRelay;
  let b: ServedRelay;

  beforeAll(async () => {
    ({ a, b } = await startApart(parts, { channels: true }));
  });
  afterAll(() => parts.disposeAsync());

  let people = 0;
  let ann: Person;
  let channel: TestChannel;
  let read: { channel_id: string };

  beforeEach(async () => {
    people += 1;
    ann = await a.register(`ann ${people}`, ['phone', 'laptop']);
    channel = await TestChannel.create(a, ann);
    read = { channel_id: channel.channelId };
    await vi.waitFor(() => {
      a.clock.advance(0.5);
      expect(b.server.context.sessions.isCurrent).toBe(true);
    }, patience);
  });

  const removeLaptop = async () => {
    const { token } = await a.logInAccount(ann);
    const state = await ann.state({ devices: ['phone'] });
    expect(codeOf(await a.http().call('device.state.publish', state, { token }))).toBe('ok');
  };
  const readAtB = async (token: string) =>
    codeOf(await b.http().call('channel.read', read, { token }));

  test('reads no channel after two seconds, neither over HTTPS nor on its connection', async () => {
    const laptop = await b.withChannels(ann, [channel], { device: 'laptop' });
    const { token } = await b.logInDevice(ann, 'laptop');
    expect(await readAtB(token)).toBe('ok');
    await removeLaptop();
    a.clock.advance(2);
    expect(await laptop.call('channel.read', read)).toHaveProperty('error.code', unauthorized);
    expect(await readAtB(token)).toBe('unauthorized');
  });

  test('hears of no post after two seconds', async () => {
    const laptop = await b.withChannels(ann, [channel], { device: 'laptop' });
    const phone = await b.withChannels(ann, [channel]);
    await removeLaptop();
    a.clock.advance(2);
    const { token } = await b.logInDevice(ann);
    expect(codeOf(await b.http().call('channel.post', channel.newPost(), { token }))).toBe('ok');
    expect(await nextHint(phone)).toEqual(['timeline', 1]);
    expect(await receivedHints(laptop)).toEqual([]);
  });

  test('is answered nothing by a process that was stopped in the middle of its call', async () => {
    const { token } = await b.logInDevice(ann, 'laptop');
    expect(await readAtB(token)).toBe('ok');
    await removeLaptop();
    b.faults.beforeStatement = (sql) => {
      if (!sql.includes('channel')) return;
      delete b.faults.beforeStatement;
      a.clock.advance(30);
    };
    expect(await readAtB(token)).toBe('unauthorized');
    expect(b.faults.beforeStatement).toBe(undefined);
  });

  test('a write that took long is answered as it was made, without another look at storage', async () => {
    const { token } = await b.logInDevice(ann);
    let isWritten = false;
    b.faults.beforeStatement = (sql) => {
      if (isWritten && sql.includes('FROM auth_sessions')) throw new Error('out of reach');
      if (isWritten || !/^INSERT INTO \w*profiles/.test(sql)) return;
      isWritten = true;
      a.clock.advance(30);
    };
    const reply = await b.http().call('profile.publish', ann.profile(), { token });
    delete b.faults.beforeStatement;
    expect([codeOf(reply), isWritten]).toEqual(['ok', true]);
  });
});
