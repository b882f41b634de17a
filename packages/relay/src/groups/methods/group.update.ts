import { checkCapacityCap, checkGroupParams, type GroupUpdate } from '@posthouse/protocol';
import type { CallingDevice } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { applyEvent, type SignedEvent } from '../chain/apply-event.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { handsBack } from '../chain/handed-back.ts';
import { admitEvent, decideEvent, signedEventOf } from '../chain/write-event.ts';
import { type WriteEvent, writeHandingBack } from '../chain/write-handing-back.ts';

/** `group.update` (05 §13.6), also with what a restored host lost (05 §5.6). */
export const groupUpdate: Handler<'group.update'> = async (context, call) => {
  const { network } = context;
  const { params: body } = call;
  checkGroupParams(network, 'group.update', body);
  const groupCall = { session: call.session, groupId: body.group_id };
  const event = signedEventOf(network, { kind: 'group.update', body });
  const write: WriteEvent = (tx, calling) => update(context, tx, { body, event, calling });
  if (handsBack(body)) return await writeHandingBack(context, groupCall, { event, write });
  await admitEvent(context, groupCall, event);
  return await writeInGroup(context, groupCall, write);
};

interface Update {
  readonly body: GroupUpdate;
  readonly event: SignedEvent;
  readonly calling: CallingDevice;
}

async function update(
  context: RelayContext,
  tx: Writer,
  { body, event, calling }: Update,
): Promise<HandlerResult> {
  const decided = await decideEvent(tx, calling, event);
  const { member_capacity: current } = decided.group.stored;
  const cap = context.limits.groupMembers;
  checkCapacityCap(body.member_capacity ?? current, { current, cap });
  return await applyEvent(context, tx, decided);
}
