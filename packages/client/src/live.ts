/** Following an account: catching up, then hints, then catching up again (02 §12). */

import { isWrongHome } from './accounts/home.ts';
import { noteStateHint } from './accounts/states.ts';
import { backoff, hintOf, isTemporary } from './connect/backoff.ts';
import type { Notification } from './connect/websocket-channel.ts';
import type { AccountCore } from './core.ts';
import { ClientError, isClientError } from './errors.ts';
import type { AccountEvent } from './events.ts';
import { timelinePosition } from './messages/timeline.ts';

export interface FollowOptions {
  readonly signal: AbortSignal;
  /** Milliseconds between reads where the relay sends no notifications. */
  readonly pollInterval?: number;
}

/** What following needs of the account. */
export interface Followed {
  readonly core: AccountCore;
  /** Everything that catching up is, in one go. */
  catchUp(signal: AbortSignal): AsyncGenerator<readonly AccountEvent[]>;
  /** Looks for the home relay again. */
  refreshHome(signal: AbortSignal): Promise<void>;
}

const retry = { attempts: Number.POSITIVE_INFINITY, base: 500, cap: 60_000 };

/**
 * Milliseconds of silence after which a WebSocket is read from all the same: it may be dead without
 * knowing, its session revoked without a word, a notification lost.
 */
const silenceLimit = 60_000;

/**
 * Gives what happens until the signal aborts. Lost connections are rebuilt with backoff, and every
 * new one begins by catching up: nothing depends on a notification having arrived.
 *
 * @throws ClientError that time does not heal, such as the device having been removed
 */
export async function* follow(
  followed: Followed,
  { signal, pollInterval = 30_000 }: FollowOptions,
): AsyncGenerator<AccountEvent> {
  const { core } = followed;
  let transport: 'websocket' | 'http' | undefined;
  for (let failures = 0; !signal.aborted; ) {
    try {
      const home = await core.home();
      const hints = new Hints();
      home.onNotification = (notification) => hints.take(notification);
      const link = await home.link(signal);
      if (transport !== link.channel.kind) {
        transport = link.channel.kind;
        yield { kind: 'connected', transport };
      }
      for await (const events of followed.catchUp(signal)) yield* events;
      await quiet(core, home.relayId, { hints, ended: link.ended, signal, pollInterval });
      // Only now: a relay that ends every connection at once is no relay that works.
      failures = 0;
      if (link.ended === undefined) home.reconsider();
    } catch (error) {
      if (signal.aborted) return;
      if (isWrongHome(error)) await followed.refreshHome(signal);
      else if (!isPassing(error)) throw error;
      if (transport !== undefined) yield { kind: 'disconnected', error };
      transport = undefined;
      failures += 1;
      const hintSeconds = hintOf(error);
      const wait = backoff(failures, retry, { random: core.random, hintSeconds });
      await core.clock.sleep(wait, signal).catch(() => undefined);
    }
  }
}

/** A misbehaving relay may be a relay under repair; nothing it answered was used. */
function isPassing(error: unknown): boolean {
  return isTemporary(error) || isClientError(error, 'relay_misbehaviour');
}

/**
 * Waits until there is a reason to read again.
 * @throws ClientError with which the connection ended
 */
async function quiet(
  core: AccountCore,
  relayId: string,
  until: {
    readonly hints: Hints;
    readonly ended: Promise<ClientError> | undefined;
    readonly signal: AbortSignal;
    readonly pollInterval: number;
  },
): Promise<void> {
  const { hints, ended, signal, pollInterval } = until;
  for (;;) {
    const stop = new AbortController();
    const bounded = AbortSignal.any([signal, stop.signal]);
    const pause = core.clock.sleep(ended === undefined ? pollInterval : silenceLimit, bounded);
    const reason = await Promise.race([
      hints.next().then(() => 'hint' as const),
      pause.then(() => 'silence' as const),
      ...(ended === undefined ? [] : [ended]),
    ]).finally(() => {
      stop.abort();
      pause.catch(() => undefined);
    });
    if (reason instanceof ClientError) throw reason;
    if (reason === 'silence' || (await isNews(core, relayId, hints.drain()))) return;
  }
}

/** Whether a hint tells of something that was not read yet. It proves and moves nothing itself. */
async function isNews(
  core: AccountCore,
  relayId: string,
  hints: { readonly head: number; readonly revision: number },
): Promise<boolean> {
  return await core.store.write(async (tx) => {
    const unread = hints.head > (await timelinePosition(tx, relayId));
    const outdated = await noteStateHint(tx, core.account, hints.revision);
    return unread || outdated;
  });
}

/** Notifications merged to the highest of each kind, until somebody looks. */
class Hints {
  #head = -1;
  #revision = -1;
  #waiting = Promise.withResolvers<void>();

  take({ method, params }: Notification): void {
    if (method === 'message.timeline.changed') {
      this.#head = Math.max(this.#head, params.head as number);
    } else if (method === 'device.state.changed') {
      this.#revision = Math.max(this.#revision, params.revision as number);
    } else return;
    this.#waiting.resolve();
  }

  next(): Promise<void> {
    return this.#waiting.promise;
  }

  drain(): { readonly head: number; readonly revision: number } {
    const hints = { head: this.#head, revision: this.#revision };
    this.#head = -1;
    this.#revision = -1;
    this.#waiting = Promise.withResolvers();
    return hints;
  }
}
