import { checkGroupParams, prepareRotation } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Handler } from '../../dispatch/handler.ts';
import { forEach } from '../../storage/in-lists.ts';
import type { Writer } from '../../storage/types.ts';
import { admitToWrite } from '../chain/admission.ts';
import { type StoredGroup, setLastBoxSet } from '../chain/group-store.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import {
  countStagedBoxes,
  dropSet,
  readStaging,
  type StoredStaging,
  writeBox,
  writeStaging,
} from '../chain/key-store.ts';
import { requireOwner } from '../chain/require-member.ts';
import { expiryJobName } from '../upkeep/expiry-job.ts';

/** `group.secret.rotation.prepare` (05 §13.26). */
export const groupSecretRotationPrepare: Handler<'group.secret.rotation.prepare'> = async (
  context,
  call,
) => {
  const { params } = call;
  checkGroupParams(context.network, 'group.secret.rotation.prepare', params);
  const { group_id: groupId, client_secret_boxes: boxes } = params;
  const groupCall = { session: call.session, groupId };
  const { account } = groupCall.session;
  const accounts = Object.keys(boxes);
  const texts = Object.entries(boxes).map(([of, box]) => ({
    account: of,
    box: canonicalJson(box),
  }));
  await admitToWrite(context, groupCall, (tx) => requireOwner(tx, groupCall));
  const result = await writeInGroup(context, groupCall, async (tx, { now }) => {
    const { group } = await requireOwner(tx, groupCall, accounts);
    const { stored, view } = group;
    const staging = await readStaging(tx, groupId);
    const period = context.limits.groupStagingPeriod;
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
  });
  context.jobs.wake(expiryJobName);
  return result;
};

/** Begins an empty set of boxes; the set of a preparation that it replaces is dropped. */
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
