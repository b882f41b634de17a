/** Lists every metric of the relay. */
const catalogue = {
  build_info: ['gauge', '1, with the versions of the relay, its database schema and Node.'],
  ready: ['gauge', '1 while the process serves, 0 while it starts or stops.'],
  process_resident_memory_bytes: ['gauge', 'Resident memory of the process.'],
  process_heap_bytes: ['gauge', 'Heap of V8 in use.'],
  process_cpu_seconds: ['counter', 'CPU seconds of the process.'],
  process_uptime_seconds: ['gauge', 'Seconds since the process started.'],
  event_loop_delay_seconds: [
    'gauge',
    'Delay of the event loop since the last reading of the metrics, by percentile.',
  ],
  accounts: ['gauge', 'Accounts at home at this relay; counted every ten minutes.'],
  groups: ['gauge', 'Groups of this relay that are not closed; counted every ten minutes.'],
  channels: ['gauge', 'Channels of this relay that are not closed; counted every ten minutes.'],
  calls: ['counter', 'Calls answered, by method, transport and code.'],
  call_seconds: ['histogram', 'Seconds from a decoded request to its answer.'],
  internal_errors: ['counter', 'Calls that failed with an internal error, by method.'],
  connections: ['gauge', 'Open WebSocket connections.'],
  connections_ended: ['counter', 'WebSocket connections that ended, by reason.'],
  connections_refused: ['counter', 'Connections refused, by reason.'],
  job_last_success_seconds: ['gauge', 'When a job ended well for the last time, Unix, by job.'],
  job_overdue_seconds: ['gauge', 'Seconds by which the oldest work of a job is overdue, by job.'],
  jobs_failed: ['counter', 'Runs of jobs that failed, by job.'],
  job_tasks_failed: [
    'counter',
    'Times a job failed for one group, channel or account and continued with the rest, by job.',
  ],
  deliveries_waiting: [
    'gauge',
    'Messages that wait for delivery to other relays; counted each minute.',
  ],
  delivery_age_seconds: ['gauge', 'Seconds since the oldest of them was accepted; 0 without one.'],
  clock_went_back: ['counter', 'Starts at which the clock was earlier than at the last mark.'],
  deleting_paused: ['gauge', '1 while nothing is deleted since the clock may be wrong.'],
  delivery_errors: ['counter', 'Delivery attempts that failed with an internal error.'],
  notices_failed: ['counter', 'Notices that could not be processed.'],
  notices_dropped: ['counter', 'Notices not published to other processes, which then resync.'],
  notices_invalid: ['counter', 'Invalid notices received from the bus.'],
  bus_lost: ['counter', 'Times the connection to the bus was lost.'],
  bus_restored: ['counter', 'Times the connection to the bus was restored.'],
  resyncs: ['counter', 'Resyncs: comparisons of connections with storage.'],
  resyncs_failed: ['counter', 'Resyncs that failed.'],
  hints_delayed: [
    'counter',
    'Times hints waited because read access to a group or channel could not be checked.',
  ],
  storage_lost: ['counter', 'Times the database could not be reached.'],
  storage_cut_off: ['gauge', '1 while this process alone, of several, cannot reach the database.'],
  storage_blocked: ['counter', 'Times the embedded database stopped accepting writes.'],
  storage_blocked_now: ['gauge', '1 while the embedded database accepts no writes.'],
  database_bytes: ['gauge', 'Bytes of the database.'],
  database_unused_bytes: [
    'gauge',
    'Of these, bytes of the embedded database that hold nothing and are given back.',
  ],
  disk_free_bytes: ['gauge', 'Free bytes of the disk, by what is on it (data, blobs).'],
  disk_low: ['gauge', '1 while the disk has less room than limits.diskFree, by what is on it.'],
  restore_losses: [
    'counter',
    'Groups and channels of which clients know more than this restored relay, once a day each, by kind.',
  ],
  storage_went_back: ['counter', 'Starts at which the database lacked its last transactions.'],
  storage_damaged: ['counter', 'Checks that found bad pages in the embedded database.'],
  storage_conflicts: ['counter', 'Writes retried after a conflict.'],
  storage_commits_unknown: ['counter', 'Commits whose outcome is unknown.'],
  storage_lock_lost: ['counter', 'Times another process took the lock on the database.'],
  crypto_worker_stopped: ['counter', 'Times the worker thread for cryptography ended early.'],
  blobs_not_stored: ['counter', 'Attachments that the disk did not store or delete.'],
  policy_questions: ['counter', 'Questions to the policy program, by kind and outcome.'],
  policy_seconds: ['histogram', 'Seconds from a question to the policy program to its answer.'],
  policy_ended: ['counter', 'Times the policy program ended and had to be started again.'],
  policy_failing_now: ['gauge', '1 while the policy program does not run, or did not answer last.'],
  certificate_left_seconds: ['gauge', 'Seconds until the TLS certificate in force expires.'],
  certificate_unusable: ['gauge', '1 while the TLS certificate files cannot be used.'],
  configuration_reloads: ['counter', 'Configurations read again after SIGHUP, by outcome.'],
  certificate_reloads_failed: ['counter', 'Times new TLS certificates could not be read.'],
  not_registered: ['counter', 'Starts at which the registry did not name this relay.'],
  other_endpoint_registered: [
    'counter',
    'Starts at which the registry named another address of this relay than its first one.',
  ],
  channel_reports: ['counter', 'Reports of posts that were accepted, for `posthouse reports`.'],
  registry_reads: ['counter', 'Reads of the registry, by kind (all, one) and outcome.'],
  registry_lost_now: ['gauge', '1 while the registry cannot be read.'],
  registry_lost: ['counter', 'Times the registry could not be read.'],
  registry_restored: ['counter', 'Times the registry could be read again.'],
  registry_node_failures: ['counter', 'Failed reads of nodes of the chain, by reason.'],
  registry_records_malformed: ['counter', 'Malformed records of the registry that were skipped.'],
  registry_nodes_differ: [
    'counter',
    'Times two nodes of the chain had different records of a relay.',
  ],
  own_record_not_active: ['counter', 'Times the registry stopped listing this relay as active.'],
  peers: ['gauge', 'Other relays, by state.'],
  peers_admitted: ['counter', 'Other relays admitted, by direction of the connection.'],
  peers_refused: ['counter', 'Other relays refused, by the check that failed.'],
  peers_dropped: ['counter', 'Other relays that lost their admission, by reason.'],
  peer_connections_refused: [
    'counter',
    'Inbound connections of other relays that ended before admission, by reason.',
  ],
  peer_faults: ['counter', 'Invalid messages of other relays, by kind.'],
  peer_serving_errors: ['counter', 'Streams of other relays that failed with an internal error.'],
  relay_calls: ['counter', 'Calls to other relays, by method and code.'],
  relay_call_resets: ['counter', 'Calls reset by other relays while others were under way.'],
  relay_call_seconds: ['histogram', 'Seconds from a call to another relay to its answer.'],
  relay_served: ['counter', 'Calls of other relays answered, by method and code.'],
  relays_failed: ['counter', 'Times a relay that was reached could not be reached any more.'],
  relay_health_errors: ['counter', 'Times the health of relays could not be stored.'],
  dht_requests: ['counter', 'DHT requests to other relays, by type and outcome.'],
  dht_served: ['counter', 'DHT requests of other relays, by type and outcome.'],
  dht_lookups: ['counter', 'Iterative lookups in the DHT, by outcome.'],
  dht_lookup_seconds: ['histogram', 'Seconds of an iterative lookup.'],
  dht_candidates: ['counter', 'Unknown peers that answers of the DHT named, by outcome.'],
  route_replicas: [
    'counter',
    'Copies of routes of accounts at home here that other relays stored.',
  ],
  replicas_missed: ['counter', 'Publications of a route that too few relays stored in time.'],
  dht_records_refused: ['counter', 'Routes of other relays that did not verify.'],
  dial_backs: ['counter', 'Requests of other relays to be dialled, by outcome (dialled, busy).'],
  descriptor_fetches: ['counter', 'Descriptors of other relays fetched, by outcome.'],
  no_peer_listener: ['counter', 'Starts without a listener for other relays.'],
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
  /** Number of values up to each bound that are above the bound before it. */
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

  /** Sets a gauge, or a counter that something else counts. */
  set(name: Exclude<MetricName, HistogramName>, value: number, labels: Labels = {}): void {
    const values = this.#values.get(name) ?? new Map<string, number>();
    this.#values.set(name, values);
    values.set(labelText(labels), value);
  }

  /** Adds a value to a histogram. */
  observe(name: HistogramName, labels: Labels, seconds: number): void {
    const histograms = this.#histograms.get(name) ?? new Map<string, Histogram>();
    this.#histograms.set(name, histograms);
    const key = labelText(labels);
    const histogram = histograms.get(key) ?? { buckets: bounds.map(() => 0), count: 0, sum: 0 };
    histograms.set(key, histogram);
    histogram.count += 1;
    histogram.sum += seconds;
    const index = bounds.findIndex((bound) => seconds <= bound);
    if (index >= 0) histogram.buckets[index] = (histogram.buckets[index] ?? 0) + 1;
  }

  /** Returns the current value of a counter or a gauge; 0 if nothing was counted. */
  value(name: Exclude<MetricName, HistogramName>, labels: Labels = {}): number {
    return this.#values.get(name)?.get(labelText(labels)) ?? 0;
  }

  /** As {@link value}; `undefined` if it was never set. */
  current(name: Exclude<MetricName, HistogramName>): number | undefined {
    return this.#values.get(name)?.get('');
  }

  /** Returns all metrics in Prometheus's text format, version 0.0.4. */
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
  let upToBound = 0;
  return [
    ...bounds.map((bound, index) => {
      upToBound += buckets[index] ?? 0;
      return `${full}_bucket${upTo(bound)} ${upToBound}`;
    }),
    `${full}_bucket${upTo('+Inf')} ${count}`,
    `${full}_sum${braced(labels)} ${sum}`,
    `${full}_count${braced(labels)} ${count}`,
  ];
}

/** Returns the labels in alphabetical order, in which those of each call are named already. */
function labelText(labels: Labels): string {
  let text = '';
  let before = '';
  for (const name in labels) {
    if (name < before) return sortedText(labels);
    text += text === '' ? `${name}="` : `,${name}="`;
    text += `${labels[name]}"`;
    before = name;
  }
  return text;
}

function sortedText(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([name, value]) => `${name}="${value}"`).join(',');
}

function braced(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}
