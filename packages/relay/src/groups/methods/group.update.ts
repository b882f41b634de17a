import { checkCapacityCap, checkGroupParams, type GroupUpdate } from '@posthouse/protocol';
import type { CallingDevice } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { applyEvent, type SignedEvent } from '../chain/apply-event.ts';
import { writeInGroup } from '../chain/group-transactions.ts';
import { handsBack } from '../chain/handed-back.ts';
import { admitEvent, decideEvent } from '../chain/write-event.ts';
import { type WriteEvent, writeHandingBack } from '../chain/write-handing-back.ts';

/** `group.update` (05 §13.6), also with what a restored host lost (05 §5.6). */
export const groupUpdate: Handler<'group.update'> = async (context, call) => {
  const { network } = context;
  const { params: body } = call;
  checkGroupParams(network, 'group.update', body);
  const groupCall = { session: call.session, groupId: body.group_id };
  const content = { kind: 'group.update', body } as const;
  const write: WriteEvent = (tx, calling, event) => update(context, tx, { body, event, calling });
  if (handsBack(body)) return await writeHandingBack(context, groupCall, { content, write });
  const event = await admitEvent(context, groupCall, content);
  return await writeInGroup(context, groupCall, (tx, calling) => write(tx, calling, event));
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
