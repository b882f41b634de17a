/** A process that alone cannot reach PostgreSQL, which neither answers it nor closes connections. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { RelayData } from '../support/engine.ts';
import { codeOf } from '../support/http.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { ServedRelay } from '../support/served-relay.ts';

const title = `a process cut off from PostgreSQL alone (${withoutNats ?? 'real'})`;
const patience = { timeout: 30_000, interval: 50 };

describe.skipIf(withoutNats !== undefined)(title, () => {
  const parts = new AsyncDisposableStack();
  let proxy: CuttingProxy;
  let a: ServedRelay;
  /** Reaches PostgreSQL by the proxy. */
  let b: ServedRelay;

  beforeAll(async () => {
    const nats = parts.use(await TestNats.start());
    const data = await RelayData.withSchema();
    const storage = data.config.storage as { readonly url: string };
    proxy = parts.use(await CuttingProxy.start(storage.url));
    const config = {
      public: { https: ['https://127.0.0.1:8443/svc/v1'] },
      bus: { nats: nats.url },
      operations: { listen: '127.0.0.1:0' },
    };
    a = parts.use(await ServedRelay.start(config, data));
    const cuttable = { ...storage, url: proxy.url } as never;
    b = parts.use(await a.startProcess({ ...config, storage: cuttable }));
  });
  afterAll(() => parts.disposeAsync());

  const healthOf = async (process: ServedRelay) =>
    (await fetch(`${process.server.operations}/health`)).status;

  test('02 §3.3: its connections close with 1013, calls get 503, and the other serves', async () => {
    const ann = await a.register('ann');
    const [atA, atB] = [await a.socket(), await b.socket()];
    for (const [process, socket] of [[a, atA] as const, [b, atB] as const]) {
      expect(await process.bindDevice(socket, ann.device())).toHaveProperty('result');
    }
    const { token } = await a.logInDevice(ann);
    const http = b.http();
    expect(codeOf(await http.call('message.timeline.sync', {}, { token }))).toBe('ok');

    proxy.fallSilent();
    const underWay = http.call('message.send', ann.message(ann), { token });
    expect(await atB.closed).toBe(1013);
    expect(codeOf(await underWay)).toBe('temporarily_unavailable');
    const refused = await http.call('message.timeline.sync', {}, { token });
    expect(codeOf(refused)).toBe('temporarily_unavailable');
    expect(refused.headers.connection).toBe('close');
    await expect(b.socket()).rejects.toThrow('503');
    expect([await healthOf(a), await healthOf(b)]).toEqual([200, 503]);
    expect(await atA.call('message.timeline.sync', {})).toHaveProperty('result');

    proxy.speak();
    await vi.waitFor(async () => expect(await healthOf(b)).toBe(200), patience);
    const again = await b.socket();
    expect(await b.bindDevice(again, ann.device())).toHaveProperty('result');
    expect(codeOf(await http.call('message.timeline.sync', {}, { token }))).toBe('ok');
  });
});
