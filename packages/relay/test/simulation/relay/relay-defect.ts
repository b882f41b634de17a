/** The places at which a simulated relay can be broken on purpose. */
import type { Bus, Clock, Jobs } from '../../../src/context.ts';
import type { Storage } from '../../../src/storage/types.ts';
import type { Chance } from '../machine/chance.ts';
import type { Peers } from './peers.ts';

export interface RelayDefect {
  /** Changes a statement before SQLite gets it. */
  rewrite?(sql: string): string;
  /** Whether a commit that fails is taken for a successful one. */
  readonly hidesFaults?: boolean;
  /** Whether a flush does nothing. */
  readonly skipsFlushes?: boolean;
  /** Whether bytes that a failed flush has lost stay lost when they are written again. */
  readonly ignoresRewrites?: boolean;
  storage?(storage: Storage): Storage;
  /** Share of notices that are lost. */
  readonly dropsNotices?: number;
  /** Share of timers that do not fire, of those with more milliseconds. */
  readonly dropsTimers?: { readonly share: number; readonly longerThan: number };
  /** Name of a job that is not woken. */
  readonly sleeps?: string;
  /** Whether requests without an answer count as not sent. */
  readonly forgetsUnknown?: boolean;
}

/** Breaks the parts of a relay. */
export class Breakage {
  readonly #defect: RelayDefect;
  readonly #chance: Chance;

  constructor(defect: RelayDefect, chance: Chance) {
    this.#defect = defect;
    this.#chance = chance;
  }

  storage(storage: Storage): Storage {
    return this.#defect.storage?.(storage) ?? storage;
  }

  bus<T extends Bus>(bus: T): T {
    const { dropsNotices = 0 } = this.#defect;
    if (dropsNotices === 0) return bus;
    const { publish } = bus;
    bus.publish = (notices) =>
      publish.call(
        bus,
        notices.filter(() => !this.#chance.is(dropsNotices)),
      );
    return bus;
  }

  jobs<T extends Jobs>(jobs: T): T {
    const { sleeps } = this.#defect;
    const { wake } = jobs;
    jobs.wake = (name) => {
      if (name !== sleeps) wake.call(jobs, name);
    };
    return jobs;
  }

  clock(clock: Clock): Clock {
    const { dropsTimers } = this.#defect;
    if (dropsTimers === undefined) return clock;
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (milliseconds, work) => {
        const isLong = milliseconds > dropsTimers.longerThan;
        const isDropped = isLong && this.#chance.is(dropsTimers.share);
        return clock.after(milliseconds, isDropped ? () => {} : work);
      },
    };
  }

  peers(peers: Peers): Peers {
    if (this.#defect.forgetsUnknown !== true) return peers;
    const { relayClient } = peers;
    const call: typeof relayClient.call = async (...request) => {
      const answer = await relayClient.call(...request);
      return answer.kind === 'unknown' ? { kind: 'unreachable' } : answer;
    };
    return { ...peers, relayClient: { ...relayClient, call } };
  }
}
