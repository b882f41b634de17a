import { checkBanCap, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { applyEvent } from '../chain/apply-event.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { admitEvent, decideEvent } from '../chain/write-event.ts';

/** `group.member.ban` (05 §13.19). */
export const groupMemberBan: Handler<'group.member.ban'> = async (context, call) => {
  const { limits, network } = context;
  const { params: body } = call;
  checkGroupParams(network, 'group.member.ban', body);
  const groupCall = { session: call.session, groupId: body.group_id };
  const event = await admitEvent(context, groupCall, { kind: 'group.member.ban', body });
  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const decided = await decideEvent(tx, calling, event);
    const { ban_count: present } = decided.group.stored;
    checkBanCap({ present, added: decided.effects.banned.length, cap: limits.groupBans });
    return await applyEvent(context, tx, decided);
  });
};
