import { checkGroupParams, groupStateOf, ProtocolError } from '@posthouse/protocol';
import { requireCaller } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { type LoadedGroup, loadGroup } from '../chain/load-group.ts';
import { usableInvite } from '../requests/usable-invite.ts';

/** `group.resolve` (05 §13.3). */
export const groupResolve: Handler<'group.resolve'> = async (context, call) => {
  const { clock, network, storage } = context;
  checkGroupParams(network, 'group.resolve', call.params);
  const { group_id: groupId, invite_id: inviteId } = call.params;
  const session = call.session;
  const now = clock.now();
  return await storage.read(async (tx) => {
    await requireCaller(tx, session, now);
    const group = await loadGroup(tx, groupId, [session.account]);
    if (!(await mayLook(tx, group, { account: session.account, inviteId, now }))) {
      throw new ProtocolError('forbidden', 'the account may not see this group');
    }
    return { result: { ...groupStateOf(group.view) } };
  });
};

/** Members, and who holds an invitation it could use now; a ban defeats any. */
async function mayLook(
  tx: Reader,
  { view }: LoadedGroup,
  guest: { readonly account: string; readonly inviteId: string | undefined; readonly now: number },
): Promise<boolean> {
  const { account, inviteId, now } = guest;
  if (view.bans.has(account)) return false;
  if (view.members.get(account) !== undefined) return true;
  if (inviteId === undefined) return false;
  return (await usableInvite(tx, view.group_id, { inviteId, account, now })) !== undefined;
}
