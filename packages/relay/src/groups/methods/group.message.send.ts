import {
  checkGroupOpen,
  checkGroupParams,
  checkGroupSender,
  type GroupMessageEnvelope,
  nextGroupPosition,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { type Signer, writeAdmitted } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import { digest } from '../../digest.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { Notice } from '../../dispatch/notice.ts';
import type { Writer } from '../../storage/types.ts';
import { insertMessage, insertSent, readSent, wholeHour } from '../chain/event-store.ts';
import { setSequence } from '../chain/group-store.ts';
import { keepEpoch } from '../chain/key-store.ts';
import type { LoadedGroup } from '../chain/load-group.ts';
import { timelineNotice } from '../chain/notices.ts';
import { requireMember } from '../chain/require-member.ts';

/** `group.message.send` (05 §13.28). */
export const groupMessageSend: Handler<'group.message.send'> = async (context, call) => {
  const session = call.session;
  const { params: envelope } = call;
  checkGroupParams(context.network, 'group.message.send', envelope);
  const text = canonicalJson(envelope);
  const key = { account: session.account, messageId: envelope.message_id };
  // One message ID of an account is one result, whatever group it is for.
  const aggregates = [
    `group:${envelope.group_id}`,
    `group-message:${key.account}:${key.messageId}`,
  ];
  return await writeAdmitted(context, {
    ...{ session, aggregates, signed: envelope },
    admit: async (tx, { now }) => {
      const member = await requireMember(tx, session, { groupId: envelope.group_id, now });
      checkGroupOpen(member.group.view);
      return member;
    },
    work: async (tx, { group, caller: { signer } }, now): Promise<HandlerResult> => {
      const sent = await readSent(tx, key);
      if (sent !== undefined) {
        if (sent.envelope === digest(text)) return { result: { sequence: sent.sequence } };
        throw new ProtocolError('state_conflict', 'the message ID is of another message');
      }
      checkCreatedAt(context, envelope, now);
      checkGroupSender(group.view, envelope, session.account);
      return await append(context, tx, { group, key, text, signer, now });
    },
  });
};

function checkCreatedAt(
  { limits }: RelayContext,
  { created_at }: GroupMessageEnvelope,
  now: number,
): void {
  if (Math.abs(created_at - now) <= limits.authClockTolerance) return;
  throw new ProtocolError('clock_skew', 'created_at: outside the clock tolerance');
}

interface NewMessage {
  readonly group: LoadedGroup;
  readonly key: { readonly account: string; readonly messageId: string };
  /** Canonical JSON of the envelope. */
  readonly text: string;
  readonly signer: Signer;
  readonly now: number;
}

async function append(
  { limits }: RelayContext,
  tx: Writer,
  { group, key, text, signer, now }: NewMessage,
): Promise<{
  readonly result: { readonly sequence: number };
  readonly notices: readonly Notice[];
}> {
  const { stored, view } = group;
  const { group_id: groupId } = stored;
  const { sequence, epoch } = nextGroupPosition(view, { advancesEpoch: false });
  const keepUntil = now + limits.groupMessageRetention;
  const event = { sequence, epoch, acceptedAt: now, payload: text };
  await insertMessage(tx, groupId, { event, signer, keepUntil });
  await insertSent(tx, key, { groupId, sequence, envelope: digest(text), keepUntil });
  await keepEpoch(tx, groupId, { epoch, keepUntil: wholeHour(keepUntil) });
  await setSequence(tx, groupId, sequence);
  return { result: { sequence }, notices: [timelineNotice({ ...stored, sequence })] };
}
