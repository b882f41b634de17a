/** One thing that `posthouse check` and `posthouse doctor` look at, and what they find. */
import type { CheckedRelay } from './checked-relay.ts';

export type Outcome = 'ok' | 'warning' | 'failed' | 'skipped';

/** What a check found. */
export interface Finding {
  readonly outcome: Outcome;
  /** What was seen, in one sentence without its full stop; may have text of other parties. */
  readonly seen: string;
  /** What to do, with the setting or command; for warnings and failures. */
  readonly cure?: string;
}

export const ok = (seen: string): Finding => ({ outcome: 'ok', seen });
export const skipped = (seen: string): Finding => ({ outcome: 'skipped', seen });
export const warning = (seen: string, cure: string): Finding => ({
  ...{ outcome: 'warning', seen, cure },
});
export const failed = (seen: string, cure: string): Finding => ({
  ...{ outcome: 'failed', seen, cure },
});

/** What checks find that need a running relay, without one. */
export const notRunning = skipped('the relay does not run');

/**
 * What a check asks: this machine alone; registry, public address and clocks of others too; or other
 * relays, which dial this one (`posthouse doctor`).
 */
export type Scope = 'local' | 'network' | 'relays';

/** An entry of the list of checks. */
export interface Check {
  /** Unique; operators and their scripts read it. */
  readonly name: string;
  readonly scope: Scope;
  /** Checks without which this one tells nothing: it is skipped if one of them failed. */
  readonly needs?: readonly string[];
  /** What to do if `find` throws, which is a failure with the error's message as what was seen. */
  readonly cure: string;
  /** @param signal aborts when the check takes too long */
  find(relay: CheckedRelay, signal: AbortSignal): Promise<Finding>;
}

/** A finding with the name of its check. */
export interface CheckResult extends Finding {
  readonly check: string;
}
