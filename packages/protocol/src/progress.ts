/** How far a long command is: a bar on a terminal, plain lines in a log, or events as JSON. */
import { terminalJson, terminalLine } from './terminal.ts';

/**
 * - `bar`: one line that is overwritten, for a terminal;
 * - `lines`: a line for each step that had something to do, and every five seconds during a long one;
 * - `json`: one JSON object per line, at most once a second.
 */
export type ProgressForm = 'bar' | 'lines' | 'json';

/** Where progress goes, and how. */
export interface ProgressOutput {
  readonly form: ProgressForm;
  write(text: string): void;
  /** Monotonic milliseconds. */
  now(): number;
  /** Columns of the terminal; 80 by default. */
  readonly columns?: () => number | undefined;
}

/** How much of one step is done. */
export interface ProgressState {
  /** What is done, in plain words: `copying devices`. */
  readonly step: string;
  readonly done: number;
  /** `undefined` if it is not known yet. */
  readonly total: number | undefined;
  /** What is counted; plain numbers by default. */
  readonly unit?: 'bytes' | undefined;
}

/** Milliseconds between two outputs of one step. */
const intervals: Readonly<Record<ProgressForm, number>> = { bar: 100, lines: 5_000, json: 1_000 };
/** Milliseconds of a step before its rate and the time left are shown. */
const rateAfter = 1_000;
const barWidth = 20;

/**
 * Shows how far a long command is. Call {@link show} as often as is convenient: it writes only what is
 * due, and always the end of a step.
 *
 * @example
 * const progress = new Progress({
 *   form: 'lines',
 *   write: (text) => console.error(text.trimEnd()),
 *   now: () => performance.now(),
 * });
 * progress.show({ step: 'copying rows', done: 2, total: 2 }); // copying rows 2 of 2
 * progress.end();
 */
export class Progress {
  readonly #output: ProgressOutput;
  #step: string | undefined;
  /** When the step began, and how much of it was done then: the command may go on after another. */
  #began = { at: 0, done: 0 };
  #writtenAt = Number.NEGATIVE_INFINITY;
  #written = '';
  #isOpen = false;

  constructor(output: ProgressOutput) {
    this.#output = output;
  }

  /** Shows a state, unless the last one was shown a moment ago. */
  show(state: ProgressState): void {
    const { step, done, total } = state;
    if (total === 0 && this.#output.form === 'lines') return;
    const now = this.#output.now();
    if (step !== this.#step) {
      this.#step = step;
      this.#began = { at: now, done };
      if (this.#output.form !== 'lines') this.#writtenAt = Number.NEGATIVE_INFINITY;
    }
    const isEnd = total !== undefined && done >= total;
    if (!isEnd && now - this.#writtenAt < intervals[this.#output.form]) return;
    const text = this.#text(state, now);
    if (text === this.#written) return;
    this.#writtenAt = now;
    this.#written = text;
    this.#isOpen = this.#output.form === 'bar';
    this.#output.write(this.#isOpen ? `\r\u001b[K${text}` : `${text}\n`);
  }

  /** Removes the bar, so that other lines can follow; the next {@link show} draws it again. */
  end(): void {
    if (this.#isOpen) {
      this.#output.write('\r\u001b[K');
      this.#writtenAt = Number.NEGATIVE_INFINITY;
    }
    this.#isOpen = false;
    this.#written = '';
  }

  #text(state: ProgressState, now: number): string {
    const { step, done, total, unit } = state;
    const rate = this.#rate(done, now);
    const left =
      rate === undefined || total === undefined ? undefined : Math.ceil((total - done) / rate);
    if (this.#output.form === 'json') {
      const rest = { per_second: rate && Math.round(rate), seconds_left: left };
      return terminalJson({ event: 'progress', step, done, total, unit, ...rest });
    }
    const counted =
      total === undefined ? amount(done, unit) : `${amount(done, unit)} of ${amount(total, unit)}`;
    const pace = rate === undefined || done === total ? [] : [`${amount(rate, unit)} a second`];
    if (left !== undefined && left > 0) pace.push(`${duration(left)} left`);
    if (this.#output.form === 'lines')
      return terminalLine([`${step} ${counted}`, ...pace].join(', '));
    const bar = total === undefined ? [] : [drawn(total === 0 ? 1 : done / total)];
    const line = terminalLine([`${step}`, ...bar, counted, ...pace].join('  '));
    return line.slice(0, (this.#output.columns?.() ?? 80) - 1);
  }

  #rate(done: number, now: number): number | undefined {
    const { at, done: before } = this.#began;
    return now - at < rateAfter || done <= before
      ? undefined
      : ((done - before) * 1_000) / (now - at);
  }
}

function drawn(part: number): string {
  const full = Math.max(0, Math.min(barWidth, Math.floor(part * barWidth)));
  return `[${'#'.repeat(full)}${'-'.repeat(barWidth - full)}] ${String(Math.floor(Math.min(part, 1) * 100)).padStart(3)} %`;
}

/** Formats a number, or bytes in decimal units. */
function amount(value: number, unit: ProgressState['unit']): string {
  if (unit === undefined) return String(Math.round(value));
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let [scaled, index] = [value, 0];
  while (scaled >= 1_000 && index < units.length - 1) [scaled, index] = [scaled / 1_000, index + 1];
  return `${index === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${units[index]}`;
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`;
}
