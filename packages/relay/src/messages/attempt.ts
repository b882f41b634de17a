/** One attempt of a queued delivery (04 section 16). */
import { type Authorization, type MessageKeyBox, ProtocolError } from '@posthouse/protocol';
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import { homeOf, locate, verifyAuthorization } from '../accounts/index.ts';
import { requireUnblocked } from '../blocks/index.ts';
import type { Home, RelayContext } from '../context.ts';
import { JsonText } from '../dispatch/json-text.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { Writer } from '../storage/types.ts';
import { appendRecord, storeMessage } from './append.ts';
import { type AttemptResult, afterAnswer, afterRefusal, locateLater } from './attempt-result.ts';
import { moveToLane } from './lane-store.ts';
import { contentDigest } from './message-parts.ts';
import {
  type ClaimedDelivery,
  type Delivery,
  deleteDelivery,
  messageOf,
  setDestination,
  setTarget,
} from './queue-store.ts';
import { readPriorResults } from './received-store.ts';
import { recordDeadline } from './rules.ts';
import { endResult } from './store.ts';

/** Attempts a claimed delivery. Returns the outcome, unless it is stored already. */
export async function attempt(
  context: RelayContext,
  delivery: ClaimedDelivery,
): Promise<AttemptResult | undefined> {
  const now = context.clock.now();
  if (now >= delivery.deadline) {
    const message = 'delivery was not confirmed by its deadline';
    return { kind: 'failed', code: 'message_expired', message };
  }
  // A relay that may have received it is asked first, even if the account has moved (16.3).
  if (delivery.sendTo !== undefined) return await deliverAt(context, delivery, delivery.sendTo);
  const refresh = delivery.attempts > 0;
  const home = await locateRecipient(context, delivery, { now, refresh });
  switch (home.kind) {
    case 'local':
      return await deliverHere(context, delivery, now);
    case 'elsewhere':
      return await deliverElsewhere(context, delivery, { relayId: home.relayId, now });
    default:
      return locateLater;
  }
}

/** Locates the recipient; if the directory refuses for now, the home is unknown. */
async function locateRecipient(
  context: RelayContext,
  { sender, recipient }: Delivery,
  at: { readonly now: number; readonly refresh: boolean },
): Promise<Home> {
  try {
    // One sender must not use up what other relays allow this one to ask (07 §C9).
    const asker = `account ${sender}`;
    return await locate(context, recipient, { ...at, asker });
  } catch (error) {
    if (error instanceof ProtocolError) return { kind: 'unknown' };
    throw error;
  }
}

/** Delivers to the located relay if the delivery is in its lane; otherwise moves it there. */
async function deliverElsewhere(
  context: RelayContext,
  delivery: Delivery,
  { relayId, now }: { readonly relayId: string; readonly now: number },
): Promise<AttemptResult | undefined> {
  if (relayId === delivery.destination) {
    const isMine = await context.storage.write(
      `account:${delivery.sender}`,
      (tx) => setTarget(tx, delivery, relayId),
      { keepsFacts: true },
    );
    return isMine ? await deliverAt(context, delivery, relayId) : undefined;
  }
  await moveDelivery(context, delivery, { relayId, now });
  return undefined;
}

/** Moves a delivery, and others to its recipient, to the lane of another relay: they are due at once. */
async function moveDelivery(
  { storage, limits }: RelayContext,
  delivery: Delivery,
  { relayId, now }: { readonly relayId: string; readonly now: number },
): Promise<void> {
  const { recipient, destination } = delivery;
  const batchSize = limits.deliveryBatch;
  const move = async (tx: Writer) => {
    await setDestination(tx, delivery, { destination: relayId, now });
    if (relayId === destination) return;
    await moveToLane(tx, { destination, now, batchSize }, { recipient, relayId });
  };
  await storage.write(`account:${delivery.sender}`, move, { keepsFacts: true });
}

/**
 * Delivers to a relay that is stored as the target. If that one does not serve the recipient and a
 * route names another relay, the delivery is due there at once (04 section 16.2).
 */
async function deliverAt(
  context: RelayContext,
  delivery: Delivery,
  relayId: string,
): Promise<AttemptResult | undefined> {
  const result = await deliverTo(context, delivery, relayId);
  if (result !== locateLater) return result;
  // After the first delivery that finds the new route, the others find it stored.
  for (const refresh of [false, true]) {
    const now = context.clock.now();
    const home = await locateRecipient(context, delivery, { now, refresh });
    if (home.kind !== 'elsewhere' || home.relayId === relayId) continue;
    await moveDelivery(context, delivery, { relayId: home.relayId, now });
    return undefined;
  }
  return result;
}

/** Delivers to a recipient that came home here after the message was accepted. */
async function deliverHere(
  context: RelayContext,
  delivery: Delivery,
  now: number,
): Promise<AttemptResult | undefined> {
  try {
    const notice = await receiveHere(context, delivery, now);
    if (notice !== undefined) context.bus.publish([notice]);
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return afterRefusal(error);
    throw error;
  }
}

async function receiveHere(
  context: RelayContext,
  delivery: Delivery,
  now: number,
): Promise<Notice | undefined> {
  const { identity, limits, storage } = context;
  const { sender, recipient, credential } = delivery;
  const authorization =
    credential === undefined ? undefined : (parseJson(credential) as unknown as Authorization);
  requireUnblocked(context, recipient);
  const use = { target: recipient, requester: sender, now };
  const access = await verifyAuthorization(context, authorization, use);
  const message = messageOf(delivery);
  const boxes = boxesById(delivery.recipientBoxes);
  const keepUntil = recordDeadline(now, limits);
  const receive = async (tx: Writer) => {
    const home = await homeOf(tx, recipient, identity.relayId, now);
    if (home.kind !== 'local') throw new ProtocolError('target_not_local', 'moved meanwhile');
    if (!(await deleteDelivery(tx, delivery))) return undefined;
    const received = contentDigest(delivery.envelopeId, delivery.recipientBoxes);
    await endResult(tx, delivery, { received });
    const prior = await readPriorResults(tx, delivery);
    if (prior.received?.content === received) return undefined;
    await storeMessage(tx, message, keepUntil);
    const times = { acceptedAt: now, keepUntil };
    return await appendRecord(tx, message, { account: recipient, boxes, access, ...times });
  };
  const aggregates = [`account:${sender}`, `account:${recipient}`];
  return await storage.write(aggregates, receive, { keepsFacts: true });
}

/** Returns the canonical texts of stored boxes, by device ID. */
function boxesById(text: string): Map<string, string> {
  const boxes = parseJson(text) as unknown as MessageKeyBox[];
  return new Map(boxes.map((box) => [box.device_id, canonicalJson(box)]));
}

/** Sends one `message.deliver`; the relay is stored as the delivery's target already. */
async function deliverTo(
  { relayClient }: RelayContext,
  delivery: Delivery,
  relayId: string,
): Promise<AttemptResult> {
  const { credential, recipientBoxes, target: bound } = delivery;
  const { envelope, certificate } = messageOf(delivery);
  // Exactly as submitted, without sender boxes (13.1).
  const answer = await relayClient.call(relayId, 'message.deliver', {
    envelope: new JsonText(envelope.text),
    recipient_boxes: new JsonText(recipientBoxes),
    signer_certificate: new JsonText(certificate.text),
    authorization: credential === undefined ? undefined : new JsonText(credential),
  });
  return afterAnswer(answer, { relayId, bound });
}
