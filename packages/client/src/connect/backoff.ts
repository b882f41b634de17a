import type { Random } from '@posthouse/protocol/crypto';
import { randomFraction } from '../environment.ts';
import {
  isClientError,
  isRefusal,
  type PlainError,
  RelayMisbehaviour,
  RelayRefused,
  RelayUnreachable,
} from '../errors.ts';

/** How often and after which waits a request is retried. */
export interface RetryPolicy {
  /** Number of attempts, including the first one. */
  readonly attempts: number;
  /** Upper limit of the first wait in milliseconds; it doubles with each attempt. */
  readonly base: number;
  /** Upper limit of every wait in milliseconds. A relay's hint may exceed it. */
  readonly cap: number;
}

export const defaultRetry: RetryPolicy = { attempts: 4, base: 250, cap: 30_000 };

/**
 * Returns the milliseconds before the next attempt: full jitter below an exponential limit, plus
 * the relay's hint (02 §5). A hint of 0 does not shorten the backoff.
 *
 * @param attempt number of failed attempts so far, from 1
 */
export function backoff(
  attempt: number,
  { base, cap }: RetryPolicy,
  wait: { readonly random: Random; readonly hintSeconds?: number | undefined },
): number {
  const ceiling = Math.min(cap, base * 2 ** Math.min(attempt - 1, 30));
  const jitter = Math.ceil(randomFraction(wait.random) * ceiling);
  return (wait.hintSeconds ?? 0) * 1_000 + jitter;
}

/** A hint over this many milliseconds prevents an automatic retry. */
const longestWait = 60_000;

/** Returns the wait before the next attempt, or `undefined` if there is none. */
export function waitBeforeRetry(
  attempt: number,
  policy: RetryPolicy,
  wait: Parameters<typeof backoff>[2],
): number | undefined {
  if (attempt >= policy.attempts) return undefined;
  const milliseconds = backoff(attempt, policy, wait);
  return milliseconds > longestWait ? undefined : milliseconds;
}

/**
 * Whether a retry of the same request may succeed (02 §4.3). Business errors and misbehaviour are
 * final.
 */
export function isTemporary(error: unknown): boolean {
  return (
    error instanceof RelayUnreachable ||
    isClientError(error, 'part_unavailable') ||
    isRefusal(error, 'internal_error', 'bad_gateway', 'rate_limited', 'temporarily_unavailable')
  );
}

/** Whether an error says nothing of the request itself, as that of a session: it is sent again later. */
export function leavesOpen(error: unknown): boolean {
  return isTemporary(error) || isRefusal(error, 'unauthorized');
}

/**
 * Whether what failed may succeed later. A misbehaving relay may be repaired, and one that started
 * again knows no challenge that it gave before.
 */
export function mayRecover(error: unknown): error is PlainError {
  return leavesOpen(error) || isClientError(error, 'relay_misbehaviour');
}

/**
 * Whether an error says nothing of the one message of the request: it is of the session, of the state
 * of an account, or of a relay that does not offer the method now. Other messages would meet it too.
 */
export function leavesMessageOpen(error: unknown): boolean {
  return leavesOpen(error) || isRefusal(error, 'invalid_state', 'method_not_found');
}

/** Seconds after which {@link leavesMessageOpen} ends a sealed message: it cannot be cancelled. */
const longestRefusal = 604_800;

/**
 * Whether a message that was sealed some seconds ago is sent again after an error.
 * @param age by the clock that its time is of; 0 if it is not sealed: it waits until it is cancelled
 */
export function leavesSealedOpen(error: unknown, age: number): boolean {
  return age < longestRefusal ? leavesMessageOpen(error) : leavesOpen(error);
}

/**
 * Whether a message is given up for an error that says nothing of it: it may have been accepted
 * before, with its answer lost.
 */
export function endsUnanswered(error: unknown, age: number): boolean {
  return leavesMessageOpen(error) && !leavesSealedOpen(error, age);
}

/** Whether a request that failed may have taken effect (02 §7). */
export function mayHaveTakenEffect(error: unknown): boolean {
  if (error instanceof RelayUnreachable) return error.outcomeUnknown;
  return isRefusal(error, 'internal_error') || error instanceof RelayMisbehaviour;
}

/** Returns the relay's hint in an error, in seconds. */
export function retryHintOf(error: unknown): number | undefined {
  return error instanceof RelayRefused ? error.retryAfter : undefined;
}
