import type { SessionCredentials } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { endOldestSessions } from '../../src/sessions/session-store.ts';
import { onceCommitted } from '../support/faults.ts';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

/** 02 §5, §18: sessions that one device and one account open. */

const relay = servedRelay({
  limits: { sessionsPerMinute: 3, sessionsOfDevice: 4, sessionsOfAccount: 8 },
});
const ann = relay.person('ann', ['phone', 'laptop']);
beforeEach(() => relay.clock.advance(60));

const works = async ({ token }: SessionCredentials) =>
  codeOf(await relay.http().call('message.timeline.sync', {}, { token })) === 'ok';
/** What opening a session over HTTP answers. */
async function answerTo(device: string) {
  const { nonce } = await relay.challenge(ann.account);
  return await relay
    .http()
    .call('auth.device.verify', relay.deviceProof(ann.device(device), nonce));
}
/** Opens sessions with a minute between each two. */
async function open(count: number, device = 'phone'): Promise<SessionCredentials[]> {
  const opened: SessionCredentials[] = [];
  for (let number = 0; number < count; number += 1) {
    relay.clock.advance(60);
    opened.push(await relay.logInDevice(ann, device));
  }
  return opened;
}
const whichWork = async (sessions: readonly SessionCredentials[]) =>
  await Promise.all(sessions.map(works));

describe('02 §18: sessions opened within a minute', () => {
  test('one more of a device is refused until the minute is over; others open theirs', async () => {
    await relay.logInDevice(ann);
    relay.clock.advance(10);
    await relay.logInDevice(ann);
    await relay.logInDevice(ann);
    const refused = await answerTo('phone');
    expect(codeOf(refused)).toBe('rate_limited');
    expect(refused.headers['retry-after']).toBe('50');
    expect(codeOf(await answerTo('laptop'))).toBe('ok');
    await relay.logInAccount(ann);
    // Also after a restart, which keeps nothing in memory.
    await relay.restart();
    relay.clock.advance(49);
    expect(codeOf(await answerTo('phone'))).toBe('rate_limited');
    relay.clock.advance(1);
    expect(codeOf(await answerTo('phone'))).toBe('ok');
  });

  test('sessions opened before the clock was set back do not count', async () => {
    for (let count = 0; count < 3; count += 1) await relay.logInAccount(ann);
    relay.clock.advance(-3_600);
    expect(await relay.logInAccount(ann)).toHaveProperty('token');
    relay.clock.advance(3_600);
  });

  test('account sessions of one account are counted too', async () => {
    for (let count = 0; count < 3; count += 1) await relay.logInAccount(ann);
    await expect(relay.logInAccount(ann)).rejects.toThrow();
    relay.clock.advance(60);
    await relay.logInAccount(ann);
  });
});

describe('02 §18: sessions at once', () => {
  test('one more of a device ends its oldest, and no session of another device', async () => {
    const [other] = await open(1, 'laptop');
    const opened = await open(4);
    expect(await whichWork(opened)).toEqual([true, true, true, true]);
    opened.push(...(await open(1)));
    expect(await whichWork(opened)).toEqual([false, true, true, true, true]);
    expect(await works(other as SessionCredentials)).toBe(true);
  });

  test('one more of the account ends its oldest, of any device', async () => {
    const opened = [...(await open(4, 'laptop')), ...(await open(4))];
    expect(await whichWork(opened)).toEqual(opened.map(() => true));
    await relay.logInAccount(ann);
    const others = opened.slice(1).map(() => true);
    expect(await whichWork(opened)).toEqual([false, ...others]);
  });

  test('one more account session ends the oldest account session', async () => {
    const tokens: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      relay.clock.advance(60);
      tokens.push((await relay.logInAccount(ann)).token);
    }
    const publish = async (token = '') =>
      codeOf(await relay.http().call('device.state.publish', await ann.state(), { token }));
    expect(await publish(tokens[0])).toBe('unauthorized');
    expect(await publish(tokens[1])).toBe('ok');
  });
});

describe('02 §18: statements about sessions that opening one runs', () => {
  /** First words, up to the one that stores it; a job removes expired sessions at any time. */
  async function statementsOf(open: () => Promise<unknown>): Promise<string[]> {
    const run: string[] = [];
    relay.faults.beforeStatement = (sql) => {
      const [verb = ''] = sql.split(/\s/);
      if (/\bauth_sessions\b/.test(sql) && !sql.includes('expires_at <=')) run.push(verb);
      if (verb === 'INSERT' && sql.includes('INTO auth_sessions'))
        delete relay.faults.beforeStatement;
    };
    await open();
    return run;
  }

  test('one reads what limits it, one stores it, and only at a limit one ends the oldest', async () => {
    await open(3);
    const openOne = () => relay.logInDevice(ann);
    relay.clock.advance(60);
    expect(await statementsOf(openOne)).toEqual(['SELECT', 'INSERT']);
    relay.clock.advance(60);
    expect(await statementsOf(openOne)).toEqual(['SELECT', 'DELETE', 'INSERT']);
    await open(4, 'laptop');
    relay.clock.advance(60);
    const openOther = () => relay.logInAccount(ann);
    expect(await statementsOf(openOther)).toEqual(['SELECT', 'DELETE', 'INSERT']);
  });
});

describe('02 §18: a connection whose session ended for newer ones', () => {
  let socket: Awaited<ReturnType<typeof relay.socket>>;
  beforeEach(async () => {
    socket = await relay.socket();
    await relay.bindDevice(socket, ann.device());
  });
  const sync = async () => await socket.call('message.timeline.sync', {});

  test('is not bound to it any more', async () => {
    await open(3);
    expect(await sync()).toHaveProperty('result');
    await open(1);
    expect(await sync()).toHaveProperty('error.code', -32001);
  });

  test('is not bound to an account session any more', async () => {
    const other = await relay.socket();
    await relay.bindAccount(other, ann);
    const publish = async () => await other.call('device.state.publish', await ann.state());
    const open = async (count: number) => {
      for (let number = 0; number < count; number += 1) {
        relay.clock.advance(60);
        await relay.logInAccount(ann);
      }
    };
    await open(3);
    expect(await publish()).toHaveProperty('result');
    await open(1);
    expect(await publish()).toHaveProperty('error.code', -32001);
  });

  test('stays bound if it is the one that is renewed: the next oldest ends', async () => {
    const opened = await open(3);
    expect(await relay.bindDevice(socket, ann.device())).toHaveProperty('result.token');
    expect(await sync()).toHaveProperty('result');
    expect(await whichWork(opened)).toEqual([false, true, true]);
  });
});

test('02 §10.3: an account session that newer ones end before it is bound is refused', async () => {
  const { bus, storage } = relay.server.context;
  const { account } = ann;
  using socket = await relay.socket();
  onceCommitted(relay, 'INSERT INTO auth_sessions', async () => {
    const sessionIds = await storage.write('test', async (tx) =>
      endOldestSessions(tx, { kind: 'account', account }, { count: 0, except: undefined }),
    );
    expect(sessionIds).not.toEqual([]);
    bus.publish([{ kind: 'ended', account, sessionIds }]);
  });
  expect(await relay.bindAccount(socket, ann)).toHaveProperty('error.code', -32001);
  const state = await ann.state();
  const published = await socket.call('device.state.publish', state);
  expect(published).toHaveProperty('error.code', -32001);
});
