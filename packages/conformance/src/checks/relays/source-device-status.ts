/** The relay under test asks home relays for devices that sign in (07 §C5, §C9). */
import { assertConforms, assertEqual, NotApplicable } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { relayTime, untilRelayTime } from '../../fixtures/relay-info.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { type HomeAccount, routeTo } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import { type Answering, refusal } from '../../seat/relay-service.ts';
import type { Answer } from '../../transport/answer.ts';
import { relayChecksOf } from './common.ts';
import { openSource } from './source-fixture.ts';

const status = relayChecksOf('source.device.status');

status.check(
  'signs-in',
  { source: '07 §C5', title: 'opens a session for a device that its home relay says is active' },
  async (context) => {
    const { seat, home } = await openSource(context);
    const expiresAt = unixSeconds() + 600;
    const answer = { status: 'active', expires_at: expiresAt };
    seat.service.answer('device.status', () => ({ result: answer }));
    const session = await context.authenticateDevice(context.https(), home.device);
    assertConforms(
      session.expires_at <= expiresAt,
      `a session ends with the device's certificate, not ${session.expires_at - expiresAt} s later`,
    );
    const calls = seat.service.calls('device.status');
    assertConforms(calls.length > 0, 'the home relay is asked');
    const expected = { account: home.id, device_id: home.device.id };
    for (const { params } of calls) assertEqual(params, expected, 'parameters of the question');
  },
);

const soon = () => unixSeconds() + 600;

/** Answers by which no session may be opened. */
const noSession: Readonly<Record<string, Answering>> = {
  inactive: () => ({ result: { status: 'inactive' } }),
  'active-without-end': () => ({ result: { status: 'active' } }),
  'active-and-expired': () => ({ result: { status: 'active', expires_at: unixSeconds() - 10 } }),
  'inactive-with-end': () => ({ result: { status: 'inactive', expires_at: soon() } }),
  'another-status': () => ({ result: { status: 'yes', expires_at: soon() } }),
  'another-id': () => ({
    frame: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 'x' },
      result: { status: 'active', expires_at: soon() },
    }),
  }),
  'route-stale': () => refusal('route_stale'),
  'internal-error': () => refusal('internal_error'),
  reset: () => 'reset',
};

for (const [word, answer] of Object.entries(noSession)) {
  status.check(
    `no-session-${word}`,
    { source: '07 §C5', title: `opens no session after the answer ${word}` },
    async (context) => {
      const { seat, home } = await openSource(context);
      seat.service.answer('device.status', answer);
      const verified = await signIn(context, home);
      assertConforms(!verified.ok, `no session after the answer ${word}`);
      if (word === 'inactive') assertEqual(verified.code, 'device_unknown', 'code of the refusal');
    },
  );
}

/** Tries to open a session for the account's device. */
async function signIn(context: TestContext, { id, device }: HomeAccount): Promise<Answer> {
  const caller = context.https();
  const nonce = await context.challenge(caller, id);
  return await caller.call('auth.device.verify', context.deviceProof(device, nonce));
}

/** Sends a hint that a device changed. */
async function hint(connection: RelayConnection, { id, device }: HomeAccount): Promise<void> {
  const params = { account: id, device_id: device.id };
  const text = JSON.stringify({ jsonrpc: '2.0', method: 'device.status.changed', params });
  await connection.notify(text);
}

status.check(
  'hint',
  { source: '07 §C9', title: 'a hint of the home relay ends the use of an earlier answer' },
  async (context) => {
    const { seat, home, connection } = await openSource(context);
    await context.authenticateDevice(context.https(), home.device);
    seat.service.answer('device.status', () => ({ result: { status: 'inactive' } }));
    // The relay has processed the hint when it closes the stream.
    await hint(connection, home);
    const { ok } = await signIn(context, home);
    assertConforms(!ok, 'no session by the answer from before the hint');
  },
);

status.check(
  'hint-during-question',
  { source: '07 §C9', title: 'an answer during which a hint arrived serves no later session' },
  async (context) => {
    const { seat, home, connection } = await openSource(context);
    const { service } = seat;
    let isFirst = true;
    service.answer('device.status', async (call) => {
      if (!isFirst) return { result: { status: 'inactive' } };
      isFirst = false;
      const answer = service.honest(call);
      await hint(connection, home);
      return answer;
    });
    // Whether this session is opened depends on whether the relay asks again before.
    await signIn(context, home);
    const { ok } = await signIn(context, home);
    assertConforms(!ok, 'no session by the answer from before the hint');
  },
);

status.check(
  'ends-with-certificate',
  { source: '07 §C5', title: 'uses no answer past the end that it states' },
  async (context) => {
    const { seat, home } = await openSource(context);
    const expiresAt = (await relayTime(context)) + 3;
    const active = { status: 'active', expires_at: expiresAt };
    seat.service.answer('device.status', () => ({ result: active }));
    await context.authenticateDevice(context.https(), home.device);
    seat.service.answer('device.status', () => ({ result: { status: 'inactive' } }));
    await untilRelayTime(context, expiresAt);
    const { ok } = await signIn(context, home);
    assertConforms(!ok, 'no session by an answer that has ended');
  },
);

status.check(
  'moved',
  { source: '07 §C5', title: 'uses no answer of a relay that is the home no more' },
  async (context) => {
    const { seat, home, connection } = await openSource(context);
    await context.authenticateDevice(context.https(), home.device);
    const other = await context.seat();
    await other.connect();
    const revision = home.route.revision + 1;
    home.route = await routeTo(home.account, other, { revision });
    other.service.homes.push(home);
    other.service.answer('device.status', () => ({ result: { status: 'inactive' } }));
    await connection.storeRoute(home.route);
    const asked = seat.service.calls('device.status').length;
    const { ok } = await signIn(context, home);
    assertConforms(!ok, 'no session by the answer of the former home relay');
    const { length } = seat.service.calls('device.status');
    assertEqual(length, asked, 'questions to the former home relay');
  },
);

status.check(
  'foreign-hint',
  { source: '07 §C9', title: 'a hint of another relay than the home has no effect' },
  async (context) => {
    const { seat, home } = await openSource(context);
    const other = await (await context.seat()).connect();
    await context.authenticateDevice(context.https(), home.device);
    await context.authenticateDevice(context.https(), home.device);
    const asked = seat.service.calls('device.status').length;
    if (asked > 1) throw new NotApplicable('the relay keeps no answers to device.status');
    await hint(other, home);
    await context.authenticateDevice(context.https(), home.device);
    assertEqual(
      seat.service.calls('device.status').length,
      asked,
      'questions after a foreign hint',
    );
  },
);

export const sourceStatusChecks = status.list;
