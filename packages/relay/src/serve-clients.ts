/** Serves clients: the transports, and what tells their connections of changes. */
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { frontPages } from './about/index.ts';
import type { Blobs } from './blobs/index.ts';
import { listenAddress } from './config/addresses.ts';
import type { RelayConfig } from './config/index.ts';
import type { PublicAddresses } from './config/public-addresses.ts';
import { withName } from './config/with-name.ts';
import type { RelayContext } from './context.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import type { LongWork } from './dispatch/long-work.ts';
import type { ModuleSet } from './dispatch/module-set.ts';
import { ChannelListeners } from './notifications/channel-listeners.ts';
import { ConnectionResync } from './notifications/connection-resync.ts';
import { FairScheduler } from './notifications/fair-scheduler.ts';
import { GroupListeners } from './notifications/group-listeners.ts';
import { Hub } from './notifications/hub.ts';
import { SessionEndsReader } from './notifications/session-ends.ts';
import { noTrustedProxy } from './observability/events.ts';
import type { Operations } from './operations/index.ts';
import { Reload } from './operations/reload.ts';
import type { SessionCache } from './sessions/session-cache.ts';
import { type TlsFiles, tlsFiles } from './tls/configured-files.ts';
import { CertificateRenewal, type CertificateSource } from './tls/renewal.ts';
import { BlockedAddresses } from './transport/blocked-addresses.ts';
import { ByteAccounts } from './transport/byte-accounts.ts';
import { ClientAddresses } from './transport/client-addresses.ts';
import { ConnectionTable } from './transport/connection-table.ts';
import { createHttp, type Http } from './transport/http.ts';
import { Transfers } from './transport/transfers.ts';
import { WebSocketTransport } from './transport/websocket.ts';
import { openWeb } from './web/index.ts';

/** Serves the client API over HTTP and WebSocket; returns what can be changed while it does. */
export async function serveClients(
  config: RelayConfig,
  {
    context,
    sessions,
    modules,
    addresses,
    tls,
    longWork,
    blobs,
    operations,
    checkSecret,
    parts,
  }: {
    readonly context: RelayContext;
    readonly sessions: SessionCache;
    readonly modules: ModuleSet;
    readonly addresses: PublicAddresses;
    readonly tls: TlsFiles | undefined;
    readonly longWork: LongWork;
    readonly blobs: Blobs | undefined;
    readonly operations: Operations | undefined;
    readonly checkSecret: Uint8Array;
    readonly parts: AsyncDisposableStack;
  },
): Promise<Reload> {
  const clients = new ClientAddresses(config.trustedProxies);
  const scheduler = new FairScheduler(context.clock);
  const listeners = {
    group: parts.use(new GroupListeners(context, scheduler)),
    channel: parts.use(new ChannelListeners(context, scheduler)),
  };
  // Accounts have turns of their own: they wait for no group that many hear of.
  const hub = parts.use(new Hub(context, listeners));
  parts.use(new ConnectionResync(context, { hub, ...modules }));
  await parts.use(new SessionEndsReader(context, { hub, sessions })).start();
  const blocked = new BlockedAddresses(context.blocks, clients);
  const open = new ConnectionTable({ context, blocked, clients });
  const transport = {
    context,
    hub,
    addresses,
    dispatcher: new Dispatcher(context, modules.handlers, longWork),
    ...{ blocked, clients, open },
    bytes: new ByteAccounts(context),
  };
  parts.use(
    context.blocks.onChange(({ accounts }) => {
      sessions.sessionsEnded({ accounts });
      for (const account of accounts) {
        for (const listener of hub.listenersOf(account)) listener.revoke();
      }
      void open.endBlocked();
    }),
  );
  const { relayId } = context.identity;
  const now = () => context.clock.monotonic() / 1_000;
  const web = openWeb(config, { relayId, now });
  const sockets = new WebSocketTransport(transport);
  const http = createHttp({
    ...transport,
    ...{ tls, blobs, checkSecret, transfers: new Transfers(context) },
    pages: frontPages(config, { ...context, relayId, addresses, hasMessenger: web !== undefined }),
    web,
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
  });
  const { app } = http;
  parts.defer(() => stopServing(http, sockets, context));
  const use = (files: TlsFiles) => {
    (app.server as TlsServer).setSecureContext(files);
    operations?.useCertificate(files);
  };
  const renewal = parts.use(new CertificateRenewal({ context, use }));
  if (tls !== undefined) await renewal.start(certificateOf(config), tls);
  await withName('listen', () => app.listen(listenAddress(config)));
  addresses.setPort((app.server.address() as AddressInfo).port);
  if (config.tls.mode === 'off' && config.trustedProxies.length === 0) noTrustedProxy(context);
  return new Reload(config, {
    context,
    useProxies: (proxies) => {
      clients.trust(proxies);
      operations?.trust(proxies);
    },
    useCertificate: async (of) => {
      // Another mode needs a restart: until then the certificate of this one stays.
      if (tls === undefined || of.mode !== config.tls.mode) return;
      await renewal.change(certificateOf({ ...config, tls: of }));
    },
  });
}

/** The files of the certificate, and how they are read. */
function certificateOf(config: RelayConfig): CertificateSource {
  const { mode, certificate, key } = config.tls;
  const paths = mode === 'files' ? [certificate, key] : [];
  return { paths, read: () => tlsFiles(config) };
}

/** Stops both transports at once: an HTTP server closes only after its upgraded connections. */
async function stopServing(
  { app, terminate }: Http,
  sockets: WebSocketTransport,
  { clock, limits }: RelayContext,
): Promise<void> {
  using _grace = clock.after(limits.stopGrace, () => void terminate());
  await Promise.all([app.close(), sockets[Symbol.asyncDispose]()]);
}
