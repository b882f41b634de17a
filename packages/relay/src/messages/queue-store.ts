/** SQL of single deliveries in the queue; lane-store.ts has that of whole lanes. */
import { forEach, largeRows } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';
import type { StoredMessage } from './append.ts';
import { unlocated } from './lane-store.ts';
import type { MessageKey } from './store.ts';

/** A delivery claimed by this process. */
export interface DeliveryLease extends MessageKey {
  /** Unix second from which another process may claim it. */
  readonly leaseUntil: number;
}

/** An accepted message on its way to an account that was not at home here (04 section 16). */
export interface Delivery extends DeliveryLease {
  readonly recipient: string;
  readonly envelopeId: string;
  readonly certificateId: string;
  readonly texts: DeliveryTexts;
  /** Canonical JSON of the array. */
  readonly recipientBoxes: string;
  /** Canonical JSON; absent for public bootstrap. */
  readonly credential: string | undefined;
  /** Unix second at which delivery ends, fixed at acceptance. */
  readonly deadline: number;
  readonly attempts: number;
  /** The relay as last located, or `unlocated`: the delivery's lane. */
  readonly destination: string;
  /** The relay that must be asked first: an earlier request there may have succeeded (16.3). */
  readonly target: string | undefined;
}

/** The stored texts of a delivery's envelope and of its sender's certificate. */
interface DeliveryTexts {
  readonly envelope: string | null;
  readonly certificate: string | null;
  readonly device_id: string | null;
}

interface DeliveryRow extends Row, DeliveryTexts {
  sender: string;
  message_id: string;
  recipient: string;
  envelope_id: string;
  certificate_id: string;
  recipient_boxes: string;
  credential: string | null;
  deadline: number;
  next_attempt_at: number;
  attempts: number;
  destination: string;
  target: string | null;
}

export async function insertDelivery(
  tx: Writer,
  delivery: Omit<Delivery, 'attempts' | 'target' | 'leaseUntil' | 'texts'>,
  now: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO deliveries (sender, message_id, recipient, envelope_id, certificate_id,
        recipient_boxes, credential, deadline, destination, next_attempt_at, attempts)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
    delivery.sender,
    delivery.messageId,
    delivery.recipient,
    delivery.envelopeId,
    delivery.certificateId,
    delivery.recipientBoxes,
    delivery.credential ?? null,
    delivery.deadline,
    delivery.destination,
    now,
  );
}

/** Tells whether at least `limit` messages of the sender are queued. */
export async function isQueueFull(tx: Reader, sender: string, limit: number): Promise<boolean> {
  const row = await tx.get<{ waiting: number }>(
    `SELECT COUNT(*) AS waiting FROM
      (SELECT 1 FROM deliveries WHERE sender = ? LIMIT ?) AS some_deliveries`,
    sender,
    limit,
  );
  return (row?.waiting ?? 0) >= limit;
}

export const dueSql = `SELECT d.sender, d.message_id, d.recipient, d.envelope_id, d.certificate_id,
    d.recipient_boxes, d.credential, d.deadline, d.next_attempt_at, d.attempts, d.destination,
    d.target, e.envelope, c.certificate, c.device_id
  FROM deliveries d
    LEFT JOIN message_envelopes e ON e.envelope_id = d.envelope_id
    LEFT JOIN message_certificates c ON c.certificate_id = d.certificate_id
  WHERE d.destination = ? AND d.next_attempt_at <= ? AND d.deadline <= ?
  ORDER BY d.next_attempt_at LIMIT ?`;

/** Which deliveries of a lane to claim. */
interface Claim {
  readonly destination: string;
  /** Unix seconds. */
  readonly now: number;
  readonly leaseUntil: number;
  readonly batchSize: number;
  /** Only deliveries with a deadline at or before it. */
  readonly deadlineBy: number;
  /** Returns whether a delivery that no relay may have received yet may go to the destination. */
  readonly isHome: (recipient: string) => Promise<boolean>;
}

/** A claimed delivery. */
export interface ClaimedDelivery extends Delivery {
  /**
   * The relay to send to: it is stored as the target already. Absent if the recipient must be
   * located first.
   */
  readonly sendTo: string | undefined;
}

/**
 * Claims due deliveries of a lane: until `leaseUntil` no other process claims them. After a crash
 * they are due again then. A first attempt's target is stored in the same statement.
 */
export async function claimDue(tx: Writer, claim: Claim): Promise<ClaimedDelivery[]> {
  const { destination, now, batchSize, deadlineBy } = claim;
  const claimed: ClaimedDelivery[] = [];
  for (let left = batchSize; left > 0; left -= largeRows) {
    const most = Math.min(left, largeRows);
    const rows = await tx.all<DeliveryRow>(dueSql, destination, now, deadlineBy, most);
    await forEach(rows, async (row) => {
      const delivery = await claimRow(tx, row, claim);
      if (delivery !== undefined) claimed.push(delivery);
    });
    if (rows.length < most) break;
  }
  return claimed;
}

/** Claims one delivery; `undefined` if another process was faster. */
async function claimRow(
  tx: Writer,
  row: DeliveryRow,
  { destination, leaseUntil, isHome }: Claim,
): Promise<ClaimedDelivery | undefined> {
  const isFirst = row.target === null && row.attempts === 0 && destination !== unlocated;
  const sendTo = isFirst && (await isHome(row.recipient)) ? destination : row.target;
  const changed = await tx.run(
    `UPDATE deliveries SET next_attempt_at = ?, wake_after = ?, target = ?
      WHERE sender = ? AND message_id = ? AND next_attempt_at = ?`,
    leaseUntil,
    leaseUntil + 1,
    sendTo,
    row.sender,
    row.message_id,
    row.next_attempt_at,
  );
  if (changed !== 1) return undefined;
  return { ...toDelivery(row, leaseUntil), sendTo: sendTo ?? undefined };
}

function toDelivery(row: DeliveryRow, leaseUntil: number): Delivery {
  return {
    leaseUntil,
    sender: row.sender,
    messageId: row.message_id,
    recipient: row.recipient,
    envelopeId: row.envelope_id,
    certificateId: row.certificate_id,
    texts: row,
    recipientBoxes: row.recipient_boxes,
    credential: row.credential ?? undefined,
    deadline: row.deadline,
    attempts: row.attempts,
    destination: row.destination,
    target: row.target ?? undefined,
  };
}

/** Returns the message of a delivery. @throws Error if a text is missing */
export function messageOf(delivery: Delivery): StoredMessage {
  const { envelope, certificate, device_id: deviceId } = delivery.texts;
  if (envelope === null || certificate === null || deviceId === null) {
    throw new Error(`delivery of ${delivery.messageId} lacks its envelope or certificate`);
  }
  return {
    envelope: { id: delivery.envelopeId, text: envelope, bytes: Buffer.byteLength(envelope) },
    certificate: { id: delivery.certificateId, deviceId, text: certificate },
  };
}

/**
 * Stores the relay that must be asked from now on, before a request is sent. Returns `false` if
 * another process may have claimed the delivery: then no request may be sent.
 */
export async function setTarget(
  tx: Writer,
  claimed: DeliveryLease,
  target: string,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE deliveries SET target = ?
      WHERE sender = ? AND message_id = ? AND next_attempt_at = ?`,
    target,
    claimed.sender,
    claimed.messageId,
    claimed.leaseUntil,
  );
  return changed === 1;
}

/** When and how a delivery is attempted next. */
export interface NextAttempt {
  /** Unix seconds. */
  readonly at: number;
  readonly destination: string;
  readonly target: string | undefined;
  /** The attempt is not brought forward before this second when the relay is back. */
  readonly wakeAfter: number;
}

/** Postpones a delivery after an attempt, unless another process has claimed it. */
export async function postpone(
  tx: Writer,
  claimed: DeliveryLease,
  { at, destination, target, wakeAfter }: NextAttempt,
): Promise<void> {
  await tx.run(
    `UPDATE deliveries SET next_attempt_at = ?, wake_after = ?, attempts = attempts + 1,
        destination = ?, target = ?
      WHERE sender = ? AND message_id = ? AND next_attempt_at = ?`,
    at,
    wakeAfter,
    destination,
    target ?? null,
    claimed.sender,
    claimed.messageId,
    claimed.leaseUntil,
  );
}

/**
 * Moves a located delivery to its lane, due at once, unless another process has claimed it. No relay
 * may have received it: one that was asked has refused it.
 */
export async function setDestination(
  tx: Writer,
  claimed: DeliveryLease,
  { destination, now }: { readonly destination: string; readonly now: number },
): Promise<void> {
  await tx.run(
    `UPDATE deliveries SET next_attempt_at = ?, wake_after = ?, destination = ?, target = NULL
      WHERE sender = ? AND message_id = ? AND next_attempt_at = ?`,
    now,
    now,
    destination,
    claimed.sender,
    claimed.messageId,
    claimed.leaseUntil,
  );
}

/** As {@link deleteDelivery}, unless another process has claimed it: its attempt may succeed. */
export async function failDelivery(tx: Writer, claimed: DeliveryLease): Promise<boolean> {
  const changed = await tx.run(
    'DELETE FROM deliveries WHERE sender = ? AND message_id = ? AND next_attempt_at = ?',
    claimed.sender,
    claimed.messageId,
    claimed.leaseUntil,
  );
  return changed === 1;
}

/** Deletes a delivery from the queue; `false` if it is over already. */
export async function deleteDelivery(tx: Writer, key: MessageKey): Promise<boolean> {
  const changed = await tx.run(
    'DELETE FROM deliveries WHERE sender = ? AND message_id = ?',
    key.sender,
    key.messageId,
  );
  return changed === 1;
}
