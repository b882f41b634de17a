/** Composes the parts of the federation: admission, connections, relay RPC and the relay DHT. */
import {
  addressKey,
  ByteTotal,
  defaultPeerLimits,
  PeerError,
  PeerHost,
  type PeerIdentity,
  type PeerLimits,
  type PeerObserver,
  type PeerProtocol,
} from '@posthouse/peer';
import { hex } from '@posthouse/protocol';
import { wakeRoutesFor } from '../accounts/index.ts';
import { listenAddress } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import { withName } from '../config/with-name.ts';
import type { Job, RelayClient, RelayContext, RouteDirectory } from '../context.ts';
import { CallTurns } from '../dispatch/call-turns.ts';
import type { LongWork } from '../dispatch/long-work.ts';
import { RelayDispatcher } from '../dispatch/relay-dispatcher.ts';
import type { RelayHandlers } from '../dispatch/relay-handler.ts';
import { RelayTexts } from '../dispatch/relay-texts.ts';
import { wakeDestination } from '../messages/index.ts';
import {
  peerConnectionRefused,
  peerServingFailed,
  relayHealthNotStored,
} from '../observability/peer-events.ts';
import { StepTurns } from '../step-turns.ts';
import { openAdmission } from './admission.ts';
import { deleteConnections, hasConnections } from './connection-store.ts';
import { PeerConnections } from './connections.ts';
import { connectionsJob } from './connections-job.ts';
import { KadDecoder } from './dht/decoder.ts';
import { routeKeysJob } from './dht/route-keys.ts';
import { DhtRoutes } from './dht/routes.ts';
import { DhtServer } from './dht/serve.ts';
import { tableJob } from './dht/table-job.ts';
import { endBlocked } from './end-blocked.ts';
import { noRelayClient, noRoutes } from './no-federation.ts';
import { peersJob } from './peers-job.ts';
import { dhtProtocol, doctorProtocol, rpcProtocol } from './protocol-ids.ts';
import { DialBackServer } from './reachability/dial-back.ts';
import { ReachabilityCheck } from './reachability/reachability-check.ts';
import { reachabilityJob } from './reachability/request-job.ts';
import type { KeptRegistry } from './registry/kept-registry.ts';
import { RelayHealth } from './relay-health.ts';
import { RpcClient } from './rpc/client.ts';
import { RpcServer } from './rpc/serve.ts';
import { shareDrops } from './share-drops.ts';
import { knownRelays } from './store.ts';
import type { EligiblePeer } from './verify-descriptor.ts';

export interface FederationOptions {
  readonly config: Pick<RelayConfig, 'federation' | 'dev' | 'data' | 'tls'>;
  readonly registry: KeptRegistry;
  /** The peer key that the descriptor binds. */
  readonly peer: PeerIdentity;
  /** Text of the own current descriptor; asked after {@link Federation.start} only. */
  readonly descriptor: () => Promise<string>;
  readonly handlers: RelayHandlers;
  /** Reads large texts, of clients too. */
  readonly longWork: LongWork;
}

/**
 * The relay's part in the network of relays. The relay's context has its route directory and its
 * client from the beginning; until {@link listen}, they answer as those of a relay without other
 * relays.
 */
export class Federation implements AsyncDisposable {
  readonly #parts = new AsyncDisposableStack();
  readonly #stopping = new AbortController();
  readonly #started = Promise.withResolvers<void>();
  #routes: RouteDirectory = noRoutes;
  #client: RelayClient = noRelayClient;
  #jobs: readonly Job[] = [];

  readonly routeDirectory: RouteDirectory;

  readonly relayClient: RelayClient = {
    call: (relayId, method, params) => this.#client.call(relayId, method, params),
    notify: (relayId, name, params) => this.#client.notify(relayId, name, params),
    pausedUntil: (relayId) => this.#client.pausedUntil(relayId),
    callsAtOnce: (relayId) => this.#client.callsAtOnce(relayId),
  };

  constructor() {
    const routes = () => this.#routes;
    this.routeDirectory = {
      get hasRelays() {
        return routes().hasRelays;
      },
      get isAlone() {
        return routes().isAlone;
      },
      get areAllAway() {
        return routes().areAllAway;
      },
      resolveRemote: (account, only, known) => routes().resolveRemote(account, only, known),
      replicate: (route, leaving, nearest) => routes().replicate(route, leaving, nearest),
    };
  }

  get jobs(): readonly Job[] {
    return this.#jobs;
  }

  /**
   * Listens for other relays, on a migrated database. Connections wait in their handshake until
   * {@link start}.
   *
   * @returns the port listened on
   * @throws Error if the port is taken, or `federation.ca` cannot be read
   */
  async listen(context: RelayContext, options: FederationOptions): Promise<number> {
    const { config, registry, handlers, longWork } = options;
    const { limits, clock } = context;
    const admission = this.#parts.use(await openAdmission(context, { config, registry }));
    const { eligibility, faults, filter } = admission;
    const stopping = this.#stopping.signal;
    const health = this.#parts.use(
      new RelayHealth(context, async (relayId) => {
        routes.resume(relayId);
        await wakeDestination(context, relayId);
        await wakeRoutesFor(context, relayId);
      }),
    );
    await health.restore();
    const shared = { eligibility, filter, health, faults, stopping };
    const connections = new PeerConnections(context, shared);
    const process = hex(context.random(8));
    this.#parts.defer(() => forgetConnections(context, process));
    this.#parts.use(shareDrops(context, eligibility));
    this.#parts.use(endBlocked(context, connections));
    const held = new ByteTotal(limits.peerBytes);
    const turns = new CallTurns(clock);
    const reading = { limits, longWork, turns, held };
    const decoder = new KadDecoder({ turns, longWork });
    const dispatcher = new RelayDispatcher(context, handlers, new RelayTexts(reading));
    const rpc = new RpcServer(context, { dispatcher, faults });
    const relays = () => eligibility.candidates();
    const dhtParts = {
      ...shared,
      connections,
      relays,
      decoder,
      isRegistryRead: () => registry.isRead,
    };
    const routes = this.#parts.use(new DhtRoutes(context, dhtParts));
    const { table } = routes;
    const dht = new DhtServer(context, { eligibility, faults, table, decoder });
    const reachability = { ...shared, host: () => host, candidates: relays, table };
    const dialBack = new DialBackServer(context, reachability);
    const host: PeerHost<EligiblePeer> = this.#parts.use(
      new PeerHost<EligiblePeer>({
        identity: options.peer,
        descriptor: async () => {
          await this.#started.promise;
          return await options.descriptor();
        },
        admit: (remote, signal) => connections.admit(remote, signal),
        protocols: protocolsOf(context, { rpc, dht, dialBack }),
        limits: peerLimits(limits),
        held,
        ...{ turns: new StepTurns(), handshakeTurns: new StepTurns() },
        agent: 'posthouse',
        mayAccept: (address) => !context.blocks.hasAddress(addressKey(address)),
        mayDial: (address) => filter.isAllowed(address),
        clock,
        observer: observerOf(context, (connection) => {
          connections.opened(connection);
          routes.resume(connection.peer.relayId);
        }),
      }),
    );
    connections.use(host);
    // Others than those of requests: a request under way may wait for an answer.
    const texts = new RelayTexts(reading);
    this.#client = new RpcClient(context, { connections, health, faults, stopping, texts });
    this.#routes = routes;
    this.#jobs = [
      ...admission.jobs,
      peersJob({ eligibility, connections, health, stopping }),
      connectionsJob({ process, connections, stopping }),
      routeKeysJob(),
      tableJob({ routes, self: options.peer.peerId, stopping }),
      reachabilityJob(new ReachabilityCheck(context, reachability)),
    ];
    const address = listenAddress(config.federation);
    return (await withName('federation.listen', () => host.listen(address))).port;
  }

  /** Lets the handshakes proceed: the relay is in the registry, and its descriptor is complete. */
  start(): void {
    this.#started.resolve();
  }

  /** Ends calls under way, lets other relays' requests end for a while, and closes all connections. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new Error('the relay is stopping'));
    await this.#parts.disposeAsync();
  }
}

/** The protocols of chapter 07, and the one of `posthouse doctor`. */
function protocolsOf(
  { network, limits }: RelayContext,
  servers: { readonly rpc: RpcServer; readonly dht: DhtServer; readonly dialBack: DialBackServer },
): ReadonlyMap<string, PeerProtocol<EligiblePeer>> {
  const { rpc, dht, dialBack } = servers;
  return new Map([
    [rpcProtocol(network), { streams: limits.relayStreams, serve: rpc.serve.bind(rpc) }],
    [dhtProtocol(network), { streams: limits.dhtStreams, serve: dht.serve.bind(dht) }],
    [doctorProtocol(network), { streams: 1, serve: dialBack.serve.bind(dialBack) }],
  ]);
}

/** Logs what fails at the host. */
function observerOf(
  context: RelayContext,
  admitted: NonNullable<PeerObserver<EligiblePeer>['admitted']>,
): PeerObserver<EligiblePeer> {
  return {
    admitted,
    refused: (address, error) => {
      const reason = error instanceof PeerError ? error.code : 'check';
      peerConnectionRefused(context, { address, reason, error });
    },
    failed: (protocol, error) => {
      // The peer or its connection ended the stream.
      if (error instanceof PeerError) return;
      peerServingFailed(context, { protocol, error });
    },
  };
}

function peerLimits(limits: RelayContext['limits']): PeerLimits {
  return {
    ...defaultPeerLimits,
    heldBytesOfAll: limits.peerBytes,
    connections: limits.peerConnections,
    connectionsPerPeer: limits.peerConnectionsEach,
    handshakesPerAddress: limits.peerHandshakesPerAddress,
    handshakeRate: limits.peerHandshakeRate,
    handshakeBurst: limits.peerHandshakeBurst,
    lingerTime: limits.peerLinger,
    stopGrace: limits.stopGrace,
  };
}

/** Deletes what this process stored of its connections; rows that stay count for a while only. */
async function forgetConnections(context: RelayContext, process: string): Promise<void> {
  try {
    if (!(await context.storage.read(hasConnections))) return;
    await context.storage.write(knownRelays, (tx) => deleteConnections(tx, process));
  } catch (error) {
    relayHealthNotStored(context, error);
  }
}
