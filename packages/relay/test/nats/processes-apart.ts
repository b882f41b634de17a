import { expect, vi } from 'vitest';
import type { PartialConfig } from '../../src/config/index.ts';
import { TestNats } from '../support/nats.ts';
import { ServedRelay } from '../support/served-relay.ts';
import { TcpProxy } from './tcp-proxy.ts';

/**
 * Two processes of one relay: `a` is cut off from NATS, so its notices reach no other process, as if
 * it had died after each commit; `b` is connected. They end with `parts`.
 */
export async function startApart(
  parts: AsyncDisposableStack,
  host: NonNullable<PartialConfig['host']>,
): Promise<{ readonly a: ServedRelay; readonly b: ServedRelay }> {
  const nats = parts.use(await TestNats.start());
  const proxy = parts.use(await TcpProxy.start(nats.url));
  const config = { public: { https: ['https://127.0.0.1:8443/svc/v1'] }, host };
  const a = parts.use(await ServedRelay.start({ ...config, bus: { nats: proxy.url } }));
  const b = parts.use(await a.startProcess({ bus: { nats: nats.url } }));
  proxy.cut();
  await vi.waitFor(() => expect(a.server.context.bus.isConnected).toBe(false), 20_000);
  return { a, b };
}
