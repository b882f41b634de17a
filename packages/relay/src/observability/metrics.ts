/** Counters and gauges by name and labels, in memory; whoever exports them takes a snapshot. */
export class Metrics {
  readonly #values = new Map<string, number>();

  /**
   * Adds to a counter. Labels come from closed sets (method names, error codes), never from input.
   */
  count(name: string, labels: Readonly<Record<string, string>> = {}, by = 1): void {
    const key = metricKey(name, labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + by);
  }

  /** Current value; 0 where nothing was counted. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    return this.#values.get(metricKey(name, labels)) ?? 0;
  }

  /** Every value under its text form `name{label="value"}`. */
  snapshot(): Record<string, number> {
    return Object.fromEntries(this.#values);
  }
}

function metricKey(name: string, labels: Readonly<Record<string, string>>): string {
  const parts = Object.keys(labels)
    .sort()
    .map((label) => `${label}="${labels[label]}"`);
  return parts.length === 0 ? name : `${name}{${parts.join(',')}}`;
}
