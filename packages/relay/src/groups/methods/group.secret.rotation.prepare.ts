import { checkGroupParams, prepareRotation } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { writeAdmitted } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { forEach } from '../../storage/in-lists.ts';
import type { Writer } from '../../storage/types.ts';
import { type StoredGroup, setLastBoxSet } from '../chain/group-store.ts';
import {
  countStagedBoxes,
  dropSet,
  readStaging,
  type StoredStaging,
  writeBox,
  writeStaging,
} from '../chain/key-store.ts';
import { loadGroup } from '../chain/load-group.ts';
import { requireOwner } from '../chain/require-member.ts';
import { expiryJobName } from '../upkeep/jobs.ts';

/** `group.secret.rotation.prepare` (05 §13.26). */
export const groupSecretRotationPrepare: Handler<'group.secret.rotation.prepare'> = async (
  context,
  call,
) => {
  const { limits } = context;
  const session = call.session;
  const { params } = call;
  checkGroupParams(context.network, 'group.secret.rotation.prepare', params);
  const { group_id: groupId, client_secret_boxes: boxes } = params;
  const { account } = session;
  const accounts = Object.keys(boxes);
  const texts = Object.entries(boxes).map(([of, box]) => ({
    account: of,
    box: canonicalJson(box),
  }));
  const outcome = await writeAdmitted(context, {
    ...{ session, aggregates: `group:${groupId}` },
    admit: (tx, { now }) => requireOwner(tx, session, { groupId, now }),
    work: async (tx, _, now) => {
      const { stored, view } = await loadGroup(tx, groupId, [account, ...accounts]);
      const staging = await readStaging(tx, groupId);
      const period = limits.groupStagingPeriod;
      const decision = prepareRotation({ group: view, staging }, params, { account, now, period });
      const base = decision.continued ?? {
        ...decision.begun,
        ...(await beginSet(tx, stored, staging)),
      };
      const { boxSet } = base;
      const known = await countStagedBoxes(tx, groupId, { boxSet, accounts });
      await forEach(texts, (box) => writeBox(tx, groupId, { boxSet, fromEpoch: 0, ...box }));
      const prepared = base.boxCount + accounts.length - known;
      await writeStaging(tx, groupId, { ...base, boxCount: prepared });
      return { result: { prepared, expires_at: base.expires_at } };
    },
  });
  context.jobs.wake(expiryJobName);
  return outcome;
};

/** An empty set of boxes; that of a preparation it replaces is given up. */
async function beginSet(
  tx: Writer,
  { group_id: groupId, last_box_set }: StoredGroup,
  replaced: StoredStaging | undefined,
): Promise<{ readonly boxSet: number; readonly boxCount: number }> {
  if (replaced !== undefined) await dropSet(tx, groupId, replaced.boxSet);
  const boxSet = last_box_set + 1;
  await setLastBoxSet(tx, groupId, boxSet);
  return { boxSet, boxCount: 0 };
}
