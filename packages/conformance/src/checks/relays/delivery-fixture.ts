/** Deliveries of a relay of the kit to the relay under test (07 §C8). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { grantedMessage } from '../../fixtures/direct-messages.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import type { HomeAccount } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import type { RelaySeat } from '../../seat/relay-seat.ts';

/** The relay under test is the home of the recipient, and the seat that of the sender. */
export interface DeliveryFixture {
  readonly seat: RelaySeat;
  readonly connection: RelayConnection;
  readonly from: HomeAccount;
  readonly to: TestAccount;
}

export async function openDelivery(
  context: TestContext,
  publicDiscovery?: boolean,
): Promise<DeliveryFixture> {
  const seat = await context.seat();
  const options = publicDiscovery === undefined ? {} : { publicDiscovery };
  const to = await context.testAccount(options);
  return { seat, connection: await seat.connect(), from: await seat.home(), to };
}

/** Makes the parameters of a delivery of those of `message.send`. */
export function asDelivery(
  from: Pick<HomeAccount | TestAccount, 'device'>,
  sent: JsonObject,
): JsonObject {
  const { sender_boxes: _, ...params } = sent;
  return { ...params, signer_certificate: from.device.certificate };
}

/** Makes a valid delivery, with a grant of the recipient. */
export function delivery(
  { from, to }: Pick<DeliveryFixture, 'from' | 'to'>,
  text = 'hi',
): JsonObject {
  return asDelivery(from, grantedMessage(from.device, [to.device], { text }));
}

/** Asserts that a delivery is accepted; returns when. */
export async function expectAccepted(
  connection: RelayConnection,
  params: JsonObject,
): Promise<number> {
  const status = await connection.expectResult('message.deliver', params);
  assertEqual(status.status, 'target_accepted', 'status of a delivery');
  assertEqual(status.error, undefined, 'error of an accepted delivery');
  const { accepted_at } = status;
  assertConforms(Number.isSafeInteger(accepted_at), 'accepted_at is in Unix seconds');
  const distance = Math.abs(Number(accepted_at) - unixSeconds());
  assertConforms(distance <= 300, `accepted_at is the time of acceptance, not ${distance} s off`);
  return Number(accepted_at);
}
