import { checkCapacityCap, checkGroupParams, type GroupUpdate } from '@posthouse/protocol';
import type { CallingDevice } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { admitToWrite } from '../chain/admission.ts';
import { applyEvent, type SignedEvent } from '../chain/apply-event.ts';
import { type GroupCall, writeInGroup } from '../chain/group-transactions.ts';
import { handBack, requireRestored } from '../chain/hand-back.ts';
import { handsBack, verifyHandedBack } from '../chain/handed-back.ts';
import { requireMember } from '../chain/require-member.ts';
import { admitEvent, decideEvent, signedEventOf } from '../chain/write-event.ts';

/** `group.update` (05 §13.6), also with what a restored host lost (05 §5.6). */
export const groupUpdate: Handler<'group.update'> = async (context, call) => {
  const { network } = context;
  const { params: body } = call;
  checkGroupParams(network, 'group.update', body);
  const groupCall = { session: call.session, groupId: body.group_id };
  const event = signedEventOf(network, { kind: 'group.update', body });
  if (handsBack(body)) return await handBackAndUpdate(context, groupCall, { body, event });
  await admitEvent(context, groupCall, event);
  return await writeInGroup(context, groupCall, (tx, calling) =>
    update(context, tx, { body, event, calling }),
  );
};

interface Update {
  readonly body: GroupUpdate;
  readonly event: SignedEvent;
}

async function update(
  context: RelayContext,
  tx: Writer,
  { body, event, calling }: Update & { readonly calling: CallingDevice },
): Promise<HandlerResult> {
  const decided = await decideEvent(tx, calling, event);
  const { member_capacity: current } = decided.group.stored;
  const cap = context.limits.groupMembers;
  checkCapacityCap(body.member_capacity ?? current, { current, cap });
  return await applyEvent(context, tx, decided);
}

/** The owner is who it is after the events that are handed back: `update` checks that. */
async function handBackAndUpdate(
  context: RelayContext,
  groupCall: GroupCall,
  { body, event }: Update,
): Promise<HandlerResult> {
  const { session } = groupCall;
  await admitToWrite(context, { ...groupCall, signed: body }, async (tx) => {
    const { group } = await requireMember(tx, groupCall);
    requireRestored(group.stored, context.clock.now());
  });
  const handedBack = await verifyHandedBack(context, body, session.account);
  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const { group } = await requireMember(tx, groupCall);
    await handBack(context, tx, { group: group.stored, handedBack, now: calling.now });
    return await update(context, tx, { body, event, calling });
  });
}
