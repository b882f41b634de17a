import { checkGroupParams, checkRotationCommit } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { applyEvent } from '../chain/apply-event.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { readStaging } from '../chain/key-store.ts';
import { admitEvent, decideEvent } from '../chain/write-event.ts';

/** `group.secret.rotation.commit` (05 §13.27). */
export const groupSecretRotationCommit: Handler<'group.secret.rotation.commit'> = async (
  context,
  call,
) => {
  const { network } = context;
  const { params: body } = call;
  checkGroupParams(network, 'group.secret.rotation.commit', body);
  const groupId = body.group_id;
  const groupCall = { session: call.session, groupId };
  const event = await admitEvent(context, groupCall, { kind: 'group.secret.rotation', body });
  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const decided = await decideEvent(tx, calling, event);
    const staged = { group: decided.group.view, staging: await readStaging(tx, groupId) };
    const by = { account: calling.caller.account, now: calling.now };
    const rotation = checkRotationCommit(staged, body, by);
    return await applyEvent(context, tx, { ...decided, rotation });
  });
};
