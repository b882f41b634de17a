import type { ErrorCode } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual, NotApplicable } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { routeTo } from '../../seat/home-account.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';
import { type Answering, type ReplyToCall, refusal } from '../../seat/relay-service.ts';
import { relayChecksOf } from './common.ts';
import {
  attempts,
  ended,
  expectDelivered,
  expectRetried,
  expectUnchanged,
  openSending,
  type SendingFixture,
  send,
  statusOf,
} from './sending-fixture.ts';

const deliveries = relayChecksOf('source.message.deliver');

deliveries.check(
  'once',
  { source: '07 §C8', title: 'delivers a message with exactly what was sent, and once' },
  async (context) => {
    const fixture = await openSending(context);
    const sent = await send(fixture);
    await expectDelivered(fixture, sent);
    expectUnchanged(fixture.seat, sent);
    // By the end of a later delivery, a second attempt of the first would have been made.
    const later = await send(fixture);
    await expectDelivered(fixture, later);
    assertEqual(attempts(fixture.seat, sent).length, 1, 'deliveries of one message');
    assertEqual(attempts(fixture.seat, later).length, 1, 'deliveries of the later message');
  },
);

deliveries.check(
  'accepted-at',
  { source: '07 §C8', title: 'the time of its own acceptance stays, whatever the target answers' },
  async (context) => {
    const fixture = await openSending(context);
    const accepted_at = unixSeconds() - 1_000;
    const result = { status: 'target_accepted', accepted_at };
    fixture.seat.service.answer('message.deliver', () => ({ result }));
    const sent = await send(fixture);
    await expectDelivered(fixture, sent);
    const status = await statusOf(fixture, sent);
    assertConforms(status.accepted_at !== accepted_at, 'accepted_at is when the source accepted');
  },
);

/** Refusals that end a delivery, and the code that the sender reads. */
const ends: Readonly<Record<string, readonly [ReplyToCall, ErrorCode]>> = {
  'bad-request': [refusal('bad_request'), 'bad_request'],
  forbidden: [refusal('forbidden'), 'forbidden'],
  'invalid-signature': [refusal('invalid_signature'), 'invalid_signature'],
  'device-unknown': [refusal('device_unknown'), 'device_unknown'],
  'clock-skew': [refusal('clock_skew'), 'clock_skew'],
  'state-conflict': [refusal('state_conflict'), 'state_conflict'],
  'message-expired': [refusal('message_expired'), 'message_expired'],
  'request-too-large': [refusal('request_too_large'), 'request_too_large'],
  unauthorized: [refusal('unauthorized'), 'unauthorized'],
  'stale-state': [refusal('stale_state'), 'stale_state'],
  'invalid-request': [{ error: { code: -32_600, message: 'invalid' } }, 'bad_gateway'],
  'method-not-found': [refusal('method_not_found'), 'method_not_found'],
  'an-unknown-code': [{ error: { code: -32_999, message: 'new' } }, 'bad_gateway'],
};

for (const [word, [reply, code]] of Object.entries(ends)) {
  deliveries.check(
    `ends-${word}`,
    { source: '07 §C8', title: `ends a delivery that is refused with ${word}, for good` },
    async (context) => {
      const fixture = await openSending(context);
      const { service } = fixture.seat;
      service.answer('message.deliver', () => reply);
      const sent = await send(fixture);
      const status = await ended(fixture, sent);
      assertEqual(status.status, 'failed', 'status of the delivery');
      assertEqual((status.error as JsonObject).code, code, 'error of the delivery');
      service.answer('message.deliver', (call) => service.honest(call));
      await expectDelivered(fixture, await send(fixture));
      assertEqual(attempts(fixture.seat, sent).length, 1, 'attempts of the ended delivery');
      assertEqual(await statusOf(fixture, sent), status, 'the status afterwards');
    },
  );
}

const result = (members: JsonObject): ReplyToCall => ({ result: members });

/** First answers after which the same relay must be asked again, with the same parameters. */
const retries: Readonly<Record<string, Answering>> = {
  'internal-error': () => refusal('internal_error'),
  'bad-gateway': () => refusal('bad_gateway'),
  'rate-limited': () => refusal('rate_limited'),
  'temporarily-unavailable': () => refusal('temporarily_unavailable'),
  'route-stale': () => refusal('route_stale'),
  'target-not-local': () => refusal('target_not_local'),
  'route-not-found': () => refusal('route_not_found'),
  'not-found': () => refusal('not_found'),
  'invalid-state': () => refusal('invalid_state'),
  'a-reset': () => 'reset',
  'no-answer': () => 'ended',
  'no-json': () => ({ frame: 'accepted' }),
  'another-id': () => ({
    frame: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 'x' },
      result: { status: 'target_accepted', accepted_at: unixSeconds() },
    }),
  }),
  'delivering-as-status': () => result({ status: 'delivering', accepted_at: unixSeconds() }),
  'no-accepted-at': () => result({ status: 'target_accepted' }),
  'an-empty-result': () => result({}),
  'accepted-with-an-error': () =>
    result({
      ...{ status: 'target_accepted', accepted_at: unixSeconds() },
      error: { code: 'forbidden', message: 'no' },
    }),
  'a-malformed-wait': () => refusal('rate_limited', { retry_after: 0.5 }),
};

for (const [word, first] of Object.entries(retries)) {
  deliveries.check(
    `retries-${word}`,
    { source: '07 §C8', title: `repeats a delivery to the same relay, unchanged, after ${word}` },
    async (context) => {
      const fixture = await openSending(context);
      const { seat } = fixture;
      const { service } = seat;
      let count = 0;
      service.answer('message.deliver', async (call) => {
        count += 1;
        return count === 1 ? await first(call) : service.honest(call);
      });
      const sent = await send(fixture);
      await expectRetried(fixture, sent);
      assertEqual(attempts(seat, sent).length, 2, 'attempts of the delivery');
      expectUnchanged(seat, sent);
    },
  );
}

/** Milliseconds between two attempts at the least: less is no pause. */
const leastPause = 100;

deliveries.check(
  'waits',
  { source: '07 §C9', title: 'waits for the longer of its own pause and retry_after' },
  async (context) => {
    const fixture = await openSending(context);
    const pause = await pauseAfter(fixture, 0);
    assertConforms(pause >= leastPause, 'retry_after 0 leaves the pause of the relay');
    // So long that the own pause, which may have doubled, cannot be taken for it. A relay may count
    // whole seconds of its clock.
    const seconds = Math.ceil((2 * pause) / 1_000 + 1.2);
    if (seconds > 60) throw new NotApplicable(`the relay pauses for ${pause} ms`);
    const waited = (await pauseAfter(fixture, seconds)) / 1_000;
    assertConforms(waited > seconds - 1.1, `a wait of ${seconds} s, not ${waited.toFixed(1)} s`);
  },
);

/**
 * Refuses a message until an attempt has waited, at most twice: whole seconds of a relay's clock may
 * leave nothing of its first pause, but not of the next. Returns the longest pause in milliseconds.
 */
async function pauseAfter(fixture: SendingFixture, retry_after: number): Promise<number> {
  const { seat } = fixture;
  const pauses: number[] = [];
  let last: number | undefined;
  seat.service.answer('message.deliver', (call) => {
    // A busy machine makes this longer than the relay's own pause, and never shorter.
    if (last !== undefined) pauses.push(call.at - last);
    last = call.at;
    const hasWaited = pauses.some((pause) => pause >= leastPause);
    return hasWaited || pauses.length === 2
      ? seat.service.honest(call)
      : refusal('rate_limited', { retry_after });
  });
  await expectRetried(fixture, await send(fixture));
  return Math.max(...pauses);
}

/** Moves the recipient to a second relay of the kit, by a higher route. */
async function move({ context, to }: SendingFixture): Promise<RelaySeat> {
  const other = await context.seat();
  const connection = await other.connect();
  const revision = to.route.revision + 1;
  to.route = await routeTo(to.account, other, { revision });
  other.service.homes.push(to);
  await connection.storeRoute(to.route);
  return other;
}

deliveries.check(
  'switches',
  { source: '07 §C8', title: 'delivers to another relay after a route error, by a higher route' },
  async (context) => {
    const fixture = await openSending(context);
    const { seat } = fixture;
    let other: RelaySeat | undefined;
    seat.service.answer('message.deliver', async () => {
      other ??= await move(fixture);
      return refusal('route_stale');
    });
    const sent = await send(fixture);
    await expectDelivered(fixture, sent);
    assertConforms(other !== undefined, 'the first relay is asked first');
    assertEqual(attempts(other, sent).length, 1, 'attempts at the new relay');
    expectUnchanged(other, sent);
  },
);

deliveries.check(
  'stays-after-unknown-outcome',
  { source: '07 §C8', title: 'asks the relay that may have accepted first, also after a move' },
  async (context) => {
    const fixture = await openSending(context);
    const { seat } = fixture;
    let other: RelaySeat | undefined;
    seat.service.answer('message.deliver', async () => {
      if (other !== undefined) return refusal('route_stale');
      other = await move(fixture);
      return 'reset';
    });
    const sent = await send(fixture);
    await expectRetried(fixture, sent);
    assertConforms(other !== undefined, 'the first relay is asked first');
    assertEqual(attempts(other, sent).length, 1, 'attempts at the new relay');
    const [second, first] = [attempts(seat, sent)[1], attempts(other, sent)[0]];
    assertConforms(
      (second?.at ?? Number.POSITIVE_INFINITY) < (first?.at ?? 0),
      'the new relay is asked only after the route error of the old one',
    );
    expectUnchanged(other, sent);
  },
);

deliveries.check(
  'stays-below',
  { source: '07 §C8', title: 'never delivers to a relay that only a lower route names' },
  async (context) => {
    const fixture = await openSending(context);
    const { seat, to } = fixture;
    const other = await context.seat();
    await other.connect();
    const decoy = await other.home();
    const route = await routeTo(to.account, other, { revision: to.route.revision - 1 });
    Object.assign(decoy, { account: to.account, devices: to.devices, route });
    let count = 0;
    seat.service.answer('message.deliver', (call) => {
      count += 1;
      return count === 1 ? refusal('route_stale') : seat.service.honest(call);
    });
    const sent = await send(fixture);
    await expectRetried(fixture, sent);
    assertEqual(attempts(other, sent).length, 0, 'attempts at the relay of the lower route');
  },
);

export const sourceDeliverChecks = deliveries.list;
