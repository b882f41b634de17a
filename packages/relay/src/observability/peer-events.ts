/** Events of connections with other relays and of calls between relays; as `events.ts`. */
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log' | 'metrics'>;

/** Counts a relay with a connection, in either direction. */
export function peerConnected(
  { log, metrics }: Observed,
  peer: { readonly relay: string; readonly address: string; readonly direction: string },
): void {
  metrics.count('peers', { state: 'connected' });
  log.debug(peer, 'peer relay connected');
}

/** Records that the last connection with a relay ended. */
export function peerDisconnected(
  { log, metrics }: Observed,
  peer: { readonly relay: string },
): void {
  metrics.count('peers', { state: 'connected' }, -1);
  log.debug(peer, 'peer relay disconnected');
}

/** Counts an inbound connection that ended before admission; strangers cause it. */
export function peerConnectionRefused(
  { log, metrics }: Observed,
  refusal: { readonly address: string; readonly reason: string; readonly error: unknown },
): void {
  const { address, reason, error } = refusal;
  metrics.count('peer_connections_refused', { reason });
  log.debug({ address, reason, err: error }, 'connection of a peer refused');
}

/** Records an internal error while a stream of another relay was served. */
export function peerServingFailed(
  { log, metrics }: Observed,
  failure: { readonly protocol: string; readonly error: unknown },
): void {
  metrics.count('peer_serving_errors');
  log.error({ protocol: failure.protocol, err: failure.error }, 'stream of a peer failed');
}

/** Records an invalid message of another relay. */
export function peerMisbehaved(
  { log, metrics }: Observed,
  fault: { readonly relay: string; readonly fault: string; readonly isRefused: boolean },
): void {
  metrics.count('peer_faults', { fault: fault.fault });
  if (fault.isRefused) log.warn(fault, 'peer relay refused for invalid messages');
  else log.debug(fault, 'invalid message of a peer relay');
}

/** Records a call to another relay; `code` is `ok`, a code of the catalogue, or the failure. */
export function relayCalled(
  { log, metrics }: Observed,
  call: {
    readonly relay: string;
    readonly method: string;
    readonly code: string;
    readonly milliseconds: number;
  },
): void {
  const { method, code } = call;
  metrics.count('relay_calls', { method, code });
  metrics.observe('relay_call_seconds', { method }, call.milliseconds / 1_000);
  log.debug(call, 'relay called');
}

/** Counts a stream that another relay reset while others were under way: it may allow fewer. */
export function relayCallReset(
  { log, metrics }: Observed,
  call: { readonly relay: string; readonly atOnce: number },
): void {
  metrics.count('relay_call_resets');
  log.debug(call, 'relay call reset');
}

/** Counts an answered request or notification of another relay. */
export function relayServed(
  { metrics }: Pick<Observed, 'metrics'>,
  call: { readonly method: string; readonly code: string },
): void {
  metrics.count('relay_served', call);
}

/** Records that a relay cannot be reached; it is tried again with growing pauses. */
export function relayFailing(
  { log, metrics }: Observed,
  failure: { readonly relay: string; readonly error: string },
): void {
  metrics.count('relays_failed');
  metrics.count('peers', { state: 'failing' });
  log.warn(failure, 'peer relay failing');
}

export function relayBack(
  { log, metrics }: Observed,
  relay: { readonly relay: string; readonly seconds: number },
): void {
  metrics.count('peers', { state: 'failing' }, -1);
  log.info(relay, 'peer relay back');
}

/** Counts a failing relay that left the registry. */
export function relayForgotten({ metrics }: Pick<Observed, 'metrics'>): void {
  metrics.count('peers', { state: 'failing' }, -1);
}

export function relayHealthNotStored({ log, metrics }: Observed, error: unknown): void {
  metrics.count('relay_health_errors');
  log.error({ err: error }, 'health of peer relays not stored');
}

/** Counts a request of another relay to be dialled (`posthouse doctor` there). */
export function dialledBack(
  { log, metrics }: Observed,
  request: { readonly relay: string; readonly outcome: 'dialled' | 'busy' },
): void {
  metrics.count('dial_backs', { outcome: request.outcome });
  log.debug(request, 'peer relay asked to be dialled');
}

export function dhtServed(
  { metrics }: Pick<Observed, 'metrics'>,
  request: { readonly type: string; readonly outcome: 'record' | 'none' | 'reset' },
): void {
  metrics.count('dht_served', { type: request.type, outcome: request.outcome });
}

export function dhtAsked(
  { metrics }: Pick<Observed, 'metrics'>,
  request: { readonly type: string; readonly outcome: 'ok' | 'failed' | 'paused' },
): void {
  metrics.count('dht_requests', { type: request.type, outcome: request.outcome });
}

/** Records what became of a peer that an answer of the DHT named. */
export function candidateTried(
  { log, metrics }: Observed,
  outcome: 'admitted' | 'refused' | 'limited',
  error?: unknown,
): void {
  metrics.count('dht_candidates', { outcome });
  if (error !== undefined) log.debug({ err: error }, 'peer named by a DHT answer not reached');
}

/** Records a lookup, and how long it took. */
export function dhtLookedUp(
  { metrics }: Pick<Observed, 'metrics'>,
  lookup: { readonly outcome: 'complete' | 'exhausted'; readonly milliseconds: number },
): void {
  metrics.count('dht_lookups', { outcome: lookup.outcome });
  metrics.observe('dht_lookup_seconds', {}, lookup.milliseconds / 1_000);
}

/** Counts the relays that stored a route of an account at home here. */
export function routeReplicated({ metrics }: Pick<Observed, 'metrics'>, replicas: number): void {
  metrics.count('route_replicas', {}, replicas);
}

/** Records that a publication that succeeded could not be stored, so that it is repeated soon. */
export function publicationNotRecorded({ log }: Pick<Observed, 'log'>, error: unknown): void {
  log.warn({ err: error }, 'publication of a route not recorded');
}

/** Records that too few relays stored a route in time; it is sent again. */
export function replicasMissed({ log, metrics }: Observed, { enough }: { enough: number }): void {
  metrics.count('replicas_missed');
  log.warn({ enough }, 'too few relays stored a route');
}

/** Records a route of another relay that did not verify, and is not used. */
export function routeRecordRefused(
  { log, metrics }: Observed,
  refusal: { readonly relay: string; readonly error: unknown },
): void {
  metrics.count('dht_records_refused');
  log.debug({ relay: refusal.relay, err: refusal.error }, 'route of a peer relay refused');
}

/** Records that the descriptor names an address for other relays without a listener. */
export function noPeerListener({ log, metrics }: Observed): void {
  metrics.count('no_peer_listener');
  log.warn('federation.listen is empty: other relays cannot reach the address of the descriptor');
}

/**
 * Records that the registry names another HTTPS address than this relay's first one: others fetch
 * its descriptor there (07 §A9).
 */
export function otherEndpointRegistered(
  { log, metrics }: Observed,
  addresses: { readonly registry: string; readonly registered: string; readonly own: string },
): void {
  metrics.count('other_endpoint_registered');
  log.warn(addresses, 'the registry names another address than the first one of public.https');
}

/** Records that a node of the chain failed; the next one is asked. */
export function registryNodeFailed(
  { log, metrics }: Observed,
  {
    node,
    error,
    isNew,
  }: {
    /** Scheme, host and port: the rest of a node's URL can contain a key. */
    readonly node: string;
    readonly error: { readonly code: string };
    /** False if a failure of the node was logged a short time ago. */
    readonly isNew: boolean;
  },
): void {
  metrics.count('registry_node_failures', { reason: error.code });
  log[isNew ? 'warn' : 'debug']({ node, err: error }, 'node of the registry failed');
}

/** Records that records of the registry were skipped because they are malformed. */
export function registryRecordsMalformed(
  { log, metrics }: Observed,
  facts: { readonly node: string; readonly count: number },
): void {
  metrics.count('registry_records_malformed', {}, facts.count);
  log.debug(facts, 'malformed records of the registry skipped');
}

/** Records that two nodes have different records of a relay, which is not admitted. */
export function registryNodesDiffer(
  { log, metrics }: Observed,
  facts: { readonly relay: string; readonly nodes: readonly string[] },
): void {
  metrics.count('registry_nodes_differ');
  log.warn(facts, 'two nodes of the registry differ: the relay is not admitted');
}
