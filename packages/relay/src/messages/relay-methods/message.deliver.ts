import type { RelayHandler } from '../../dispatch/relay-handler.ts';
import { deliveryStatus } from '../delivery-status.ts';
import { receiveDelivery } from '../receive-delivery.ts';

/** `message.deliver` (07 §C8): receives a message of another relay's account. */
export const messageDeliver: RelayHandler<'message.deliver'> = async (
  context,
  { params, peer },
) => {
  const { acceptedAt, notices } = await receiveDelivery(context, params, peer);
  return { result: deliveryStatus({ status: 'target_accepted', acceptedAt }), notices };
};
