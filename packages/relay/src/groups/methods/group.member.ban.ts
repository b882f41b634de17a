import { checkBanCap, checkGroupParams } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { writeLink } from '../chain/write-event.ts';

/** `group.member.ban` (05 §13.19). */
export const groupMemberBan: Handler<'group.member.ban'> = async (context, call) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.member.ban', body);
  const link = { kind: 'group.member.ban', body } as const;
  return await writeLink(context, call, link, async ({ group, effects }) => {
    const { ban_count: present } = group.stored;
    checkBanCap({ present, added: effects.banned.length, cap: context.limits.groupBans });
    return {};
  });
};
