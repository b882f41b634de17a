import {
  checkGroupOpen,
  checkGroupParams,
  checkGroupSender,
  type GroupMessageEnvelope,
  nextGroupPosition,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Signer } from '../../accounts/index.ts';
import { digest } from '../../digest.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { RelayLimits } from '../../limits.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { admitToWrite } from '../chain/admission.ts';
import { insertMessage, insertSent, readSent, wholeHour } from '../chain/event-store.ts';
import { setSequence } from '../chain/group-store.ts';
import { type GroupCall, writeInGroup } from '../chain/group-transactions.ts';
import { keepEpoch } from '../chain/key-store.ts';
import type { LoadedGroup } from '../chain/load-group.ts';
import { timelineNotice } from '../chain/notices.ts';
import { requireMember } from '../chain/require-member.ts';

/** `group.message.send` (05 §13.28). */
export const groupMessageSend: Handler<'group.message.send'> = async (context, call) => {
  const { limits } = context;
  const session = call.session;
  const { params: envelope } = call;
  checkGroupParams(context.network, 'group.message.send', envelope);
  const text = canonicalJson(envelope);
  const key = { account: session.account, messageId: envelope.message_id };
  const groupCall = { session, groupId: envelope.group_id };
  await admitToWrite(context, { ...groupCall, signed: envelope }, (tx) =>
    requireSender(tx, groupCall),
  );
  // A message ID of an account has one result, whatever group the message is for.
  const alsoHolds = [`group-message:${key.account}:${key.messageId}`];
  return await writeInGroup(
    context,
    { ...groupCall, alsoHolds },
    async (tx, { caller: { signer }, now }): Promise<HandlerResult> => {
      const group = await requireSender(tx, groupCall);
      const sent = await readSent(tx, key);
      if (sent !== undefined) {
        if (sent.envelope === digest(text)) return { result: { sequence: sent.sequence } };
        throw new ProtocolError('state_conflict', 'the message ID is of another message');
      }
      checkCreatedAt(limits, envelope, now);
      checkGroupSender(group.view, envelope, session.account);
      return await appendMessage(limits, tx, { group, key, text, signer, now });
    },
  );
};

/** @throws ProtocolError `not_found`, `forbidden`, `state_conflict` */
async function requireSender(tx: Reader, groupCall: GroupCall): Promise<LoadedGroup> {
  const { group } = await requireMember(tx, groupCall);
  checkGroupOpen(group.view);
  return group;
}

function checkCreatedAt(
  limits: RelayLimits,
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

async function appendMessage(
  limits: RelayLimits,
  tx: Writer,
  { group, key, text, signer, now }: NewMessage,
): Promise<HandlerResult> {
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
