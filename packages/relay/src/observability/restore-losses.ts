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
  readonly #seen = new Map<string, keyof typeof lines>();

  constructor(parts: Observed) {
    this.#parts = parts;
  }

  /** How many groups and channels clients showed today. */
  counts(): { readonly groups: number; readonly channels: number } {
    if (this.#day !== this.#today()) return { groups: 0, channels: 0 };
    const groups = [...this.#seen.values()].filter((kind) => kind === 'group').length;
    return { groups, channels: this.#seen.size - groups };
  }

  /** Records that a client knows more of a group or channel than this relay. It is the client's claim. */
  note(kind: keyof typeof lines, id: string): void {
    const { log, metrics } = this.#parts;
    const day = this.#today();
    if (day !== this.#day) this.#seen.clear();
    this.#day = day;
    if (this.#seen.has(id) || this.#seen.size >= mostPerDay) return;
    this.#seen.set(id, kind);
    metrics.count('restore_losses', { kind });
    log.warn({ [kind]: id }, lines[kind]);
  }

  #today(): number {
    return Math.floor(this.#parts.clock.now() / secondsOfDay);
  }
}
