/** What a relay that was put back to an earlier state lost, as far as clients show it. */
import type { RelayContext } from '../context.ts';

const secondsOfDay = 86_400;

/** Log lines of a day, of groups and channels together: callers must not fill the log. */
const mostPerDay = 1_000;

const lines = {
  group:
    'members know changes of this group that the restored relay lost: ask its owner to run `courier group hand-back`',
  channel:
    "readers know a newer descriptor of this channel than the restored relay has: its owner's program publishes it " +
    'again when it connects',
} as const;

type Observed = Pick<RelayContext, 'clock' | 'log' | 'metrics'>;

/** Records each group and channel once a day. */
export class RestoreLosses {
  readonly #parts: Observed;
  #day = -1;
  readonly #seen = new Set<string>();

  constructor(parts: Observed) {
    this.#parts = parts;
  }

  /** Records that a client knows more of a group or channel than this relay. It is the client's claim. */
  note(kind: keyof typeof lines, id: string): void {
    const { log, metrics, clock } = this.#parts;
    const day = Math.floor(clock.now() / secondsOfDay);
    if (day !== this.#day) this.#seen.clear();
    this.#day = day;
    if (this.#seen.has(id) || this.#seen.size >= mostPerDay) return;
    this.#seen.add(id);
    metrics.count('restore_losses', { kind });
    log.warn({ [kind]: id }, lines[kind]);
  }
}
