/** The relay under test dials another relay, which may not be what it seems (07 §A9, §B4). */
import { randomBytes } from 'node:crypto';
import { ed25519Identity } from '@posthouse/peer';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import { tampered } from '../../fixtures/tampered.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import type { HomeAccount } from '../../seat/home-account.ts';
import type { RelaySeat, SeatOptions } from '../../seat/relay-seat.ts';
import { relayChecksOf } from './common.ts';

const dials = relayChecksOf('peer.dial');

interface Fixture {
  readonly context: TestContext;
  /** Never dials the relay under test, which must dial it. */
  readonly seat: RelaySeat;
  readonly home: HomeAccount;
}

/** Tells the relay under test of an account at a relay that it is not connected with. */
async function open(context: TestContext, options: SeatOptions = {}): Promise<Fixture> {
  const seat = await context.seat(options);
  return { context, seat, home: await seat.home() };
}

async function announce({ context, home }: Fixture): Promise<void> {
  const messenger = await (await context.seat()).connect();
  await messenger.storeRoute(home.route);
}

dials.check(
  'reaches',
  { source: '07 §B4', title: 'dials the relay that a route names, by its descriptor' },
  async (context) => {
    const fixture = await open(context);
    await announce(fixture);
    const { caller } = await context.testAccount();
    const params = { account: fixture.home.id };
    const answer = await context.expectOk(caller, 'profile.resolve', params);
    assertEqual((answer as JsonObject).profile, fixture.home.profile, 'the answer of the dialled');
    assertConforms(
      fixture.seat.seen.some(({ direction }) => direction === 'inbound'),
      'the relay has dialled',
    );
  },
);

dials.check(
  'tries-each-address',
  { source: '07 §A8, §B4', title: 'dials the other addresses of a relay if one cannot be reached' },
  async (context) => {
    const fixture = await open(context);
    const { seat, home } = fixture;
    const closed = seat.peerAddress.replace(/\/tcp\/\d+/, '/tcp/1');
    const endpoints = [seat.endpoint, closed, seat.peerAddress];
    seat.served = JSON.stringify(await seat.descriptor({ endpoints }));
    await announce(fixture);
    const { caller } = await context.testAccount();
    const answer = await context.expectOk(caller, 'profile.resolve', { account: home.id });
    assertEqual((answer as JsonObject).profile, home.profile, 'the answer of the dialled');
  },
);

/** Relays that are not what their registered descriptor says, each in one respect. */
const faults: Readonly<Record<string, (fixture: Fixture) => Promise<void>>> = {
  'another-peer-key': async ({ seat }) => {
    const { identity } = seat;
    seat.identity = ed25519Identity(randomBytes(32));
    await seat.listen();
    // The listener has the new key; the descriptor names its port with the old Peer ID.
    seat.identity = identity;
    seat.served = JSON.stringify(await seat.descriptor());
  },
  'no-signature-of-the-noise-key': async ({ seat }) => {
    seat.identity = { ...seat.identity, sign: () => new Uint8Array(64) };
    await seat.listen();
  },
  'the-descriptor-of-another-relay': async ({ context, seat }) => {
    const other = await context.seat();
    seat.shown = JSON.stringify(
      await other.descriptor({ endpoints: [other.endpoint, seat.peerAddress] }),
    );
  },
  'an-expired-descriptor': async ({ seat }) => {
    seat.shown = JSON.stringify(await seat.descriptor({ expires_at: unixSeconds() - 1 }));
  },
  'an-altered-descriptor': async ({ seat }) => {
    const descriptor = await seat.descriptor();
    const relay_signature = tampered(String(descriptor.relay_signature));
    seat.shown = JSON.stringify({ ...descriptor, relay_signature });
  },
  'no-descriptor': async ({ seat }) => {
    seat.shown = '';
  },
};

for (const [word, fault] of Object.entries(faults)) {
  dials.check(
    `refuses-${word}`,
    { source: '07 §A9, §B4', title: `sends no request to a dialled relay with ${word}` },
    async (context) => {
      const fixture = await open(context);
      await fault(fixture);
      await announce(fixture);
      await expectUnanswered(fixture);
    },
  );
}

for (const without of ['rpc', 'dht'] as const) {
  dials.check(
    `refuses-without-${without}`,
    {
      source: '07 §A9',
      title: `sends no request to a dialled relay without the ${without} protocol`,
    },
    async (context) => {
      const fixture = await open(context, { without });
      await announce(fixture);
      await expectUnanswered(fixture);
    },
  );
}

async function expectUnanswered({ context, seat, home }: Fixture): Promise<void> {
  const { caller } = await context.testAccount();
  const call = { method: 'profile.resolve', params: { account: home.id } };
  await context.expectError(caller, call, 'temporarily_unavailable');
  assertEqual(seat.service.received.length, 0, 'requests that were sent');
  const isClosed = async () => (seat.connections === 0 ? true : undefined);
  await pollUntil('the connection is closed', isClosed, { seconds: 10 });
}

export const dialChecks = dials.list;
