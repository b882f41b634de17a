/** Writes the event of an owner that hands back what a restored host lost (05 §5.6). */
import type { ChainEvent } from '@posthouse/protocol';
import type { CallingDevice } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { HandlerResult } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { admitToWrite } from './admission.ts';
import type { SignedEvent } from './apply-event.ts';
import { type GroupCall, writeInGroup } from './group-transactions.ts';
import { handBack, requireRestored } from './hand-back.ts';
import { verifyHandedBack } from './handed-back.ts';
import { requireMember } from './require-member.ts';
import { signedEventOf } from './write-event.ts';

/** Decides and applies the event itself, after the events that it hands back. */
export type WriteEvent = (
  tx: Writer,
  calling: CallingDevice,
  event: SignedEvent,
) => Promise<HandlerResult>;

/**
 * Puts back what an event hands back, and writes the event, all or nothing. The owner is who it is after
 * the events that are handed back: `write` checks that.
 *
 * @throws ProtocolError as the chapter says
 */
export async function writeHandingBack(
  context: RelayContext,
  groupCall: GroupCall,
  { content, write }: { readonly content: ChainEvent; readonly write: WriteEvent },
): Promise<HandlerResult> {
  const { session } = groupCall;
  const { body } = content;
  await admitToWrite(context, { ...groupCall, signed: body }, async (tx) => {
    const { group } = await requireMember(tx, groupCall);
    requireRestored(group.stored, context.clock.now());
  });
  const handedBack = await verifyHandedBack(context, body, session.account);
  const event = signedEventOf(context.network, content);
  return await writeInGroup(context, groupCall, async (tx, calling) => {
    const { group } = await requireMember(tx, groupCall);
    await handBack(context, tx, { group: group.stored, handedBack, now: calling.now });
    return await write(tx, calling, event);
  });
}
