/** One function for each event: it writes the log line and updates the counter. */
import { type ErrorCode, ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log' | 'metrics'>;

/**
 * Returns the level for a failure: `debug` if storage does not serve now, which has a log line of
 * its own, however many calls and jobs fail of it.
 */
function levelOf(error: unknown): 'debug' | 'error' {
  const isOutage = error instanceof ProtocolError && error.code === 'temporarily_unavailable';
  return isOutage ? 'debug' : 'error';
}

export function relayStarted(
  { log }: Observed,
  { relayId, https }: { readonly relayId: string; readonly https: readonly string[] },
): void {
  log.info({ relayId, https }, 'relay started');
}

/** Records that the registry does not list this relay: clients will not find it through the registry. */
export function notRegistered({ log, metrics }: Observed, registry: string): void {
  metrics.count('not_registered');
  log.warn({ registry }, 'the registry does not name this relay as active');
}

/** Records that no proxy is trusted: rate limits treat all clients of the proxy as one. */
export function noTrustedProxy({ log, metrics }: Observed): void {
  metrics.count('no_trusted_proxy');
  log.warn('tls.mode is off and trustedProxies is empty: all clients share one limit');
}

/** Records that the clock is earlier than it was when the relay ran last. */
export function clockWentBack({ log, metrics }: Observed, seconds: number): void {
  metrics.count('clock_went_back');
  log.warn({ seconds }, 'the clock is earlier than at the last mark: check it');
}

/** Records that jobs delete nothing, since the clock may be wrong. */
export function deletingPaused({ log, metrics }: Observed, seconds: number): void {
  metrics.count('deleting_paused');
  log.error(
    { secondsAhead: seconds },
    'deleting paused, the clock is far ahead of the last mark: correct it, or run posthouse clock accept',
  );
}

export function deletingResumed({ log, metrics }: Observed): void {
  metrics.count('deleting_paused', {}, -1);
  log.info('deleting resumed');
}

/** Records that the disk does not store or delete attachments. */
export function blobNotStored({ log, metrics }: Observed, error: unknown): void {
  metrics.count('blobs_not_stored');
  log.error(
    { err: error },
    'an attachment was not stored or deleted: check blobs.folder and its disk',
  );
}

/** Records that several processes need one folder for attachments. */
export function blobsOfSeveralProcesses({ log }: Observed, folder: string): void {
  log.info({ folder }, 'attachments: every process of this relay needs this same folder');
}

export function relayStopped({ log }: Observed): void {
  log.info('relay stopped');
}

/** Records that new certificates could not be read; the relay continues to use the old ones. */
export function certificateReloadFailed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('certificate_reloads_failed');
  metrics.set('certificate_unusable', 1);
  log.error({ err: error }, 'certificates not reloaded: those before stay in force');
}

/** Records the certificate in force; one that replaced another has a log line. */
export function certificateReloaded(
  { log, metrics }: Observed,
  { secondsLeft, isFirst }: { readonly secondsLeft: number; readonly isFirst: boolean },
): void {
  metrics.set('certificate_left_seconds', secondsLeft);
  metrics.set('certificate_unusable', 0);
  if (!isFirst) log.info({ secondsLeft }, 'certificates reloaded');
}

/** Records a configuration that was taken over without a restart. */
export function configurationReloaded(
  { log, metrics }: Observed,
  facts: { readonly applied: readonly string[]; readonly needRestart: readonly string[] },
): void {
  metrics.count('configuration_reloads', { outcome: 'ok' });
  if (facts.needRestart.length === 0) log.info(facts, 'configuration reloaded');
  else log.warn(facts, 'configuration reloaded; some settings need a restart');
}

/** Records a configuration that cannot be used; the one before stays in force. */
export function configurationNotReloaded(
  { log, metrics }: Observed,
  problems: readonly string[],
): void {
  metrics.count('configuration_reloads', { outcome: 'failed' });
  log.error({ problems }, 'configuration not reloaded: the one before stays in force');
}

/** Records an answered call; `code` is `ok` for success. */
export function callAnswered(
  { log, metrics }: Observed,
  call: {
    readonly method: string;
    readonly transport: 'http' | 'websocket' | 'relay';
    readonly code: ErrorCode | 'ok';
    readonly milliseconds: number;
  },
  about?: { readonly facts: object },
): void {
  const { method, transport, code } = call;
  metrics.count('calls', { code, method, transport });
  metrics.observe('call_seconds', { method, transport }, call.milliseconds / 1_000);
  if (log.isLevelEnabled('debug')) log.debug({ ...call, ...about?.facts }, 'call answered');
}

/** Records an internal error; the caller sees only the error's `id`. */
export function callFailed(
  { log, metrics }: Observed,
  failure: { readonly method: string; readonly id: string; readonly error: unknown },
): void {
  metrics.count('internal_errors', { method: failure.method });
  const { method, id, error } = failure;
  log.error({ method, id, err: error }, 'call failed');
}

/** Why a WebSocket connection ended. */
export type EndReason =
  | 'closed by peer'
  | 'relay stops'
  | 'binary message'
  | 'peer reads too slowly'
  | 'peer does not answer pings'
  | 'too many bytes received'
  | 'message unfinished'
  | 'no session'
  | 'too many connections'
  | 'the address is blocked'
  | 'storage out of reach'
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

/** Records that a job ended well, and by how many seconds the oldest work that it left is overdue. */
export function jobSucceeded(
  { metrics }: Pick<Observed, 'metrics'>,
  run: { readonly job: string; readonly at: number; readonly overdue: number },
): void {
  const { job, at, overdue } = run;
  metrics.set('job_last_success_seconds', at, { job });
  metrics.set('job_overdue_seconds', overdue, { job });
}

/** Records how many accounts, groups or channels there are. */
export function countedAtHome(
  { metrics }: Pick<Observed, 'metrics'>,
  { kind, count }: { readonly kind: 'accounts' | 'groups' | 'channels'; readonly count: number },
): void {
  metrics.set(kind, count);
}

export function jobFailed(
  { log, metrics }: Observed,
  failure: { readonly job: string; readonly error: unknown; readonly retryInSeconds: number },
): void {
  metrics.count('jobs_failed', { job: failure.job });
  const { job, error, retryInSeconds } = failure;
  log[levelOf(error)]({ job, retryInSeconds, err: error }, 'job failed');
}

/** Records that a job failed for one group, channel or account; the job continues with the rest. */
export function jobTaskFailed(
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
  log[levelOf(error)]({ ...facts, err: error }, 'job task failed');
}

export function noticeFailed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('notices_failed');
  log.error({ err: error }, 'notice not handled');
}

/** Records how many messages wait for delivery to other relays, and the seconds of the oldest. */
export function deliveriesCounted(
  { metrics }: Pick<Observed, 'metrics'>,
  { waiting, age }: { readonly waiting: number; readonly age: number },
): void {
  metrics.set('deliveries_waiting', waiting);
  metrics.set('delivery_age_seconds', age);
}

/** Records an internal error during a delivery attempt; the message stays in the queue. */
export function deliveryFailed(
  { log, metrics }: Observed,
  failure: { readonly messageId: string; readonly error: unknown },
): void {
  metrics.count('delivery_errors');
  const { messageId, error } = failure;
  log[levelOf(error)]({ messageId, err: error }, 'delivery attempt failed');
}

/** Records that recipients of waiting messages could not be located again. */
export function recipientsNotLocated({ log, metrics }: Observed, error: unknown): void {
  metrics.count('delivery_errors');
  log[levelOf(error)]({ err: error }, 'recipients of waiting messages not located');
}

/** Records that notices of other processes do not arrive; sessions are read from storage meanwhile. */
export function busLost({ log, metrics }: Observed, error: unknown): void {
  metrics.count('bus_lost');
  log.error({ err: error }, 'bus to other processes lost');
}

export function busRestored({ log, metrics }: Observed): void {
  metrics.count('bus_restored');
  log.info('bus to other processes restored');
}

/** Records that this process alone cannot reach storage: its clients are sent elsewhere. */
export function cutOffFromStorage({ log, metrics }: Observed): void {
  metrics.set('storage_cut_off', 1);
  log.error('this process alone cannot reach storage: its clients are disconnected');
}

export function reachesStorageAgain({ log, metrics }: Observed): void {
  metrics.set('storage_cut_off', 0);
  log.info('this process reaches storage again');
}

/** Counts notices that were not published; the other processes resync from storage. */
export function noticesDropped({ metrics }: Observed, count: number): void {
  metrics.count('notices_dropped', {}, count);
}

/** Records bus messages that are not notices: from a stranger, or from a newer relay. */
export function invalidNoticesReceived({ log, metrics }: Observed, count: number): void {
  metrics.count('notices_invalid', {}, count);
  log.debug({ count }, 'invalid notices on the bus');
}

/** Records that it could not be read which sessions ended; each call reads its own meanwhile. */
export function sessionEndsUnread({ log }: Observed, error: unknown): void {
  log[levelOf(error)]({ err: error }, 'ended sessions not read');
}

/** Counts a resync: connections were compared with storage because notices may have been lost. */
export function connectionsResynced({ metrics }: Observed): void {
  metrics.count('resyncs');
}

export function resyncFailed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('resyncs_failed');
  log[levelOf(error)]({ err: error }, 'resync of connections failed');
}

/** Records that read access could not be checked; hints wait until a retry succeeds. */
export function hintsDelayed({ log, metrics }: Observed, error: unknown): void {
  metrics.count('hints_delayed');
  log[levelOf(error)]({ err: error }, 'hints delayed: access not checked');
}

/**
 * Records a report of a post. The log line omits the reason, which is text written by a stranger;
 * one account causes at most one line a minute.
 */
export function postReported(
  { log, metrics }: Observed,
  report: {
    readonly channel: string;
    readonly sequence: number;
    /** Number of reports about the post now. */
    readonly count: number;
    /** Whether it replaces an earlier report by the same account. */
    readonly replaces: boolean;
    /** False if the account's reports of this minute have a log line. */
    readonly isLogged: boolean;
  },
): void {
  metrics.count('channel_reports');
  const { replaces, isLogged, ...facts } = report;
  if (!isLogged) return;
  if (replaces) log.info(facts, 'post reported again');
  else log.warn(facts, 'post reported');
}

export function registryRead(
  { metrics }: Pick<Observed, 'metrics'>,
  read: { readonly kind: 'all' | 'one'; readonly outcome: 'ok' | 'error' },
): void {
  metrics.count('registry_reads', read);
}

/** Records that the registry cannot be read; the last answer serves for a while. */
export function registryLost({ log, metrics }: Observed, error: unknown): void {
  metrics.count('registry_lost');
  metrics.set('registry_lost_now', 1);
  log.error({ err: error }, 'registry cannot be read');
}

export function registryRestored({ log, metrics }: Observed): void {
  metrics.count('registry_restored');
  metrics.set('registry_lost_now', 0);
  log.info('registry readable again');
}

/** Records that the registry no longer lists this relay as active: other relays refuse it. */
export function ownRecordNotActive({ log, metrics }: Observed, status: string): void {
  metrics.count('own_record_not_active');
  log.error({ status }, 'the registry does not list this relay as active');
}

/** Records that another relay passed every check of admission. */
export function peerAdmitted(
  { log, metrics }: Observed,
  peer: { readonly relay: string; readonly address: string; readonly direction: string },
): void {
  metrics.count('peers_admitted', { direction: peer.direction });
  metrics.count('peers', { state: 'eligible' });
  log.info(peer, 'peer relay admitted');
}

/** Records a refused relay; strangers cause it, so it is logged for debugging only. */
export function peerRefused(
  { log, metrics }: Observed,
  refusal: { readonly check: string; readonly address: string; readonly error: unknown },
): void {
  const { check, address, error } = refusal;
  metrics.count('peers_refused', { check });
  log.debug({ check, address, err: error }, 'peer relay refused');
}

/** Records that an admitted relay lost its admission; its connections are closed. */
export function peerDropped(
  { log, metrics }: Observed,
  peer: { readonly relay: string; readonly reason: string },
): void {
  metrics.count('peers_dropped', { reason: peer.reason });
  metrics.count('peers', { state: 'eligible' }, -1);
  log.warn(peer, 'peer relay dropped');
}

/** Counts a descriptor that was fetched, or not. */
export function descriptorFetched({ metrics }: Pick<Observed, 'metrics'>, outcome: string): void {
  metrics.count('descriptor_fetches', { outcome });
}
