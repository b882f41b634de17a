/** Deadlines of deliveries and the retention of their results (07 §C8, 04 §15.2, §16.1). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import {
  relayLimit,
  relayTime,
  requireShortPeriod,
  untilRelayTime,
} from '../../fixtures/relay-info.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { refusal } from '../../seat/relay-service.ts';
import { relayChecksOf } from './common.ts';
import { delivery, expectAccepted, openDelivery } from './delivery-fixture.ts';
import { attempts, openSending, send } from './sending-fixture.ts';

const received = relayChecksOf('rpc.message.deliver');
const sending = relayChecksOf('source.message.deliver');

/** Returns the published retention in seconds, if a check can wait for its end. */
async function shortRetention(context: TestContext): Promise<number> {
  const retention = await relayLimit(context, 'message_retention');
  requireShortPeriod(retention, 'messages and results are kept');
  return retention;
}

received.check(
  'retained',
  {
    source: '07 §C8, 04 §15.2',
    title: 'confirms an accepted message until the end of its retention',
    waitsForPeriod: true,
  },
  async (context) => {
    const retention = await shortRetention(context);
    const fixture = await openDelivery(context);
    const params = delivery(fixture);
    const first = await expectAccepted(fixture.connection, params);
    await untilRelayTime(context, first + retention - 1);
    assertEqual(await expectAccepted(fixture.connection, params), first, 'accepted_at of a repeat');
  },
);

sending.check(
  'deadline',
  {
    source: '07 §C8, 04 §16.1',
    title: 'ends a delivery with message_expired at its deadline, not before, and tries no more',
    waitsForPeriod: true,
  },
  async (context) => {
    const retention = await shortRetention(context);
    const fixture = await openSending(context);
    const { service } = fixture.seat;
    service.answer('message.deliver', () => refusal('temporarily_unavailable'));
    const sent = await send(fixture);
    const deadline = sent.acceptedAt + retention;
    const status = async () => {
      const query = { message_id: sent.messageId };
      const answer = await fixture.from.caller.call('message.delivery.status', query);
      // With the deadline, the retention of the result ends too.
      if (!answer.ok) return { status: 'gone', error: { code: answer.code } };
      const found = answer.result as JsonObject;
      return found.status === 'delivering' ? undefined : found;
    };
    const ended = await pollUntil('a delivery ends at its deadline', status, {
      seconds: retention + 10,
    });
    assertConforms((await relayTime(context)) >= deadline, 'no end before the deadline');
    const { code } = ended.error as JsonObject;
    const codes = ended.status === 'gone' ? ['not_found', 'message_expired'] : ['message_expired'];
    assertConforms(codes.includes(String(code)), `the delivery is ${codes.join(' or ')}`);
    const { length } = attempts(fixture.seat, sent);
    assertConforms(length > 0, 'a delivery is tried before its deadline');
    service.answer('message.deliver', (call) => service.honest(call));
    await untilRelayTime(context, deadline + 2);
    assertEqual(attempts(fixture.seat, sent).length, length, 'attempts after the deadline');
  },
);

export const messagePeriodChecks = [...received.list, ...sending.list];
