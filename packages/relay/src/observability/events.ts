/** One function for each thing that happens: its log line and its counter stand together. */
import type { ErrorCode } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log' | 'metrics'>;

export function relayStarted(
  { log }: Observed,
  { relayId, https }: { readonly relayId: string; readonly https: readonly string[] },
): void {
  log.info({ relayId, https }, 'relay started');
}

/** Clients that go by the registry will not find this relay. */
export function notRegistered({ log, metrics }: Observed, registry: string): void {
  metrics.count('not_registered');
  log.warn({ registry }, 'the registry does not name this relay as active');
}

/** Every client behind the proxy counts as the proxy. */
export function noTrustedProxy({ log, metrics }: Observed): void {
  metrics.count('no_trusted_proxy');
  log.warn('tls.mode is off and trustedProxies is empty: all clients share one limit');
}

export function relayStopped({ log }: Observed): void {
  log.info('relay stopped');
}

/** New certificates could not be read; the old ones stay in use. */
export function certificatesFailed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('certificates_failed');
  log.error({ err: error }, 'certificates not renewed');
}

/** A call was answered; `code` is `ok` for success. */
export function callAnswered(
  { log, metrics }: Observed,
  call: {
    readonly method: string;
    readonly transport: 'http' | 'websocket';
    readonly code: ErrorCode | 'ok';
    readonly milliseconds: number;
  },
): void {
  const { method, transport, code } = call;
  metrics.count('calls', { method, transport, code });
  metrics.observe('call_seconds', { method, transport }, call.milliseconds / 1_000);
  log.debug(call, 'call answered');
}

/** Something broke that no caller is told about; `id` is what the caller was told instead. */
export function callFailed(
  { log, metrics }: Observed,
  failure: { readonly method: string; readonly id: string; readonly error: unknown },
): void {
  metrics.count('internal_errors', { method: failure.method });
  const { method, id, error } = failure;
  log.error({ method, id, err: error }, 'call failed');
}

/** Why a WebSocket connection is over. */
export type EndReason =
  | 'closed by peer'
  | 'relay stops'
  | 'binary message'
  | 'peer reads too slowly'
  | 'peer does not answer pings'
  | 'connection error';

export function connectionOpened({ metrics }: Observed): void {
  metrics.count('connections');
}

export function connectionEnded({ log, metrics }: Observed, reason: EndReason): void {
  metrics.count('connections', {}, -1);
  metrics.count('connections_ended', { reason });
  log.debug({ reason }, 'connection ended');
}

export function connectionRefused({ log, metrics }: Observed, reason: string): void {
  metrics.count('connections_refused', { reason });
  log.debug({ reason }, 'connection refused');
}

export function jobFailed(
  { log, metrics }: Observed,
  failure: { readonly job: string; readonly error: unknown; readonly retryInSeconds: number },
): void {
  metrics.count('jobs_failed', { job: failure.job });
  const { job, error, retryInSeconds } = failure;
  log.error({ job, retryInSeconds, err: error }, 'job failed');
}

/** A job could not do something for one group, channel or account; it went on with the others. */
export function ownedTaskFailed(
  { log, metrics }: Observed,
  failure: {
    readonly job: string;
    readonly task: string;
    /** Kind and ID: `group:<id>`. */
    readonly owner: string;
    readonly error: unknown;
    readonly retryInSeconds: number;
  },
): void {
  metrics.count('job_tasks_failed', { job: failure.job });
  const { error, ...facts } = failure;
  log.error({ ...facts, err: error }, 'job failed for one');
}

export function noticeFailed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('notices_failed');
  log.error({ err: error }, 'notice not handled');
}

/** An attempt to deliver a message broke here; the message stays in the queue. */
export function deliveryBroke(
  { log, metrics }: Observed,
  failure: { readonly messageId: string; readonly error: unknown },
): void {
  metrics.count('deliveries_broken');
  const { messageId, error } = failure;
  log.error({ messageId, err: error }, 'delivery attempt broke');
}

/** The database server cannot be reached; calls wait a moment and are refused then. */
export function storageLost({ log, metrics }: Observed, error: unknown): void {
  metrics.count('storage_lost');
  log.error({ err: error }, 'storage lost');
}

export function storageBack({ log }: Observed): void {
  log.info('storage back');
}

/** A write met another one and is tried again. */
export function storageConflicted({ metrics }: Observed): void {
  metrics.count('storage_conflicts');
}

/** Nobody could tell whether a write was committed; its caller was told so. */
export function storageUnsettled({ log, metrics }: Observed, error: unknown): void {
  metrics.count('storage_unsettled');
  log.error({ err: error }, 'outcome of a commit unknown');
}

/** Another process uses the database in a way that excludes this one. */
export function storageDisplaced({ log, metrics }: Observed, error: unknown): void {
  metrics.count('storage_displaced');
  log.error({ err: error }, 'storage is used by another process as well');
}

/** Notices of other processes do not arrive; nothing but storage is believed about sessions. */
export function busLost({ log, metrics }: Observed, error: unknown): void {
  metrics.count('bus_lost');
  log.error({ err: error }, 'bus to other processes lost');
}

export function busBack({ log, metrics }: Observed): void {
  metrics.count('bus_back');
  log.info('bus to other processes back');
}

/** Notices left this process for nobody: who they were for catches up from storage. */
export function noticesDropped({ metrics }: Observed, count: number): void {
  metrics.count('notices_dropped', {}, count);
}

/** Somebody writes to the bus who does not belong there, or a newer relay. */
export function noticesRefused({ log, metrics }: Observed, count: number): void {
  metrics.count('notices_refused', {}, count);
  log.debug({ count }, 'no notices arrived on the bus');
}

/** Connections were compared with storage, for notices that never came. */
export function caughtUp({ metrics }: Observed): void {
  metrics.count('catch_ups');
}

export function catchUpFailed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('catch_ups_failed');
  log.error({ err: error }, 'connections not compared with storage');
}

/** Who may hear of a group could not be looked up; it is tried again, and the hints wait. */
export function hintsDelayed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('hints_delayed');
  log.error({ err: error }, 'hints wait: rights not looked up');
}

/**
 * Somebody reported a post to the operator. Never with the reason: whoever reads logs need not read
 * what strangers write.
 */
export function postReported(
  { log, metrics }: Observed,
  report: {
    readonly channel: string;
    readonly sequence: number;
    /** Reports there are about the post now. */
    readonly count: number;
    /** Whether it took the place of one by the same account. */
    readonly replaces: boolean;
  },
): void {
  metrics.count('channel_reports');
  const { replaces, ...facts } = report;
  if (replaces) log.info(facts, 'post reported again');
  else log.warn(facts, 'post reported');
}

/** The operator took a post out of a channel's timeline, or put it back: a line to go by later. */
export function postWithheld(
  { log }: Pick<Observed, 'log'>,
  post: { readonly channel: string; readonly sequence: number; readonly reports: number },
): void {
  log.warn(post, 'post withheld');
}

export function postRestored(
  { log }: Pick<Observed, 'log'>,
  post: { readonly channel: string; readonly sequence: number },
): void {
  log.warn(post, 'post restored');
}
