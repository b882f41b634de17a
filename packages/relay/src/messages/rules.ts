/** Decisions about messages. No storage and no clock: stored values and the time are parameters. */
import { ProtocolError } from '@posthouse/protocol';
import type { RelayLimits } from '../limits.ts';

/** Name of the job that delivers queued messages; woken when one is due. */
export const deliveryJobName = 'messages.delivery';

/**
 * Compares a request with the stored result of its logical key (04 section 15.1).
 *
 * @returns the stored result if the request is an identical repeat
 * @throws ProtocolError `state_conflict`
 */
export function checkRepeat<T extends { readonly request: string }>(
  stored: T | undefined,
  request: string,
): T | undefined {
  if (stored === undefined || stored.request === request) return stored;
  throw new ProtocolError(
    'state_conflict',
    'the message ID belongs to another request: use a new one',
  );
}

/**
 * Refuses an envelope that is too far ahead of the clock or too old to deliver; exactly at a
 * limit passes (04 sections 3, 12.1).
 *
 * @throws ProtocolError `clock_skew`, `message_expired`
 */
export function checkCreatedAt(
  createdAt: number,
  now: number,
  limits: Pick<RelayLimits, 'futureTolerance' | 'deliveryAgeLimit'>,
): void {
  if (createdAt - now > limits.futureTolerance) {
    throw new ProtocolError('clock_skew', "created_at is too far ahead of this relay's clock");
  }
  if (now - createdAt > limits.deliveryAgeLimit) {
    throw new ProtocolError('message_expired', 'the message is too old to be delivered');
  }
}

/** Returns the deadline of a record, fixed at acceptance (04 section 17.4). */
export function recordDeadline(now: number, limits: Pick<RelayLimits, 'messageRetention'>): number {
  return now + limits.messageRetention;
}

/**
 * Returns the deadline of a result: at the end of its retention, and not before a repeat is too old
 * to be accepted as a new message (04 section 15.2).
 */
export function resultDeadline(
  createdAt: number,
  now: number,
  limits: Pick<RelayLimits, 'messageRetention' | 'deliveryAgeLimit'>,
): number {
  return Math.max(now + limits.messageRetention, createdAt + limits.deliveryAgeLimit + 1);
}

const day = 86_400;

/**
 * Returns the deadline of a certificate that a record until `keepUntil` needs. Whole days, so that
 * a busy sender's certificate is written once a day and not with each message.
 */
export function certificateDeadline(keepUntil: number): number {
  return (Math.ceil(keepUntil / day) + 1) * day;
}

/** Selects the boxes of valid devices (04 section 17.3). */
export function visibleBoxes(
  boxes: ReadonlyMap<string, string>,
  current: { has(deviceId: string): boolean },
): Map<string, string> {
  return new Map([...boxes].filter(([deviceId]) => current.has(deviceId)));
}

/**
 * Returns when a delivery is retried: exponential backoff with its later half random, so that
 * deliveries that failed together are not retried together. Never after the deadline.
 *
 * @param chance 0 to below 1
 */
export function nextAttemptAt(options: {
  readonly now: number;
  /** Attempts made before this one. */
  readonly attempts: number;
  readonly deadline: number;
  /** Seconds the other side asked to wait. */
  readonly retryAfter: number;
  readonly chance: number;
  readonly limits: Pick<RelayLimits, 'deliveryRetryFirst' | 'deliveryRetryMost'>;
}): number {
  const { now, attempts, deadline, retryAfter, chance, limits } = options;
  const { deliveryRetryFirst: first, deliveryRetryMost: longest } = limits;
  const backoff = Math.min(longest, first * 2 ** Math.min(attempts, 30));
  const wait = Math.max(1, retryAfter, Math.ceil((backoff * (1 + chance)) / 2));
  return Math.min(deadline, now + wait);
}
