import {
  type Authorization,
  checkDeliveryStatus,
  deliveryEndCode,
  deliveryErrorAction,
  type MessageKeyBox,
  ProtocolError,
} from '@posthouse/protocol';
import {
  canonicalJson,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '@posthouse/protocol/json';
import { homeOf, locate, verifyAuthorization } from '../accounts/index.ts';
import type { Clock, Job, RelayAnswer, RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { deliveryFailed } from '../observability/events.ts';
import { appendRecord, type StoredMessage, storeMessage } from './append.ts';
import {
  claimDue,
  type Delivery,
  deleteDelivery,
  failDelivery,
  nextAttempt,
  postpone,
  setTarget,
} from './queue-store.ts';
import { nextAttemptAt, recordDeadline } from './rules.ts';
import { endResult, readCertificate, readEnvelope } from './store.ts';

export const deliveryJobName = 'messages.delivery';

/**
 * Seconds for which a claimed delivery belongs to one process; after a crash it is due again then.
 */
const leaseSeconds = 120;

/** Milliseconds between reads of newly due deliveries while slow ones are in flight. */
const pollInterval = 1_000;

/**
 * Delivers messages accepted for accounts that were not at home here (04 section 16). All its state
 * is in storage, so a run that was stopped is continued by the next.
 */
export const deliveryJob: Job = {
  name: deliveryJobName,
  async run(context, signal) {
    const { clock, limits, storage } = context;
    const running = new Set<Promise<void>>();
    for (;;) {
      if (!signal.aborted) {
        const free = limits.deliveryConcurrency - running.size;
        for (const delivery of await claim(context, free)) {
          const work = attemptSafely(context, delivery).finally(() => running.delete(work));
          running.add(work);
        }
      }
      if (running.size === 0) break;
      await firstOf(running, clock);
    }
    return await storage.read(nextAttempt);
  },
};

async function claim({ clock, storage }: RelayContext, batchSize: number): Promise<Delivery[]> {
  const now = clock.now();
  const next = await storage.read(nextAttempt);
  if (batchSize <= 0 || next === undefined || next > now) return [];
  const leaseUntil = now + leaseSeconds;
  return await storage.write(deliveryJobName, (tx) => claimDue(tx, { now, leaseUntil, batchSize }));
}

async function firstOf(running: Iterable<Promise<void>>, clock: Clock): Promise<void> {
  const pause = Promise.withResolvers<void>();
  using _timer = clock.after(pollInterval, pause.resolve);
  await Promise.race([...running, pause.promise]);
}

/** Attempts a delivery; after a fault of this relay it is due again when its lease ends. */
async function attemptSafely(context: RelayContext, delivery: Delivery): Promise<void> {
  try {
    await attempt(context, delivery);
  } catch (error) {
    deliveryFailed(context, { messageId: delivery.messageId, error });
  }
}

/** Outcome of an attempt. */
type AttemptResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  | {
      readonly kind: 'later';
      readonly retryAfter: number;
      /** The relay to ask first next time. */
      readonly target: string | undefined;
    };

async function attempt(context: RelayContext, delivery: Delivery): Promise<void> {
  const now = context.clock.now();
  if (now >= delivery.deadline) {
    const message = 'delivery was not confirmed by its deadline';
    await recordResult(context, delivery, { kind: 'failed', code: 'message_expired', message });
    return;
  }
  // A relay that may have received it is asked first, even if the account has moved (16.3).
  if (delivery.target !== undefined) {
    await recordResult(context, delivery, await deliverTo(context, delivery, delivery.target));
    return;
  }
  const refresh = delivery.attempts > 0;
  const home = await locate(context, delivery.recipient, { now, refresh });
  switch (home.kind) {
    case 'local':
      return await deliverHere(context, delivery, now);
    case 'elsewhere':
      return await recordResult(
        context,
        delivery,
        await deliverTo(context, delivery, home.relayId),
      );
    default:
      return await recordResult(context, delivery, retryLater());
  }
}

const retryLater = (target?: string, retryAfter = 0): AttemptResult => ({
  kind: 'later',
  retryAfter,
  target,
});

/** Ends or postpones a delivery, in one transaction with its result. */
async function recordResult(
  context: RelayContext,
  delivery: Delivery,
  ending: AttemptResult | undefined,
): Promise<void> {
  if (ending === undefined) return;
  const { clock, limits, random, storage } = context;
  const now = clock.now();
  const chance = (random(1)[0] as number) / 256;
  await storage.write(`account:${delivery.sender}`, async (tx) => {
    if (ending.kind === 'later') {
      const { attempts, deadline } = delivery;
      const { retryAfter, target } = ending;
      const at = nextAttemptAt({ now, attempts, deadline, retryAfter, chance, limits });
      await postpone(tx, delivery, { at, target });
      return;
    }
    const isFailed = ending.kind === 'failed';
    // An acceptance is recorded even if another process has claimed the delivery.
    const isOver = await (isFailed ? failDelivery : deleteDelivery)(tx, delivery);
    if (isOver) await endResult(tx, delivery, isFailed ? ending : undefined);
  });
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
    await storeMessage(tx, message, keepUntil);
    const times = { acceptedAt: now, keepUntil };
    const notice = await appendRecord(tx, message, { account: recipient, boxes, access, ...times });
    await endResult(tx, delivery);
    return notice;
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

/**
 * Sends one `message.deliver` after storing its target; none if another process has the delivery.
 */
async function deliverTo(
  context: RelayContext,
  delivery: Delivery,
  relayId: string,
): Promise<AttemptResult | undefined> {
  const { storage } = context;
  const params = await deliverParams(context, delivery);
  const isMine = await storage.write(`account:${delivery.sender}`, (tx) =>
    setTarget(tx, delivery, relayId),
  );
  if (!isMine) return undefined;
  const answer = await context.relayClient.call(relayId, 'message.deliver', params);
  return afterAnswer(answer, { relayId, asked: delivery.target });
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

/** Determines the outcome from an answer (16.2, 16.3). */
function afterAnswer(
  answer: RelayAnswer,
  { relayId, asked }: { readonly relayId: string; readonly asked: string | undefined },
): AttemptResult {
  switch (answer.kind) {
    case 'result':
      return isAccepted(answer.value) ? { kind: 'accepted' } : retryLater(relayId);
    case 'unreachable':
      // No request was sent this time: only an earlier one can bind the delivery to the relay.
      return retryLater(asked);
    // An answer that fails validation is a bad gateway (07 §C4); the message may have been accepted.
    case 'invalid':
    case 'unknown':
      return retryLater(relayId);
    case 'refused':
      return afterRefusal(answer, relayId);
  }
}

/** Returns whether the result of `message.deliver` confirms acceptance (07 §C8). */
function isAccepted(value: JsonValue): boolean {
  try {
    checkDeliveryStatus(value);
    return value.status === 'target_accepted';
  } catch {
    return false;
  }
}

/**
 * Determines from the code of a refusal whether to retry, to ask the directory again, or to end.
 */
function afterRefusal(
  refusal: { readonly code: string; readonly message: string; readonly retryAfter?: number },
  relayId?: string,
): AttemptResult {
  switch (deliveryErrorAction(refusal.code)) {
    case 'retry':
      return retryLater(relayId, refusal.retryAfter);
    case 'reroute':
      return retryLater();
    case 'end': {
      // Another relay wrote the text: no engine stores U+0000.
      const message = refusal.message.toWellFormed().replaceAll('\u0000', '\ufffd');
      return { kind: 'failed', code: deliveryEndCode(refusal.code), message };
    }
  }
}
