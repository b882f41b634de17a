import { checkGroupParams } from '@posthouse/protocol';
import { requireOwnAccount } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { writeChainEvent } from '../chain/write-event.ts';

/** `group.member.leave` (05 §13.17). */
export const groupMemberLeave: Handler<'group.member.leave'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.member.leave', body);
  requireOwnAccount(call.session, body.account);
  return await writeChainEvent(context, call.session, { kind: 'group.member.leave', body });
};
