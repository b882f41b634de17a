import { checkCapacityCap, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { applyEvent } from '../chain/apply-event.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { admitEvent, decideEvent, signedEventOf } from '../chain/write-event.ts';

/** `group.update` (05 §13.6). */
export const groupUpdate: Handler<'group.update'> = async (context, call) => {
  const { limits, network } = context;
  const { params: body } = call;
  checkGroupParams(network, 'group.update', body);
  const groupCall = { session: call.session, groupId: body.group_id };
  const event = signedEventOf(network, { kind: 'group.update', body });
  await admitEvent(context, groupCall, event);
  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const decided = await decideEvent(tx, calling, event);
    const { member_capacity: current } = decided.group.stored;
    checkCapacityCap(body.member_capacity ?? current, { current, cap: limits.groupMembers });
    return await applyEvent(context, tx, decided);
  });
};
