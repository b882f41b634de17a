import type { Job, RelayContext } from '../context.ts';
import { clockWentBack, deletingPaused, deletingResumed } from '../observability/events.ts';
import { type ClockMark, putClockMark, readClockMark } from '../storage/clock-mark.ts';

/** Seconds between two marks, and between two checks while deleting is paused. */
const interval = 60;

type Context = Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics' | 'storage'>;

/**
 * Keeps a wrong clock from deleting what is not due: if the clock is more than a day ahead of the last
 * mark, no job that deletes runs for 24 hours, or until the operator accepts the clock. The mark is
 * written every minute. A clock that is set right again ends the pause at once.
 */
export class ClockGuard {
  readonly #context: Context;
  #mark: ClockMark | undefined;
  #isPaused = false;

  /** Writes the mark every minute. */
  readonly job: Job = {
    name: 'relay.clock',
    run: async () => {
      await this.#check();
      return this.#context.clock.now() + interval;
    },
  };

  constructor(context: Context) {
    this.#context = context;
  }

  /** Checks the clock against the mark of the last run; call it once, before any job runs. */
  async start(): Promise<void> {
    const { clock, storage } = this.#context;
    this.#mark = await storage.read(readClockMark);
    const ahead = (this.#mark?.seenAt ?? 0) - clock.now();
    if (ahead > 0) clockWentBack(this.#context, ahead);
    // Without room for the mark, the job repeats the check.
    await this.#check().catch(() => this.#report());
  }

  /** Returns 0 if jobs may delete now; otherwise the seconds until the next check. */
  async secondsToWait(): Promise<number> {
    if (this.#isPaused || this.#isFarAhead(this.#mark)) await this.#check();
    return this.#isPaused ? interval : 0;
  }

  /** Reads the mark, which another process or a command may have changed, and moves it. */
  async #check(): Promise<void> {
    const { clock, limits, storage } = this.#context;
    this.#mark = await storage.write('relay', async (tx) => {
      const now = clock.now();
      const mark = await readClockMark(tx);
      const next = nextMark(mark, { now, isFarAhead: this.#isFarAhead(mark), ...limits });
      await putClockMark(tx, next);
      return next;
    });
    this.#report();
  }

  #isFarAhead(mark: ClockMark | undefined): boolean {
    const { clock, limits } = this.#context;
    return mark !== undefined && clock.now() - mark.seenAt > limits.clockJump;
  }

  #report(): void {
    const isPaused = this.#isFarAhead(this.#mark);
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    const { clock } = this.#context;
    if (!isPaused) deletingResumed(this.#context);
    else deletingPaused(this.#context, clock.now() - (this.#mark?.seenAt ?? 0));
  }
}

function nextMark(
  mark: ClockMark | undefined,
  {
    now,
    isFarAhead,
    clockPause,
  }: { readonly now: number; readonly isFarAhead: boolean; readonly clockPause: number },
): ClockMark {
  const trusted = { seenAt: Math.max(now, mark?.seenAt ?? 0) };
  if (mark === undefined || !isFarAhead) return trusted;
  const { pausedUntil } = mark;
  // An end that is too far away was set by a clock that was further ahead.
  const isSet = pausedUntil !== undefined && pausedUntil - now <= clockPause;
  if (!isSet) return { seenAt: mark.seenAt, pausedUntil: now + clockPause };
  return now < pausedUntil ? mark : trusted;
}
