import { checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeChainEvent } from '../chain/write-event.ts';

/** `group.role.update` (05 §13.7). */
export const groupRoleUpdate: Handler<'group.role.update'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.role.update', body);
  return await writeChainEvent(context, call.session, { kind: 'group.role.update', body });
};
