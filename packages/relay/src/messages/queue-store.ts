/** All SQL of the delivery queue. */
import type { Reader, Row, Writer } from '../storage/types.ts';
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
  /** Canonical JSON of the array. */
  readonly recipientBoxes: string;
  /** Canonical JSON; absent for public bootstrap. */
  readonly credential: string | undefined;
  /** Unix second at which delivery ends, fixed at acceptance. */
  readonly deadline: number;
  readonly attempts: number;
  /** The relay that must be asked first: an earlier request there may have succeeded (16.3). */
  readonly target: string | undefined;
}

interface DeliveryRow extends Row {
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
  target: string | null;
}

export async function insertDelivery(
  tx: Writer,
  delivery: Omit<Delivery, 'attempts' | 'target' | 'leaseUntil'>,
  now: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO deliveries (sender, message_id, recipient, envelope_id, certificate_id,
        recipient_boxes, credential, deadline, next_attempt_at, attempts)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
    delivery.sender,
    delivery.messageId,
    delivery.recipient,
    delivery.envelopeId,
    delivery.certificateId,
    delivery.recipientBoxes,
    delivery.credential ?? null,
    delivery.deadline,
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

export const dueSql = `SELECT sender, message_id, recipient, envelope_id, certificate_id,
    recipient_boxes, credential, deadline, next_attempt_at, attempts, target
  FROM deliveries WHERE next_attempt_at <= ? ORDER BY next_attempt_at LIMIT ?`;

/**
 * Claims up to `batchSize` due deliveries: until `leaseUntil` no other process claims them. After a
 * crash they are due again then.
 */
export async function claimDue(
  tx: Writer,
  { now, leaseUntil, batchSize }: { now: number; leaseUntil: number; batchSize: number },
): Promise<Delivery[]> {
  const rows = await tx.all<DeliveryRow>(dueSql, now, batchSize);
  const claimed: Delivery[] = [];
  for (const row of rows) {
    const changed = await tx.run(
      `UPDATE deliveries SET next_attempt_at = ?
        WHERE sender = ? AND message_id = ? AND next_attempt_at = ?`,
      leaseUntil,
      row.sender,
      row.message_id,
      row.next_attempt_at,
    );
    if (changed === 1) claimed.push(toDelivery(row, leaseUntil));
  }
  return claimed;
}

function toDelivery(row: DeliveryRow, leaseUntil: number): Delivery {
  return {
    leaseUntil,
    sender: row.sender,
    messageId: row.message_id,
    recipient: row.recipient,
    envelopeId: row.envelope_id,
    certificateId: row.certificate_id,
    recipientBoxes: row.recipient_boxes,
    credential: row.credential ?? undefined,
    deadline: row.deadline,
    attempts: row.attempts,
    target: row.target ?? undefined,
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

/** Postpones a delivery unless another process has claimed it. */
export async function postpone(
  tx: Writer,
  claimed: DeliveryLease,
  next: { readonly at: number; readonly target: string | undefined },
): Promise<void> {
  await tx.run(
    `UPDATE deliveries SET next_attempt_at = ?, attempts = attempts + 1, target = ?
      WHERE sender = ? AND message_id = ? AND next_attempt_at = ?`,
    next.at,
    next.target ?? null,
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

/** Returns when the next delivery is due, or `undefined` if the queue is empty. */
export async function nextAttempt(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ next_attempt_at: number }>(
    'SELECT next_attempt_at FROM deliveries ORDER BY next_attempt_at LIMIT 1',
  );
  return row?.next_attempt_at;
}
