import { checkGroupParams, checkRotationCommit } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { readStaging } from '../chain/key-store.ts';
import { writeLink } from '../chain/write-event.ts';

/** `group.secret.rotation.commit` (05 §13.27). */
export const groupSecretRotationCommit: Handler<'group.secret.rotation.commit'> = async (
  context,
  call,
) => {
  const { params: body } = call;
  checkGroupParams(context.network, 'group.secret.rotation.commit', body);
  const link = { kind: 'group.secret.rotation', body } as const;
  return await writeLink(context, call, link, async ({ tx, group, caller, now }) => {
    const staging = await readStaging(tx, body.group_id);
    const { account } = caller;
    return {
      rotation: checkRotationCommit({ group: group.view, staging }, body, { account, now }),
    };
  });
};
