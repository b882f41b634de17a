import { beforeEach, describe, expect, test } from 'vitest';
import { locate, requireCaller } from '../../src/accounts/index.ts';
import type { RelayAnswer } from '../../src/context.ts';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { Person } from '../fixtures/person.ts';
import { signIn, signInCode } from '../fixtures/sign-in.ts';
import { throughEveryFault } from '../support/faults.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const wired = wiredRelays(3);
const [home, host, third] = wired.relays as [InProcessRelay, InProcessRelay, InProcessRelay];
const jobName = 'accounts.remote-devices';
let ann: Person;

beforeEach(async () => {
  ann = await Person.register(home, 'ann', ['phone', 'laptop']);
  wired.calls.length = 0;
});

const questions = () => wired.calls.filter(({ method }) => method === 'device.status');
const phone = () => ({ account: ann.account, device_id: ann.device('phone').deviceId });
const row = async () => {
  const rows = await host.rows('remote_devices');
  return rows.find(({ device_id }) => device_id === phone().device_id);
};
/** How a call that needs the device's certificate ends. */
const actCode = async (session: DeviceSession): Promise<string> => {
  const { clock, storage } = host.context;
  try {
    await storage.read((tx) => requireCaller(tx, session, clock.now()));
    return 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
};
const hint = (from = home, params = phone()) =>
  from.context.relayClient.notify(host.relayId, 'device.status.changed', params);
/** Removes a device at the home relay. */
async function remove(name: string): Promise<void> {
  ann.devices.delete(name);
  await ann.publishState();
}
/** Renews the phone's certificate at the home relay. */
async function renew(period: { expiresAt?: number } = {}): Promise<void> {
  wired.advance(1);
  await ann.addDevice('phone', period);
  await ann.publishState();
}
/** Makes the home relay answer questions like this from now on. */
const answerWith = (answer: RelayAnswer) => {
  wired.intercept = async (call, forward) =>
    call.method === 'device.status' ? answer : await forward();
};
const answered = (value: object): RelayAnswer => ({ kind: 'result', value: value as never });

describe('02 §9.3, 07 §C5: signing in away from home', () => {
  test('the home relay is asked, and the session ends with the latest certificate', async () => {
    const expiresAt = host.clock.now() + 1_000;
    await ann.addDevice('watch', { expiresAt });
    await ann.publishState();
    expect((await signIn(host, ann, 'watch')).expiresAt).toBe(expiresAt);
    expect((await signIn(host, ann)).expiresAt).toBe(host.clock.now() + 86_400);
    expect(questions()).toMatchObject([
      { to: home.relayId, params: { device_id: ann.device('watch').deviceId } },
      { to: home.relayId, params: phone() },
    ]);
  });

  test('an older certificate serves as proof', async () => {
    const older = ann.device('phone').certificate;
    const renewed = await ann.addDevice('phone', { expiresAt: host.clock.now() + 500 });
    await ann.publishState();
    renewed.certificate = older;
    expect((await signIn(host, ann)).expiresAt).toBe(host.clock.now() + 500);
  });

  test('an answer serves five minutes, and never past the certificate', async () => {
    const expiresAt = host.clock.now() + 200;
    await ann.addDevice('phone', { expiresAt });
    await ann.publishState();
    await signIn(host, ann);
    wired.advance(199);
    await signIn(host, ann);
    expect(questions()).toHaveLength(1);
    wired.advance(1);
    expect(await signInCode(host, ann)).toBe('device_unknown');
    expect(questions()).toHaveLength(2);
    await signIn(host, ann, 'laptop');
    wired.advance(299);
    await signIn(host, ann, 'laptop');
    expect(questions()).toHaveLength(3);
    wired.advance(1);
    await signIn(host, ann, 'laptop');
    expect(questions()).toHaveLength(4);
  });

  test('a device without current authorization opens no session and leaves nothing', async () => {
    await remove('laptop');
    await ann.addDevice('laptop');
    expect(await signInCode(host, ann, 'laptop')).toBe('device_unknown');
    expect(await host.rows('remote_devices')).toEqual([]);
    expect(await host.rows('inactive_devices')).toEqual([]);
    expect(await host.rows('auth_sessions')).toEqual([]);
  });

  test('a device that is found inactive loses its other sessions', async () => {
    const session = await signIn(host, ann, 'laptop');
    const laptop = ann.device('laptop');
    await remove('laptop');
    wired.advance(300);
    host.takeNotices();
    ann.devices.set('laptop', laptop);
    expect(await signInCode(host, ann, 'laptop')).toBe('device_unknown');
    expect(host.takeNotices()).toEqual([
      { kind: 'revoked', account: ann.account, deviceIds: [session.deviceId] },
    ]);
    expect(await host.rows('auth_sessions')).toEqual([]);
    expect(await host.rows('inactive_devices')).toHaveLength(1);
  });

  test.each([
    ['unreachable', { kind: 'unreachable' }, 'temporarily_unavailable'],
    ['without an answer', { kind: 'unknown' }, 'temporarily_unavailable'],
    ['with an invalid answer', answered({ status: 'maybe' }), 'bad_gateway'],
    [
      'with an end for an inactive device',
      answered({ status: 'inactive', expires_at: 1 }),
      'bad_gateway',
    ],
    ['with an end in the past', answered({ status: 'active', expires_at: 1 }), 'bad_gateway'],
    ['without an end', answered({ status: 'active' }), 'bad_gateway'],
  ] as const)('a home relay %s confirms nothing', async (_, answer, code) => {
    answerWith(answer as RelayAnswer);
    expect(await signInCode(host, ann)).toBe(code);
    expect(await host.rows('auth_sessions')).toEqual([]);
  });

  test('an account leaves a limited number of devices without an answer', async () => {
    await host.restart({ askedDevices: 2 });
    const names = ['d1', 'd2', 'd3'];
    for (const name of names) await ann.addDevice(name);
    answerWith({ kind: 'unknown' });
    const codes: string[] = [];
    for (const name of names) codes.push(await signInCode(host, ann, name));
    const away = 'temporarily_unavailable';
    expect(codes).toEqual([away, away, 'rate_limited']);
    expect(await host.rows('remote_devices')).toHaveLength(2);
  });

  test('a hint during the question makes its answer useless, and another follows', async () => {
    let count = 0;
    wired.intercept = async ({ method }, forward) => {
      const answer = await forward();
      count += 1;
      if (method === 'device.status' && count === 1) await hint();
      return answer;
    };
    await signIn(host, ann);
    expect(questions()).toHaveLength(2);
    expect(await row()).toMatchObject({ status: 'active', stale: 0, generation: 1 });
  });

  test('a device that changes with every question opens no session', async () => {
    wired.intercept = async (_, forward) => {
      const answer = await forward();
      await hint();
      return answer;
    };
    expect(await signInCode(host, ann)).toBe('temporarily_unavailable');
    expect(questions()).toHaveLength(3);
    expect(await host.rows('auth_sessions')).toEqual([]);
  });

  test('an account that moves during the question is confirmed by its new home', async () => {
    wired.intercept = async ({ to }, forward) => {
      const answer = await forward();
      if (to === home.relayId) {
        await ann.moveTo(third);
        await locate(host.context, ann.account, { now: host.clock.now(), refresh: true });
      }
      return answer;
    };
    await signIn(host, ann);
    // The answer to a question from before the move is not stored.
    expect(questions().map(({ to }) => to)).toEqual([home.relayId, third.relayId, third.relayId]);
    expect(await row()).toMatchObject({ relay_id: third.relayId });
  });

  test('if storage fails at any write, no session is stored', async () => {
    await signIn(host, ann, 'laptop');
    const proofs = async () => await signInCode(host, ann);
    // The challenge is consumed in a transaction of its own.
    const before = await host.rows('auth_sessions');
    host.faults.beforeStatement = (sql) => {
      if (/INSERT INTO auth_sessions/.test(sql)) throw new Error('fault of the test');
    };
    expect(await proofs()).toBe('internal_error');
    host.faults.beforeStatement = () => {};
    expect(await host.rows('auth_sessions')).toEqual(before);
    expect(await row()).toMatchObject({ status: 'asked', stale: 1 });
  });
});

describe('F3: devices that changed at home', () => {
  test('a removed device does not act here once its home relay was asked', async () => {
    const session = await signIn(host, ann, 'laptop');
    expect(await actCode(session)).toBe('ok');
    await remove('laptop');
    await home.runJob('accounts.status-hints');
    expect(await actCode(session)).toBe('temporarily_unavailable');
    await host.runJob(jobName);
    expect(await actCode(session)).toBe('unauthorized');
    expect(await host.rows('auth_sessions')).toEqual([]);
  });

  test('a renewed device keeps its sessions and its access', async () => {
    const expiresAt = host.clock.now() + 1_000;
    await ann.addDevice('phone', { expiresAt });
    await ann.publishState();
    await signIn(host, ann);
    await renew();
    await home.runJob('accounts.status-hints');
    await host.runJob(jobName);
    wired.advance(1_000);
    await host.runJob('accounts.expired-devices');
    expect(await host.rows('inactive_devices')).toEqual([]);
    expect(await row()).toMatchObject({ status: 'active', stale: 0 });
    expect(await signInCode(host, ann)).toBe('ok');
  });

  test('a shorter certificate shortens its sessions', async () => {
    await signIn(host, ann);
    const expiresAt = host.clock.now() + 500;
    await ann.addDevice('phone', { expiresAt });
    await ann.publishState();
    await home.runJob('accounts.status-hints');
    host.takeNotices();
    await host.runJob(jobName);
    const { deviceId } = ann.device('phone');
    expect(host.takeNotices()).toEqual([
      { kind: 'capped', account: ann.account, deviceId, expiresAt },
    ]);
    expect(await host.rows('auth_sessions')).toMatchObject([{ expires_at: expiresAt }]);
  });
});

describe('07 §C9: device.status.changed', () => {
  test('it invalidates what is known until the home relay was asked again', async () => {
    const session = await signIn(host, ann);
    await hint();
    expect(await row()).toMatchObject({ stale: 1, generation: 1, next_check_at: host.clock.now() });
    expect(await actCode(session)).toBe('temporarily_unavailable');
    await host.runJob(jobName);
    expect(await row()).toMatchObject({ stale: 0, generation: 1 });
    expect(await actCode(session)).toBe('ok');
    await hint();
    expect(await row()).toMatchObject({ stale: 1, generation: 2 });
  });

  test('a hint of another relay than the home is rejected', async () => {
    await signIn(host, ann);
    await hint(third);
    expect(await row()).toMatchObject({ stale: 0, generation: 0 });
  });

  test('a hint for a device that does not use this relay stores nothing', async () => {
    await signIn(host, ann, 'laptop');
    const before = await host.dump();
    await hint();
    expect(await host.dump()).toEqual(before);
  });

  test('a hint while the job asks makes its answer useless', async () => {
    await signIn(host, ann);
    await hint();
    let count = 0;
    wired.intercept = async (_, forward) => {
      const answer = await forward();
      count += 1;
      if (count === 1) await hint();
      return answer;
    };
    await host.runJob(jobName);
    expect(questions()).toHaveLength(3);
    expect(await row()).toMatchObject({ stale: 0, generation: 2 });
  });
});

describe('07 §C9: devices that use this relay are asked for again', () => {
  test('a home relay that does not answer ends nothing, and is asked again later and later', async () => {
    await signIn(host, ann);
    await hint();
    wired.cut(host, home);
    const delays: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      const at = (await host.runJob(jobName)) as number;
      delays.push(at - host.clock.now());
      host.clock.advance(at - host.clock.now());
    }
    expect(delays).toEqual([30, 60, 120, 240, 480, 900, 900]);
    expect(await host.rows('auth_sessions')).toHaveLength(1);
    expect(await host.rows('inactive_devices')).toEqual([]);
    wired.heal();
    await host.runJob(jobName);
    expect(await row()).toMatchObject({ status: 'active', stale: 0, failures: 0 });
  });

  test('a device that nothing rests on is forgotten a day after its last answer', async () => {
    await signIn(host, ann);
    await host.context.storage.write('test', (tx) => tx.run('DELETE FROM auth_sessions'));
    wired.advance(86_399);
    await host.runJob(jobName);
    expect(await row()).toBeDefined();
    wired.advance(1);
    await host.runJob(jobName);
    expect(await row()).toBeUndefined();
    expect(questions()).toHaveLength(1);
  });

  test('one hanging home relay does not keep the devices of others from being asked for', async () => {
    const bob = await Person.register(third, 'bob');
    await signIn(host, ann);
    await signIn(host, bob);
    const asked = Promise.withResolvers<void>();
    const hanging = Promise.withResolvers<RelayAnswer>();
    wired.intercept = async ({ to }, forward) => {
      if (to === home.relayId) return await hanging.promise;
      const answer = await forward();
      asked.resolve();
      return answer;
    };
    await hint();
    await hint(third, { account: bob.account, device_id: bob.device('phone').deviceId });
    const running = host.runJob(jobName);
    await asked.promise;
    hanging.resolve({ kind: 'unknown' });
    await running;
    expect(await row()).toMatchObject({ stale: 1, failures: 1 });
  });
});

test('07 §C9: more devices of a hanging relay than a batch delay those of no other', async () => {
  const bob = await Person.register(third, 'bob');
  await signIn(host, ann);
  await signIn(host, bob);
  const now = host.clock.now();
  await host.context.storage.write('test', async (tx) => {
    await tx.run('UPDATE remote_devices SET next_check_at = ?', now);
    await tx.run(
      'UPDATE remote_devices SET next_check_at = ? WHERE account = ?',
      now - 2,
      ann.account,
    );
    for (let copy = 0; copy < 70; copy += 1) {
      await tx.run(
        `INSERT INTO remote_devices (account, device_id, relay_id, certificate_id, certificate,
            status, expires_at, confirmed_at, stale, generation, failures, next_check_at)
          SELECT account, ?, relay_id, certificate_id, certificate, status, expires_at,
            confirmed_at, stale, generation, failures, ? FROM remote_devices
          WHERE device_id = ?`,
        ...[`copy ${copy}`, now - 1, phone().device_id],
      );
    }
  });
  const asked = Promise.withResolvers<void>();
  const hanging = Promise.withResolvers<RelayAnswer>();
  wired.intercept = async ({ to }, forward) => {
    if (to === home.relayId) return await hanging.promise;
    asked.resolve();
    return await forward();
  };
  const running = host.runJob(jobName);
  await asked.promise;
  hanging.resolve({ kind: 'unknown' });
  await running;
  expect(await row()).toMatchObject({ failures: 1 });
});

describe('07 §C9: relays that asked for a device here are sent hints', () => {
  const hints = () => wired.calls.filter(({ method }) => method === 'device.status.changed');
  const sendHints = () => home.runJob('accounts.status-hints');

  test('when it is removed or has another certificate, and only then', async () => {
    await signIn(host, ann, 'phone');
    await signIn(third, ann, 'laptop');
    await ann.addDevice('watch');
    await ann.publishState();
    await sendHints();
    expect(hints()).toEqual([]);
    await remove('laptop');
    await sendHints();
    await sendHints();
    expect(hints()).toMatchObject([{ to: third.relayId }]);
    await renew();
    await sendHints();
    expect(hints()).toMatchObject([{ to: third.relayId }, { to: host.relayId, params: phone() }]);
  });

  test('when the account leaves, so that they find its new home', async () => {
    await signIn(host, ann);
    await ann.moveTo(third);
    await sendHints();
    expect(hints()).toMatchObject([{ to: host.relayId, params: phone() }]);
    await host.runJob(jobName);
    expect(await row()).toMatchObject({ relay_id: third.relayId, status: 'active', stale: 0 });
  });

  test('without waiting for a relay that is slow to be reached, nor for the end of the run', async () => {
    await signIn(host, ann, 'phone');
    await signIn(third, ann, 'laptop');
    const notify = home.notifyRelay;
    const slow = Promise.withResolvers<void>();
    home.notifyRelay = async (to, ...rest) => {
      if (to === third.relayId) await slow.promise;
      return await notify(to, ...rest);
    };
    await remove('laptop');
    const run = sendHints();
    await renew();
    await expect.poll(hints).toMatchObject([{ to: host.relayId }]);
    await renew();
    await expect.poll(hints).toHaveLength(2);
    slow.resolve();
    await run;
    expect(hints().map(({ to }) => to)).toEqual([host.relayId, host.relayId, third.relayId]);
    await sendHints();
    expect(hints()).toHaveLength(3);
  });

  test('five times within ten minutes, then no more', async () => {
    await signIn(host, ann);
    await renew();
    wired.cut(home, host);
    const started = home.clock.now();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const at = (await sendHints()) as number;
      if (attempt < 4) home.clock.advance(at - home.clock.now());
    }
    expect(home.clock.now() - started).toBe(600);
    expect(hints()).toHaveLength(5);
    home.clock.advance(100_000);
    await sendHints();
    expect(hints()).toHaveLength(5);
  });

  test('for thirty days after their last question', async () => {
    await signIn(host, ann);
    wired.advance(2_592_000);
    await sendHints();
    expect(await home.rows('status_watchers')).toEqual([]);
    await renew();
    await sendHints();
    expect(hints()).toEqual([]);
  });

  test('no more relays than the limit are remembered for a device', async () => {
    await home.restart({ statusWatchers: 2 });
    for (const from of [1, 2, 3]) {
      home.clock.advance(1);
      const frame = JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'device.status',
        params: phone(),
      });
      await home.answerRelay(new TextEncoder().encode(frame), {
        relayId: `0x${`${from}`.repeat(40)}`,
      });
    }
    const watchers = await home.rows('status_watchers');
    expect(watchers.map(({ relay_id }) => String(relay_id)[2]).sort()).toEqual(['2', '3']);
  });

  test('if storage fails at any write, a new state leaves no hint', async () => {
    await signIn(host, ann);
    wired.advance(1);
    await ann.addDevice('phone');
    const state = await ann.state();
    const session = { session: ann.accountSession() };
    const publish = () => home.codeOf('device.state.publish', state, session);
    expect(await throughEveryFault(home, publish)).toBeGreaterThan(3);
    expect(await home.rows('status_watchers')).toMatchObject([{ hint_at: home.clock.now() }]);
  });
});
