import { checkGroupParams, groupStateOf, ProtocolError } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import { readInGroup } from '../chain/group-transactions.ts';
import { type LoadedGroup, loadGroup } from '../chain/load-group.ts';
import { readUsableInvite } from '../requests/usable-invite.ts';

/** `group.resolve` (05 §13.3). */
export const groupResolve: Handler<'group.resolve'> = async (context, call) => {
  checkGroupParams(context.network, 'group.resolve', call.params);
  const { group_id: groupId, invite_id: inviteId } = call.params;
  const session = call.session;
  const { account } = session;
  return await readInGroup(context, { session, groupId }, async (tx, { now }) => {
    const group = await loadGroup(tx, groupId, [account]);
    if (!(await maySeeGroup(tx, group, { account, inviteId, now }))) {
      throw new ProtocolError('forbidden', 'the account may not see this group');
    }
    return { result: { ...groupStateOf(group.view) } };
  });
};

/** Returns whether an account is a member or holds an invitation it can use; a ban excludes both. */
async function maySeeGroup(
  tx: Reader,
  { view }: LoadedGroup,
  guest: { readonly account: string; readonly inviteId: string | undefined; readonly now: number },
): Promise<boolean> {
  const { account, inviteId, now } = guest;
  if (view.bans.has(account)) return false;
  if (view.members.get(account) !== undefined) return true;
  if (inviteId === undefined) return false;
  return (await readUsableInvite(tx, view.group_id, { inviteId, account, now })) !== undefined;
}
