import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeChainEvent } from '../chain/write-event.ts';

/** `group.member.unban` (05 §13.20). */
export const groupMemberUnban: Handler<'group.member.unban'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.member.unban', body);
  return await writeChainEvent(context, call.session, { kind: 'group.member.unban', body });
};
