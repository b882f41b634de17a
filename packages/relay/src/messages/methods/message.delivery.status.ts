import { ProtocolError } from '@posthouse/protocol';
import { confirmDevice } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { deliveryStatus } from '../delivery-status.ts';
import { readPriorResults } from '../received-store.ts';

/**
 * `message.delivery.status` (04 section 14.3): for messages that the calling account sent from this
 * relay, even if it is not at home here any more.
 */
export const messageDeliveryStatus: Handler<'message.delivery.status'> = async (context, call) => {
  const session = call.session;
  const now = context.clock.now();
  const key = { sender: session.account, messageId: call.params.message_id };
  const result = await context.storage.read(async (tx) => {
    await confirmDevice(context, tx, { session, now });
    return (await readPriorResults(tx, key)).sent;
  });
  if (result === undefined) throw new ProtocolError('not_found', 'no such message is known');
  return { result: deliveryStatus(result) };
};
