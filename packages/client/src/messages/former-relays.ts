/**
 * Reads what former home relays still have for this account (03 §12.2). Nothing is copied between
 * relays: each is read until it knows that the account left, has nothing more, and has told what
 * became of the messages that it accepted.
 */
import { formerRelays } from '../accounts/former-relay-rows.ts';
import { resolveRouteAt } from '../accounts/home-relay.ts';
import { usableRoute } from '../accounts/routes.ts';
import { backoff } from '../connect/backoff.ts';
import type { AccountCore } from '../core.ts';
import { isClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import type { HostVisit } from '../sync/host-visit.ts';
import { awaitsRelay, flushOutbox, giveUpRelay } from './flush-outbox.ts';
import { readTimeline } from './read-timeline.ts';

/** Waits between reads of a relay that does not answer. */
const retry = { attempts: Number.POSITIVE_INFINITY, base: 60_000, cap: 3_600_000 };

/**
 * Milliseconds after which a former relay is given up: relays keep messages for 30 days unless their
 * operators decide otherwise.
 */
const givenUpAfter = 90 * 86_400_000;

/** Lists the former relays that are to be read now, or every one that is not done. */
export async function formerRelaysToRead(
  { store, clock }: AccountCore,
  { isDue }: { readonly isDue: boolean },
): Promise<string[]> {
  const rows = await store.read((tx) => formerRelays.list(tx));
  const now = clock.milliseconds();
  return rows.filter(({ value }) => !isDue || value.retryAt <= now).map(({ key }) => key);
}

/**
 * Reads a former relay's timeline and delivery statuses if that is due. A failure only delays the
 * next attempt.
 *
 * @throws the reason of an abort, and errors of the program
 */
export async function* readFormerRelay(
  core: AccountCore,
  relayId: string,
  visit: HostVisit,
): AsyncGenerator<readonly AccountEvent[]> {
  if (!(await formerRelaysToRead(core, { isDue: true })).includes(relayId)) return;
  let outcome: 'done' | 'more' | 'failed' = 'more';
  try {
    // Its groups were asked for before; a relay without an answer is asked once.
    visit.throwIfUnavailable();
    // Asked before reading: a relay that knows of the move adds nothing after that.
    let isRead = await knowsOfMove(core, relayId, visit.signal);
    for await (const events of readTimeline(core, relayId, visit)) {
      if (events.some(({ kind }) => kind === 'timeline-incomplete')) isRead = false;
      yield events;
    }
    await flushOutbox(core, relayId, visit.signal);
    if (isRead && !(await awaitsRelay(core, relayId))) outcome = 'done';
  } catch (error) {
    visit.callerSignal.throwIfAborted();
    if (!isClientError(error)) throw error;
    outcome = 'failed';
  }
  await storeOutcome(core, relayId, outcome);
}

async function knowsOfMove(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { account, store } = core;
  try {
    const route = await resolveRouteAt(core, relayId, { account, signal });
    const current = await store.read((tx) => usableRoute(core, tx, account));
    return route.relay_id !== relayId && route.revision === current?.revision;
  } catch (error) {
    // An older route: the relay does not know of the move yet.
    if (!isClientError(error, 'relay_misbehaviour')) throw error;
    return false;
  }
}

async function storeOutcome(
  core: AccountCore,
  relayId: string,
  outcome: 'done' | 'more' | 'failed',
): Promise<void> {
  const { clock, random, store } = core;
  const now = clock.milliseconds();
  const isGivenUp = await store.write(async (tx) => {
    const row = await formerRelays.get(tx, relayId);
    if (row === undefined) return false;
    const isOver = now - row.since > givenUpAfter;
    if (outcome === 'done' || isOver) {
      await formerRelays.delete(tx, relayId);
      return isOver;
    }
    const failures = outcome === 'failed' ? row.failures + 1 : 0;
    const retryAt = failures === 0 ? now : now + backoff(failures, retry, { random });
    await formerRelays.put(tx, relayId, { ...row, failures, retryAt });
    return false;
  });
  if (isGivenUp) await giveUpRelay(core, relayId);
}
