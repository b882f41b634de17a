/** Deliveries of the relay under test to a relay of the kit (07 §C8). */
import { setTimeout } from 'node:timers/promises';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual, NotApplicable } from '../../assert.ts';
import { grantedMessage } from '../../fixtures/direct-messages.ts';
import { pollUntil } from '../../fixtures/poll.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import type { HomeAccount } from '../../seat/home-account.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';
import { openSource, type SourceFixture } from './source-fixture.ts';

/** The sender is at home at the relay under test, the recipient at the seat. */
export interface SendingFixture extends Pick<SourceFixture, 'context' | 'seat' | 'connection'> {
  readonly from: TestAccount;
  readonly to: HomeAccount;
}

export async function openSending(context: TestContext): Promise<SendingFixture> {
  const { asker: from, home: to, ...others } = await openSource(context);
  return { ...others, from, to };
}

/** Seconds in which a delivery to a connected relay must have ended. */
const deliveryTime = 30;

/** Seconds for which a check waits for another attempt: the pauses are the relay's own matter. */
const retryTime = 90;

/** A message that a client has sent. */
export interface Sent {
  readonly messageId: string;
  /** When the relay under test accepted it, Unix seconds. */
  readonly acceptedAt: number;
  /** What each attempt must send: all that the client has sent, but its own boxes. */
  readonly expected: JsonObject;
}

export async function send({ context, from, to }: SendingFixture): Promise<Sent> {
  const params = grantedMessage(from.device, [to.device], { senders: [from.device.certificate] });
  const status = (await context.expectOk(from.caller, 'message.send', params)) as JsonObject;
  assertConforms(
    status.status === 'delivering' || status.status === 'target_accepted',
    `message.send to another relay is delivering, not ${status.status}`,
  );
  const { sender_boxes: _, ...others } = params;
  const messageId = String((params.envelope as JsonObject).message_id);
  const acceptedAt = Number(status.accepted_at);
  return {
    messageId,
    acceptedAt,
    expected: { ...others, signer_certificate: from.device.certificate },
  };
}

export async function statusOf(
  { context, from }: SendingFixture,
  { messageId }: Sent,
): Promise<JsonObject> {
  const query = { message_id: messageId };
  return (await context.expectOk(from.caller, 'message.delivery.status', query)) as JsonObject;
}

export async function ended(
  fixture: SendingFixture,
  sent: Sent,
  seconds = deliveryTime,
): Promise<JsonObject> {
  return await pollUntil(
    'a delivery ends',
    async () => {
      const status = await statusOf(fixture, sent);
      return status.status === 'delivering' ? undefined : status;
    },
    { seconds },
  );
}

export async function expectDelivered(
  fixture: SendingFixture,
  sent: Sent,
  seconds?: number,
): Promise<void> {
  const { status, error } = await ended(fixture, sent, seconds);
  const found = `${status} ${error === undefined ? '' : JSON.stringify(error)}`;
  assertConforms(status === 'target_accepted', `the delivery is target_accepted, not ${found}`);
}

/**
 * Asserts that a delivery whose first attempt fails is made again, and succeeds.
 *
 * @throws NotApplicable if the relay's pauses are longer than a check waits
 */
export async function expectRetried(fixture: SendingFixture, sent: Sent): Promise<void> {
  const first = async () => attempts(fixture.seat, sent)[0];
  await pollUntil('a delivery is tried', first, { seconds: deliveryTime });
  const deadline = Date.now() + retryTime * 1_000;
  while (attempts(fixture.seat, sent).length === 1) {
    const { status } = await statusOf(fixture, sent);
    if (status !== 'delivering') break;
    if (Date.now() > deadline) {
      throw new NotApplicable(`the relay makes no second attempt within ${retryTime} s`);
    }
    await setTimeout(100);
  }
  await expectDelivered(fixture, sent, retryTime);
}

/** Returns the attempts of a message at a relay, in order. */
export function attempts({ service }: RelaySeat, { messageId }: Sent) {
  const calls = service.calls('message.deliver');
  return calls.filter(({ params }) => (params.envelope as JsonObject).message_id === messageId);
}

export function expectUnchanged(seat: RelaySeat, sent: Sent): void {
  for (const { params } of attempts(seat, sent)) {
    assertEqual(canonicalJson(params), canonicalJson(sent.expected), 'parameters of an attempt');
  }
}
