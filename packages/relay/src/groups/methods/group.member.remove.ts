import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeChainEvent } from '../chain/write-event.ts';

/** `group.member.remove` (05 §13.18). */
export const groupMemberRemove: Handler<'group.member.remove'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.member.remove', body);
  return await writeChainEvent(context, call.session, { kind: 'group.member.removal', body });
};
