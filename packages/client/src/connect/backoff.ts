import type { Random } from '@posthouse/protocol/crypto';
import { randomFraction } from '../environment.ts';
import { isRefusal, RelayMisbehaviour, RelayRefused, RelayUnreachable } from '../errors.ts';

/** How long and how often to try again. */
export interface RetryPolicy {
  /** Tries in all, the first one counted. */
  readonly attempts: number;
  /** Milliseconds: the ceiling of the first wait; it doubles with each try. */
  readonly base: number;
  /** Milliseconds: no wait of ours is longer. A relay's hint may be. */
  readonly cap: number;
}

export const defaultRetry: RetryPolicy = { attempts: 4, base: 250, cap: 30_000 };

/**
 * Milliseconds to wait before the next try: full jitter below an exponential ceiling, and at
 * least the relay's hint (02 §5). A hint of 0 does not shorten the backoff.
 *
 * @param attempt how many tries failed so far, from 1
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

/** A relay that asks for a longer wait than this, milliseconds, gets no automatic retry. */
const longestWait = 60_000;

/** The same, or `undefined` where trying again is over. */
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
 * Whether the same request may help later (02 §4.3). What the relay answered about the business
 * is final, and so is a misbehaviour.
 */
export function isTemporary(error: unknown): boolean {
  return (
    error instanceof RelayUnreachable ||
    isRefusal(error, 'internal_error', 'bad_gateway', 'rate_limited', 'temporarily_unavailable')
  );
}

/** Whether a request that failed may have been carried out all the same (02 §7). */
export function mayHaveTakenEffect(error: unknown): boolean {
  if (error instanceof RelayUnreachable) return error.outcomeUnknown;
  return isRefusal(error, 'internal_error') || error instanceof RelayMisbehaviour;
}

/** The relay's hint in an error, seconds. */
export function retryHintOf(error: unknown): number | undefined {
  return error instanceof RelayRefused ? error.retryAfter : undefined;
}
