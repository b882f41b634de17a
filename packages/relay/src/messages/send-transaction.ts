import { deliveryDeadline, ProtocolError } from '@posthouse/protocol';
import {
  type Access,
  homeOf,
  requireCallingDevice,
  requireHome,
  type Signer,
} from '../accounts/index.ts';
import type { Home, RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { Reader, Writer } from '../storage/types.ts';
import { appendRecord, type StoredMessage, storeMessage } from './append.ts';
import { unlocated } from './lane-store.ts';
import { boxesText } from './message-parts.ts';
import { insertDelivery, isQueueFull } from './queue-store.ts';
import { readPriorResults } from './received-store.ts';
import { checkRepeat, recordDeadline, resultDeadline } from './rules.ts';
import type { CheckedSendRequest } from './send-request.ts';
import { insertResult, type StoredResult } from './store.ts';

/** What storage holds about a request before it is accepted. */
export interface Prior {
  /** The calling device. */
  readonly device: Signer;
  /** The stored result if the request is a repeat. */
  readonly repeat: StoredResult | undefined;
  readonly recipientHome: Home;
  /** Whether the recipient received the same message here by `message.deliver`. */
  readonly isReceived: boolean;
}

/**
 * Reads what storage holds about a request (04 section 12.1, steps 4 and 5).
 *
 * @throws ProtocolError `route_stale`, `target_not_local`, `invalid_state`, `unauthorized`,
 *   `state_conflict`
 */
export async function findPrior(
  context: RelayContext,
  tx: Reader,
  { session, now, envelope, digest, content }: CheckedSendRequest,
): Promise<Prior> {
  const { from, to, message_id: messageId } = envelope;
  const { relayId } = context.identity;
  requireHome(await homeOf(tx, from, relayId, now));
  const device = await requireCallingDevice(tx, session, now);
  const { sent, received } = await readPriorResults(tx, { sender: from, messageId });
  return {
    device,
    repeat: checkRepeat(sent, digest),
    isReceived: received?.content === content,
    recipientHome: await homeOf(tx, to, relayId, now),
  };
}

/** How an accepted message reaches its recipient, chosen before the transaction that accepts it. */
export type RecipientPath =
  /** To the recipient's timeline in the same transaction. */
  | { readonly kind: 'timeline'; readonly access: Access }
  /** To the delivery queue: the recipient is not at home here. */
  | { readonly kind: 'queue' };

/**
 * Accepts a message in one transaction: every check that depends on state, and every effect. A
 * repeat returns its stored result.
 *
 * @throws ProtocolError as {@link findPrior}; `forbidden`, `device_unknown`, `rate_limited`
 */
export async function acceptMessage(
  context: RelayContext,
  tx: Writer,
  { request, path }: { readonly request: CheckedSendRequest; readonly path: RecipientPath },
): Promise<{ readonly result: StoredResult; readonly notices: readonly Notice[] }> {
  const { envelope, senderBoxes, recipientBoxes, now } = request;
  const prior = await findPrior(context, tx, request);
  const { device, repeat, recipientHome } = prior;
  if (repeat !== undefined) return { result: repeat, notices: [] };
  const { deviceId, certificateId, certificate } = device;
  const message: StoredMessage = {
    envelope: request.storedEnvelope,
    certificate: { id: certificateId, deviceId, text: certificate },
  };
  const times = { acceptedAt: now, keepUntil: recordDeadline(now, context.limits) };
  await storeMessage(tx, message, times.keepUntil);
  const notices: Notice[] = [];
  if (senderBoxes !== undefined) {
    const sender = { account: envelope.from, boxes: senderBoxes, access: { kind: 'own' } } as const;
    notices.push(await appendRecord(tx, message, { ...sender, ...times }));
  }
  // If the recipient moved after the path was chosen, the queue serves it.
  const isLocal = path.kind === 'timeline' && recipientHome.kind === 'local';
  const isReceived = prior.isReceived || isLocal;
  if (!isReceived) await enqueue(context, tx, { request, message, recipientHome });
  else if (!prior.isReceived && path.kind === 'timeline') {
    const { access } = path;
    const recipient = { account: envelope.to, boxes: recipientBoxes, access, ...times };
    notices.push(await appendRecord(tx, message, recipient));
  }
  const status = isReceived ? 'target_accepted' : 'delivering';
  const result = { request: request.digest, acceptedAt: now, status } as const;
  const key = { sender: envelope.from, messageId: envelope.message_id };
  const keepUntil = resultDeadline(envelope.created_at, now, context.limits);
  const received = isReceived ? request.content : undefined;
  await tx.run(...insertResult(key, { ...result, keepUntil, received }));
  return { result, notices };
}

/** @throws ProtocolError `rate_limited` */
async function enqueue(
  { limits }: RelayContext,
  tx: Writer,
  {
    request,
    message,
    recipientHome,
  }: {
    readonly request: CheckedSendRequest;
    readonly message: StoredMessage;
    readonly recipientHome: Home;
  },
): Promise<void> {
  const { envelope, recipientBoxes, credential, now } = request;
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
      recipientBoxes: boxesText(recipientBoxes),
      credential,
      deadline,
      destination: recipientHome.kind === 'elsewhere' ? recipientHome.relayId : unlocated,
    },
    now,
  );
}
