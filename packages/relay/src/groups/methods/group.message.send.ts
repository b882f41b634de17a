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
import { requireRoom } from '../../usage/index.ts';
import { admitToWrite } from '../chain/admission.ts';
import { groupMessages } from '../chain/append-message.ts';
import {
  insertMessage,
  insertSent,
  keepCertificate,
  readSent,
  wholeHour,
} from '../chain/event-store.ts';
import { setSequence } from '../chain/group-store.ts';
import { type GroupCall, writeInGroup } from '../chain/group-transactions.ts';
import { keepEpoch } from '../chain/key-store.ts';
import type { LoadedGroup } from '../chain/load-group.ts';
import { messageKey } from '../chain/new-message.ts';
import { timelineNotice } from '../chain/notices.ts';
import { requireMember } from '../chain/require-member.ts';

/** `group.message.send` (05 §13.28). */
export const groupMessageSend: Handler<'group.message.send'> = async (context, call) => {
  const { limits } = context;
  const session = call.session;
  const { params: envelope } = call;
  checkGroupParams(context.network, 'group.message.send', envelope);
  const text = canonicalJson(envelope);
  const textDigest = digest(text);
  const key = { account: session.account, messageId: envelope.message_id };
  const groupCall = { session, groupId: envelope.group_id };
  const { caller } = await admitToWrite(context, { ...groupCall, signed: envelope }, (tx) =>
    requireSender(tx, groupCall),
  );
  const now = context.clock.now();
  if (isCreatedNow(limits, envelope, now)) {
    const { epoch } = envelope;
    const keepUntil = now + limits.groupMessageRetention;
    const mostBytes = limits.groupStoredBytes;
    const message = {
      ...groupCall,
      key,
      caller,
      epoch,
      text,
      digest: textDigest,
      now,
      keepUntil,
      mostBytes,
    };
    const group = await context.storage.append(groupMessages, message);
    if (group !== undefined) {
      return { result: { sequence: group.sequence }, notices: [timelineNotice(group)] };
    }
  }
  return await writeInGroup(
    context,
    { ...groupCall, alsoHolds: [messageKey(key)] },
    async (tx, { caller: { signer }, now }): Promise<HandlerResult> => {
      const group = await requireSender(tx, groupCall);
      const sent = await readSent(tx, key);
      if (sent !== undefined) {
        if (sent.envelope === textDigest) return { result: { sequence: sent.sequence } };
        throw new ProtocolError('state_conflict', 'the message ID is of another message');
      }
      if (!isCreatedNow(limits, envelope, now)) {
        throw new ProtocolError('clock_skew', 'created_at: outside the clock tolerance');
      }
      checkGroupSender(group.view, envelope, session.account);
      requireRoom(group.stored.stored_bytes, limits.groupStoredBytes, 'the group');
      return await appendMessage(limits, tx, { group, key, text, digest: textDigest, signer, now });
    },
  );
};

/** @throws ProtocolError `not_found`, `forbidden`, `state_conflict` */
async function requireSender(tx: Reader, groupCall: GroupCall): Promise<LoadedGroup> {
  const { group } = await requireMember(tx, groupCall);
  checkGroupOpen(group.view);
  return group;
}

function isCreatedNow(
  limits: RelayLimits,
  { created_at }: GroupMessageEnvelope,
  now: number,
): boolean {
  return Math.abs(created_at - now) <= limits.authClockTolerance;
}

interface NewMessage {
  readonly group: LoadedGroup;
  readonly key: { readonly account: string; readonly messageId: string };
  /** Canonical JSON of the envelope. */
  readonly text: string;
  /** Digest of the text. */
  readonly digest: string;
  readonly signer: Signer;
  readonly now: number;
}

async function appendMessage(
  limits: RelayLimits,
  tx: Writer,
  { group, key, text, digest: envelope, signer, now }: NewMessage,
): Promise<HandlerResult> {
  const { stored, view } = group;
  const { group_id: groupId } = stored;
  const { sequence, epoch } = nextGroupPosition(view, { advancesEpoch: false });
  const keepUntil = now + limits.groupMessageRetention;
  const event = { sequence, epoch, acceptedAt: now, payload: text };
  await tx.run(...keepCertificate(groupId, { signer, neededUntil: keepUntil }));
  await tx.run(...insertMessage(groupId, { event, signer, keepUntil }));
  if ((await tx.run(...insertSent(key, { groupId, sequence, envelope, keepUntil }))) === 0) {
    throw new Error('the message ID got a result although the write holds it');
  }
  await tx.run(...keepEpoch(groupId, { epoch, keepUntil: wholeHour(keepUntil) }));
  await tx.run(...setSequence(groupId, { sequence, bytes: Buffer.byteLength(text) }));
  return { result: { sequence }, notices: [timelineNotice({ ...stored, sequence })] };
}
