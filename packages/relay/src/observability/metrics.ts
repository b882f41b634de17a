/** Every number the relay keeps about itself: what operators watch. */
const catalogue = {
  calls: ['counter', 'Calls answered, by method, transport and code.'],
  call_seconds: ['histogram', 'Seconds from a decoded request to its answer.'],
  internal_errors: ['counter', 'Calls that broke here, by method.'],
  connections: ['gauge', 'Open WebSocket connections.'],
  connections_ended: ['counter', 'WebSocket connections that ended, by reason.'],
  connections_refused: ['counter', 'Connections refused, by reason.'],
  jobs_failed: ['counter', 'Runs of jobs that failed, by job.'],
  job_tasks_failed: [
    'counter',
    'Times a job failed for one group, channel or account and went on, by job.',
  ],
  deliveries_broken: ['counter', 'Attempts to deliver that broke here.'],
  notices_failed: ['counter', 'Notices that could not be handled here.'],
  notices_dropped: ['counter', 'Notices that other processes had to catch up with.'],
  notices_refused: ['counter', 'Things on the bus that are no notices.'],
  bus_lost: ['counter', 'Times the bus to other processes was lost.'],
  bus_back: ['counter', 'Times the bus to other processes came back.'],
  catch_ups: ['counter', 'Comparisons of connections with storage.'],
  catch_ups_failed: ['counter', 'Comparisons of connections with storage that failed.'],
  hints_delayed: [
    'counter',
    'Times it could not be looked up who may hear of a group or a channel.',
  ],
  storage_lost: ['counter', 'Times the database could not be reached.'],
  storage_conflicts: ['counter', 'Writes tried again after a conflict.'],
  storage_unsettled: ['counter', 'Commits whose outcome nobody could tell.'],
  storage_displaced: ['counter', 'Times another process used the database against the rules.'],
  certificates_failed: ['counter', 'Times new TLS certificates could not be read.'],
  not_registered: ['counter', 'Starts at which the registry did not name this relay.'],
  channel_reports: ['counter', 'Reports of posts that were accepted, for `posthouse reports`.'],
  no_trusted_proxy: ['counter', 'Starts behind a proxy that is not trusted.'],
} as const satisfies Record<string, readonly ['counter' | 'gauge' | 'histogram', string]>;

export type MetricName = keyof typeof catalogue;
type HistogramName = {
  [N in MetricName]: (typeof catalogue)[N][0] extends 'histogram' ? N : never;
}[MetricName];

/** From closed sets (method names, error codes), never from input. */
type Labels = Readonly<Record<string, string>>;

/** Upper bounds of a histogram's buckets, seconds. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

interface Histogram {
  /** Of each bound, how many were at most that. */
  readonly buckets: number[];
  count: number;
  sum: number;
}

/** Counters, gauges and histograms by name and labels, in memory. */
export class Metrics {
  /** By name, then by the text of the labels. */
  readonly #values = new Map<MetricName, Map<string, number>>();
  readonly #histograms = new Map<HistogramName, Map<string, Histogram>>();

  /** Adds to a counter or a gauge. */
  count(name: Exclude<MetricName, HistogramName>, labels: Labels = {}, by = 1): void {
    const values = this.#values.get(name) ?? new Map<string, number>();
    this.#values.set(name, values);
    const key = labelText(labels);
    values.set(key, (values.get(key) ?? 0) + by);
  }

  /** Takes a value into a histogram. */
  observe(name: HistogramName, labels: Labels, seconds: number): void {
    const histograms = this.#histograms.get(name) ?? new Map<string, Histogram>();
    this.#histograms.set(name, histograms);
    const key = labelText(labels);
    const histogram = histograms.get(key) ?? { buckets: bounds.map(() => 0), count: 0, sum: 0 };
    histograms.set(key, histogram);
    histogram.count += 1;
    histogram.sum += seconds;
    for (const [index, bound] of bounds.entries()) {
      if (seconds <= bound) histogram.buckets[index] = (histogram.buckets[index] ?? 0) + 1;
    }
  }

  /** Current value of a counter or a gauge; 0 where nothing was counted. */
  value(name: Exclude<MetricName, HistogramName>, labels: Labels = {}): number {
    return this.#values.get(name)?.get(labelText(labels)) ?? 0;
  }

  /** Everything in Prometheus's text format, version 0.0.4. */
  exposition(): string {
    const lines: string[] = [];
    for (const [name, [kind, help]] of Object.entries(catalogue)) {
      const full = `posthouse_${name}${kind === 'counter' ? '_total' : ''}`;
      lines.push(`# HELP ${full} ${help}`, `# TYPE ${full} ${kind}`);
      for (const [labels, value] of this.#values.get(name as MetricName) ?? []) {
        lines.push(`${full}${braced(labels)} ${value}`);
      }
      for (const [labels, histogram] of this.#histograms.get(name as HistogramName) ?? []) {
        lines.push(...histogramLines(full, labels, histogram));
      }
    }
    return `${lines.join('\n')}\n`;
  }
}

function histogramLines(
  full: string,
  labels: string,
  { buckets, count, sum }: Histogram,
): string[] {
  const upTo = (bound: number | string) =>
    braced(`${labels === '' ? '' : `${labels},`}le="${bound}"`);
  return [
    ...bounds.map((bound, index) => `${full}_bucket${upTo(bound)} ${buckets[index]}`),
    `${full}_bucket${upTo('+Inf')} ${count}`,
    `${full}_sum${braced(labels)} ${sum}`,
    `${full}_count${braced(labels)} ${count}`,
  ];
}

function labelText(labels: Labels): string {
  return Object.keys(labels)
    .sort()
    .map((label) => `${label}="${labels[label]}"`)
    .join(',');
}

function braced(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}
