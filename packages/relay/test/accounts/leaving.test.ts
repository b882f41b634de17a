import type { FinalRoute } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { homeOf, observeRoute, readUsableRoute, wakeRoutesFor } from '../../src/accounts/index.ts';
import { shortestDelay } from '../../src/accounts/publish-times.ts';
import { Person } from '../fixtures/person.ts';
import { signIn, signInCode } from '../fixtures/sign-in.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const wired = wiredRelays(2);
const [old, next] = wired.relays as [InProcessRelay, InProcessRelay];
const jobName = 'accounts.own-routes';
let ann: Person;

beforeEach(async () => {
  ann = await Person.register(old, 'ann', ['phone', 'laptop']);
  wired.advance(10);
});

const homeAt = (relay: InProcessRelay) =>
  relay.context.storage.read((tx) => homeOf(tx, ann.account, relay.relayId, relay.clock.now()));
const elsewhere = { kind: 'elsewhere', relayId: next.relayId };
const ownState = (relay: InProcessRelay) =>
  relay.codeOf('device.state.resolve', { account: ann.account }, { session: ann.accountSession() });
const routeAt = async (relay: InProcessRelay) => {
  const { clock, storage } = relay.context;
  const text = await storage.read((tx) => readUsableRoute(tx, ann.account, clock.now()));
  return text === undefined ? undefined : (parseJson(text) as unknown as FinalRoute);
};

describe('07 §B12: a relay that an account leaves', () => {
  test('it is sent the route and stops serving the account at once', async () => {
    await ann.moveTo(next);
    expect(await homeAt(old)).toEqual(elsewhere);
    expect(await ownState(old)).toBe('route_stale');
    expect(await old.codeOf('message.send', ann.message(ann), { session: ann.session() })).toBe(
      'route_stale',
    );
    expect(await routeAt(old)).toEqual(await routeAt(next));
  });

  test('the new relay looks up an account that it does not know', async () => {
    const stale = await ann.route({ revision: 1, relay_id: next.relayId });
    await next.call('device.state.publish', await ann.state(), { session: ann.accountSession() });
    expect(
      await next.codeOf('account.route.publish', stale, { session: ann.accountSession() }),
    ).toBe('stale_state');
  });

  test('if it cannot be reached the account moves, and the route is sent again', async () => {
    await old.call('account.route.resolve', { account: ann.account });
    await next.call('account.route.resolve', { account: ann.account });
    wired.cut(next, old);
    await ann.moveTo(next);
    expect(await homeAt(old)).toEqual({ kind: 'local' });
    expect(await homeAt(next)).toEqual({ kind: 'local' });
    const delays: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      const at = (await next.runJob(jobName)) as number;
      delays.push(at - next.clock.now());
      next.clock.advance(at - next.clock.now());
    }
    expect(delays).toEqual([30, 30, 60, 120, 240, 480, 900]);
    wired.heal();
    await next.runJob(jobName);
    expect(await homeAt(old)).toEqual(elsewhere);
    const [row] = await next.rows('account_routes');
    expect(row).toMatchObject({ previous_relay: null, announce_at: null });
  });

  test('a restart of the new relay does not end the attempts; a later route does not either', async () => {
    await next.call('account.route.resolve', { account: ann.account });
    wired.cut(next, old);
    await ann.moveTo(next);
    await next.restart();
    await ann.publishRoute();
    wired.heal();
    next.clock.advance(30);
    await next.runJob(jobName);
    expect(await routeAt(old)).toEqual(await routeAt(next));
  });

  test('it learns of the move by itself within half a day, and after each start', async () => {
    await next.call('account.route.resolve', { account: ann.account });
    wired.cut(next, old);
    await ann.moveTo(next);
    wired.advance(43_200 + 4_321);
    const lookups: string[] = [];
    const { routes } = old;
    old.routes = (account) => {
      lookups.push(account);
      return routes(account);
    };
    await old.runJob(jobName);
    expect(lookups).toEqual([ann.account]);
    expect(await homeAt(old)).toEqual(elsewhere);

    await ann.moveTo(old);
    wired.advance(4_400);
    await old.restart();
    await old.runJob(jobName);
    expect(lookups).toHaveLength(2);
    expect(await old.runJob(jobName)).toBeGreaterThanOrEqual(old.clock.now() + 34_560);
    expect(lookups).toHaveLength(2);

    // However short the time since the last check.
    wired.advance(1);
    await old.restart();
    await old.runJob(jobName);
    expect(lookups).toHaveLength(3);
  });

  test('if the new relay could not ask any relay, it asks again, and corrects the old one', async () => {
    wired.cut(next, old);
    wired.cut(old, next);
    await ann.moveTo(next);
    expect(await next.rows('account_routes')).toMatchObject([{ previous_relay: null }]);
    const delays: number[] = [];
    for (let attempt = 0; attempt < 6; attempt += 1) {
      const at = (await next.runJob(jobName)) as number;
      delays.push(at - next.clock.now());
      next.clock.advance(at - next.clock.now());
    }
    expect(delays).toEqual([30, 30, 60, 120, 240, 480]);
    expect(await homeAt(old)).toEqual({ kind: 'local' });
    wired.heal();
    await next.runJob(jobName);
    expect(await homeAt(old)).toEqual(elsewhere);
    expect(await next.rows('missed_relays')).toEqual([]);
  });

  test('a relay that was missed at the check is asked again as soon as it is back', async () => {
    wired.cut(next, old);
    wired.cut(old, next);
    await ann.moveTo(next);
    wired.advance(43_200 + 4_321);
    expect(await old.runJob(jobName)).toBe(old.clock.now() + 30);
    old.clock.advance(10);
    expect(await old.runJob(jobName)).toBe(old.clock.now() + 20);
    wired.heal();
    wired.cut(next, old);
    await wakeRoutesFor(old.context, next.relayId);
    await old.runJob(jobName);
    expect(await homeAt(old)).toEqual(elsewhere);
    expect(await old.rows('missed_relays')).toEqual([]);
  });

  test('the route is sent as soon as the relay that was left is back', async () => {
    await next.call('account.route.resolve', { account: ann.account });
    wired.cut(next, old);
    await ann.moveTo(next);
    await next.runJob(jobName);
    wired.heal();
    await next.runJob(jobName);
    expect(await homeAt(old)).toEqual({ kind: 'local' });
    await wakeRoutesFor(next.context, 'another relay');
    await next.runJob(jobName);
    expect(await homeAt(old)).toEqual({ kind: 'local' });
    await wakeRoutesFor(next.context, old.relayId);
    await next.runJob(jobName);
    expect(await homeAt(old)).toEqual(elsewhere);
  });

  test('a relay that was missed is asked for the rest, after what it answered', async () => {
    for (let index = 0; index < 9; index += 1) await Person.register(old, `${index}`, []);
    wired.advance(43_200 + 4_321);
    wired.cut(old, next);
    await old.runJob(jobName);
    wired.heal();
    const asked: string[] = [];
    const { missed } = old;
    old.routes = (account, only) => {
      if (only === next.relayId) asked.push(account);
      return [];
    };
    old.missed = () => (asked.length > 8 ? [next.relayId] : missed());
    old.clock.advance(30);
    await old.runJob(jobName);
    expect(asked).toHaveLength(10);
    const answered = asked.splice(0).slice(0, 8);
    old.clock.advance(30);
    await old.runJob(jobName);
    expect(asked).toHaveLength(2);
    expect(answered).not.toContain(asked[0]);
    expect(await old.rows('missed_relays')).toEqual([]);
  });

  test('a relay that is not among the active ones any more is forgotten after a day', async () => {
    wired.cut(old, next);
    wired.advance(43_200 + 4_321);
    await old.runJob(jobName);
    old.missed = (only) => (only === undefined ? [] : [next.relayId]);
    wired.advance(86_399);
    await old.runJob(jobName);
    expect(await old.rows('missed_relays')).toMatchObject([{ failures: 1 }]);
    wired.advance(60);
    await old.runJob(jobName);
    expect(await old.rows('missed_relays')).toEqual([]);
  });

  test('a relay without others asks for none of its accounts, and writes nothing', async () => {
    wired.advance(50_000);
    old.hasRelays = false;
    await old.restart();
    const before = await old.dump();
    let asked = 0;
    old.routes = () => {
      asked += 1;
      return [];
    };
    // Another relay may have come until then.
    const next = old.clock.now() + shortestDelay(old.context.limits);
    expect(await old.runJob(jobName)).toBe(next);
    expect(asked).toBe(0);
    expect(await old.dump()).toEqual(before);
    old.hasRelays = true;
  });

  test('a lookup that fails is repeated, and delays no other account', async () => {
    const bob = await Person.register(old, 'bob');
    old.clock.advance(50_000);
    const asked: string[] = [];
    old.routes = (account) => {
      asked.push(account);
      return account === bob.account ? Promise.reject(new Error('lost')) : [];
    };
    const at = await old.runJob(jobName);
    expect(asked.sort()).toEqual([ann.account, bob.account].sort());
    expect(at).toBe(old.clock.now() + 30);
    asked.length = 0;
    old.clock.advance(30);
    await old.runJob(jobName);
    expect(asked).toEqual([bob.account]);
  });

  test('the timeline stays readable for valid sessions (03 §12.2)', async () => {
    const session = await signIn(old, ann);
    await ann.moveTo(next);
    expect(await old.codeOf('message.timeline.sync', {}, { session })).toBe('ok');
    await old.runJob('accounts.remote-devices');
    expect(await old.codeOf('message.timeline.sync', {}, { session })).toBe('ok');
    expect(await old.codeOf('profile.publish', ann.profile(), { session })).toBe('route_stale');
  });

  test('F3: a device removed at the new home loses its session at the old one', async () => {
    const session = await signIn(old, ann, 'laptop');
    ann.devices.delete('laptop');
    await ann.moveTo(next);
    expect(await old.rows('devices')).toEqual([]);
    await old.runJob('accounts.remote-devices');
    expect(await old.rows('auth_sessions')).toEqual([]);
    expect(old.takeNotices()).toContainEqual({
      kind: 'revoked',
      account: ann.account,
      deviceIds: [session.deviceId],
    });
    expect(await old.codeOf('message.timeline.sync', {}, { session })).toBe('unauthorized');
  });

  test('an account that comes home ends the sessions of devices it has not any more', async () => {
    await ann.moveTo(next);
    const { deviceId } = await signIn(old, ann, 'laptop');
    await signIn(old, ann, 'phone');
    ann.devices.delete('laptop');
    await ann.moveTo(old);
    expect(await old.rows('remote_devices')).toEqual([]);
    const sessions = await old.rows('auth_sessions');
    expect(sessions.map((row) => row.device_id)).toEqual(ann.deviceIds('phone'));
    expect(old.takeNotices()).toContainEqual({
      kind: 'revoked',
      account: ann.account,
      deviceIds: [deviceId],
    });
    expect(await signInCode(old, ann)).toBe('ok');
  });

  test('07 §C6: a state older than one that was seen is not published at another relay', async () => {
    const ben = await Person.register(next, 'ben', ['phone']);
    await ann.publishProfile({ public_discovery: true });
    const older = await ann.state();
    ann.devices.delete('laptop');
    await ann.publishState();
    const params = { account: ann.account };
    const seen = { session: ben.session() };
    expect(await next.codeOf('device.state.resolve', params, seen)).toBe('ok');
    const session = { session: ann.accountSession() };
    expect(await next.codeOf('device.state.publish', older, session)).toBe('stale_state');
    expect(await next.rows('staged_states')).toEqual([]);
    expect(await next.codeOf('device.state.publish', await ann.state(), session)).toBe('ok');
  });

  test('a route that is observed again gives no job work', async () => {
    const route = (await routeAt(old)) as FinalRoute;
    await observeRoute(next.context, route);
    const woken: string[] = [];
    next.context.jobs.wake = (name) => woken.push(name);
    await observeRoute(next.context, route);
    expect(woken).toEqual([]);
    await ann.publishRoute();
    await observeRoute(next.context, (await routeAt(old)) as FinalRoute);
    expect(woken).toEqual(['accounts.remote-devices', 'accounts.status-hints']);
  });

  test('routes that are observed are accepted, the same, stale, or in conflict', async () => {
    const first = (await routeAt(old)) as FinalRoute;
    expect(await observeRoute(next.context, first)).toBe('accepted');
    expect(await observeRoute(next.context, first)).toBe('same');
    await ann.publishRoute();
    const second = (await routeAt(old)) as FinalRoute;
    expect(await observeRoute(next.context, second)).toBe('accepted');
    expect(await observeRoute(next.context, first)).toBe('stale');
    const rival = { ...second, expires_at: second.expires_at + 1 };
    expect(await observeRoute(next.context, rival)).toBe('conflict');
    expect(await routeAt(next)).toBeUndefined();
  });
});
