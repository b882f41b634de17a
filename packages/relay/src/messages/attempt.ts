/** One attempt of a queued delivery (04 section 16). */
import { type Authorization, type MessageKeyBox, ProtocolError } from '@posthouse/protocol';
import { canonicalJson, type JsonObject, parseJson } from '@posthouse/protocol/json';
import { homeOf, locate, verifyAuthorization } from '../accounts/index.ts';
import type { Home, RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { limitedText } from '../dispatch/refusal.ts';
import type { RelayLimits } from '../limits.ts';
import { appendRecord, type StoredMessage, storeMessage } from './append.ts';
import { type AttemptResult, afterAnswer, afterRefusal, locateLater } from './attempt-result.ts';
import { moveToLane } from './lane-store.ts';
import { contentDigest } from './message-parts.ts';
import {
  type ClaimedDelivery,
  type Delivery,
  deleteDelivery,
  failDelivery,
  postpone,
  setDestination,
  setTarget,
} from './queue-store.ts';
import { readPriorResults } from './received-store.ts';
import { nextAttemptAt, recordDeadline } from './rules.ts';
import { endResult, readCertificate, readEnvelope } from './store.ts';

/** Attempts a claimed delivery and stores what follows from the outcome. */
export async function attempt(context: RelayContext, delivery: ClaimedDelivery): Promise<void> {
  const now = context.clock.now();
  if (now >= delivery.deadline) {
    const message = 'delivery was not confirmed by its deadline';
    await recordResult(context, delivery, { kind: 'failed', code: 'message_expired', message });
    return;
  }
  // A relay that may have received it is asked first, even if the account has moved (16.3).
  if (delivery.sendTo !== undefined) return await deliverTo(context, delivery, delivery.sendTo);
  const home = await locateRecipient(context, delivery, now);
  switch (home.kind) {
    case 'local':
      return await deliverHere(context, delivery, now);
    case 'elsewhere':
      return await deliverElsewhere(context, delivery, { relayId: home.relayId, now });
    default:
      return await recordResult(context, delivery, locateLater);
  }
}

/** Locates the recipient; if the directory refuses for now, the home is unknown. */
async function locateRecipient(
  context: RelayContext,
  { sender, recipient, attempts }: Delivery,
  now: number,
): Promise<Home> {
  try {
    // One sender must not use up what other relays allow this one to ask (07 §C9).
    const asker = `account ${sender}`;
    return await locate(context, recipient, { now, refresh: attempts > 0, asker });
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
): Promise<void> {
  const { storage, limits } = context;
  const { recipient, destination } = delivery;
  if (relayId === destination) {
    const isMine = await storage.write(`account:${delivery.sender}`, (tx) =>
      setTarget(tx, delivery, relayId),
    );
    if (isMine) await deliverTo(context, delivery, relayId);
    return;
  }
  const batchSize = limits.deliveryBatch;
  await storage.write(`account:${delivery.sender}`, async (tx) => {
    await setDestination(tx, delivery, { destination: relayId, now });
    await moveToLane(tx, { destination, now, batchSize }, { recipient, relayId });
  });
}

/** Ends or postpones a delivery, in one transaction with its result. */
async function recordResult(
  context: RelayContext,
  delivery: Delivery,
  ending: AttemptResult,
): Promise<void> {
  const { clock, limits, random, storage } = context;
  const now = clock.now();
  const chance = (random(1)[0] as number) / 256;
  await storage.write(`account:${delivery.sender}`, async (tx) => {
    if (ending.kind === 'later') {
      const { attempts, deadline } = delivery;
      const { retryAfter, target, destination, untilBack } = ending;
      const at = nextAttemptAt({ now, attempts, deadline, retryAfter, chance, limits });
      await postpone(tx, delivery, { at, destination, target, wakeAfter: untilBack ? 0 : at });
      return;
    }
    const isFailed = ending.kind === 'failed';
    // An acceptance is recorded even if another process has claimed the delivery.
    const isOver = await (isFailed ? failDelivery : deleteDelivery)(tx, delivery);
    if (isOver) await endResult(tx, delivery, isFailed ? { error: stored(ending, limits) } : {});
  });
}

/** Returns an error as it is stored: the text may be of another relay. */
function stored(
  { code, message }: { readonly code: string; readonly message: string },
  { relayErrorText }: RelayLimits,
) {
  return { code, message: limitedText(message, relayErrorText) };
}

/** Delivers to a recipient that came home here after the message was accepted. */
async function deliverHere(context: RelayContext, delivery: Delivery, now: number): Promise<void> {
  try {
    const notice = await receiveHere(context, delivery, now);
    if (notice !== undefined) context.bus.publish([notice]);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    await recordResult(context, delivery, afterRefusal(error));
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
  const use = { target: recipient, requester: sender, now };
  const access = await verifyAuthorization(context, authorization, use);
  const message = await readMessage(context, delivery);
  const boxes = boxesById(delivery.recipientBoxes);
  const keepUntil = recordDeadline(now, limits);
  return await storage.write([`account:${sender}`, `account:${recipient}`], async (tx) => {
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
  });
}

async function readMessage(context: RelayContext, delivery: Delivery): Promise<StoredMessage> {
  const { envelopeId, certificateId } = delivery;
  return await context.storage.read(async (tx) => {
    const text = await readEnvelope(tx, envelopeId);
    const certificate = await readCertificate(tx, certificateId);
    if (text === undefined || certificate === undefined) {
      throw new Error(`delivery of ${delivery.messageId} lacks its envelope or certificate`);
    }
    return { envelope: { id: envelopeId, text, bytes: Buffer.byteLength(text) }, certificate };
  });
}

/** Returns the canonical texts of stored boxes, by device ID. */
function boxesById(text: string): Map<string, string> {
  const boxes = parseJson(text) as unknown as MessageKeyBox[];
  return new Map(boxes.map((box) => [box.device_id, canonicalJson(box)]));
}

/** Sends one `message.deliver`; the relay is stored as the delivery's target already. */
async function deliverTo(
  context: RelayContext,
  delivery: Delivery,
  relayId: string,
): Promise<void> {
  const params = await deliverParams(context, delivery);
  const answer = await context.relayClient.call(relayId, 'message.deliver', params);
  const { target: bound } = delivery;
  await recordResult(context, delivery, afterAnswer(answer, { relayId, bound }));
}

/** Makes the parameters: exactly as submitted, without sender boxes (13.1). */
async function deliverParams(context: RelayContext, delivery: Delivery): Promise<JsonObject> {
  const { envelope, certificate } = await readMessage(context, delivery);
  const { recipientBoxes, credential } = delivery;
  return {
    envelope: parseJson(envelope.text),
    recipient_boxes: parseJson(recipientBoxes),
    signer_certificate: parseJson(certificate.text),
    ...(credential === undefined ? {} : { authorization: parseJson(credential) }),
  };
}
