import { deliveryDeadline, ProtocolError } from '@posthouse/protocol';
import {
  type Access,
  type Device,
  homeOf,
  requireCallingDevice,
  requireHome,
} from '../accounts/index.ts';
import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { keepMessage, keepSent, type Message, receive } from './append.ts';
import { insertDelivery, isQueueFull } from './queue-store.ts';
import { checkRepeat, recordDeadline, resultDeadline } from './rules.ts';
import type { Submission } from './send-request.ts';
import { insertResult, readResult, type StoredResult } from './store.ts';

/** What holds for one `message.send` from its first look at storage to its commit. */
export interface Sending {
  readonly submission: Submission;
  readonly session: DeviceSession;
  /** Unix seconds. */
  readonly now: number;
}

/** What storage says before anything is done. */
export interface Seen {
  readonly device: Device;
  readonly repeat: StoredResult | undefined;
  readonly isLocal: boolean;
}

/** Steps 4 and 5 of 12.1, and who is where. */
export async function lookUp(context: RelayContext, tx: Reader, sending: Sending): Promise<Seen> {
  const { submission, session, now } = sending;
  const { from, to, message_id: messageId } = submission.envelope;
  const { relayId } = context.identity;
  requireHome(await homeOf(tx, from, relayId, now));
  const device = await requireCallingDevice(tx, session, now);
  const stored = await readResult(tx, { sender: from, messageId });
  return {
    device,
    repeat: checkRepeat(stored, submission.request),
    isLocal: (await homeOf(tx, to, relayId, now)).kind === 'local',
  };
}

export interface Accepted {
  readonly result: Pick<StoredResult, 'status' | 'acceptedAt' | 'error'>;
  readonly notices: readonly Notice[];
}

/** Everything that depends on state, and every effect, in one transaction. */
export async function accept(
  context: RelayContext,
  tx: Writer,
  sending: Sending & { readonly access: Access | undefined },
): Promise<Accepted> {
  const { submission, now } = sending;
  const { device, repeat, isLocal } = await lookUp(context, tx, sending);
  if (repeat !== undefined) return { result: repeat, notices: [] };
  const { envelope, stored, senderBoxes } = submission;
  const keepUntil = recordDeadline(now, context.limits);
  const { deviceId, certificateId, certificate } = device;
  const message: Message = {
    envelope: stored,
    certificate: { id: certificateId, deviceId, text: certificate },
  };
  await keepMessage(tx, message, keepUntil);
  const notices: Notice[] = [];
  if (senderBoxes !== undefined) {
    const part = { account: envelope.from, boxes: senderBoxes, now, keepUntil };
    notices.push(await keepSent(tx, message, part));
  }
  // A recipient that has come home here since the first look is served by the queue.
  const atOnce = isLocal && sending.access !== undefined;
  if (atOnce) {
    const access = envelope.from === envelope.to ? undefined : sending.access;
    const part = { account: envelope.to, boxes: submission.recipientBoxes, now, keepUntil };
    notices.push(await receive(tx, message, { ...part, access }));
  } else {
    await enqueue(context, tx, { message, submission, now });
  }
  const status = atOnce ? 'target_accepted' : 'delivering';
  const result = { request: submission.request, acceptedAt: now, status } as const;
  const key = { sender: envelope.from, messageId: envelope.message_id };
  const resultUntil = resultDeadline(envelope.created_at, now, context.limits);
  await insertResult(tx, key, { ...result, keepUntil: resultUntil });
  return { result, notices };
}

async function enqueue(
  { limits }: RelayContext,
  tx: Writer,
  accepted: { readonly message: Message; readonly submission: Submission; readonly now: number },
): Promise<void> {
  const { message, submission, now } = accepted;
  const { envelope } = submission;
  if (await isQueueFull(tx, envelope.from, limits.queuedDeliveries)) {
    throw new ProtocolError('rate_limited', 'too many messages wait for delivery');
  }
  const deadline = deliveryDeadline({
    createdAt: envelope.created_at,
    acceptedAt: now,
    deliveryAgeLimit: limits.deliveryAgeLimit,
    messageRetention: limits.messageRetention,
  });
  await insertDelivery(
    tx,
    {
      sender: envelope.from,
      messageId: envelope.message_id,
      recipient: envelope.to,
      envelopeId: message.envelope.id,
      certificateId: message.certificate.id,
      recipientBoxes: `[${[...submission.recipientBoxes.values()].join(',')}]`,
      credential: submission.credential,
      deadline,
    },
    now,
  );
}
