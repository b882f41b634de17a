import { checkCapacityCap, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeLink } from '../chain/write-event.ts';

/** `group.update` (05 §13.6). */
export const groupUpdate: Handler<'group.update'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.update', body);
  return await writeLink(context, call, { kind: 'group.update', body }, async ({ group }) => {
    const { member_capacity: current } = group.stored;
    const cap = context.limits.groupMembers;
    checkCapacityCap(body.member_capacity ?? current, { current, cap });
    return {};
  });
};
