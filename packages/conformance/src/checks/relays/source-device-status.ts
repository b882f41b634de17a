/** The relay under test asks home relays for devices that sign in (07 §C5, §C9). */
import { assertConforms, assertEqual, NotApplicable } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import type { HomeAccount } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import { type Answering, refusal } from '../../seat/relay-service.ts';
import { relayChecksOf } from './common.ts';
import { openSource } from './source-scene.ts';

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
    assertEqual(calls.length, 1, 'questions to the home relay');
    const { account, device_id, ...others } = calls[0]?.params ?? {};
    assertEqual([account, device_id], [home.id, home.device.id], 'parameters of the question');
    assertEqual(others, {}, 'further parameters of the question');
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
      const caller = context.https();
      const nonce = await context.challenge(caller, home.id);
      const proof = context.deviceProof(home.device, nonce);
      const verified = await caller.call('auth.device.verify', proof);
      assertConforms(!verified.ok, `no session after the answer ${word}`);
      if (word === 'inactive') assertEqual(verified.code, 'device_unknown', 'code of the refusal');
    },
  );
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
    await hint(connection, home);
    const refused = async () => {
      const caller = context.https();
      const nonce = await context.challenge(caller, home.id);
      const proof = context.deviceProof(home.device, nonce);
      const verified = await caller.call('auth.device.verify', proof);
      return verified.ok ? undefined : true;
    };
    await pollUntil('no session by the answer from before the hint', refused, { seconds: 5 });
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
    await other.exchange('{"jsonrpc":"2.0","id":1,"method":"profile.resolve","params":{}}');
    await context.authenticateDevice(context.https(), home.device);
    assertEqual(
      seat.service.calls('device.status').length,
      asked,
      'questions after a foreign hint',
    );
  },
);

export const sourceStatusChecks = status.list;
