import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeChainEvent } from '../chain/write-event.ts';

/** `group.owner.transfer` (05 §13.8). */
export const groupOwnerTransfer: Handler<'group.owner.transfer'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.owner.transfer', body);
  return await writeChainEvent(context, call.session, { kind: 'group.owner.transfer', body });
};
