/** Channels at several processes of one relay: hints at one process of posts at another. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { TestChannel } from '../fixtures/channel.ts';
import { nextHint, receivedHints } from '../fixtures/hints.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';
import { TcpProxy } from './tcp-proxy.ts';

const patience = { timeout: 20_000, interval: 20 };

describe.skipIf(withoutNats !== undefined)(
  `channels of one relay (${withoutNats ?? 'real'})`,
  () => {
    let nats: TestNats;
    let proxy: TcpProxy;
    /** The first is connected to NATS by the proxy. */
    let a: ServedRelay;
    let b: ServedRelay;
    let both: ServedRelay[];
    const parts = new AsyncDisposableStack();

    beforeAll(async () => {
      nats = parts.use(await TestNats.start());
      proxy = parts.use(await TcpProxy.start(nats.url));
      const config = {
        public: { https: ['https://127.0.0.1:8443/svc/v1'] },
        host: { channels: true },
      };
      a = parts.use(await ServedRelay.start({ ...config, bus: { nats: proxy.url } }));
      b = parts.use(await a.startProcess({ bus: { nats: nats.url } }));
      both = [a, b];
    });
    afterAll(() => parts.disposeAsync());

    let people = 0;
    let ann: Person;
    /** A reader, with a second device. */
    let ben: Person;
    let channel: TestChannel;

    beforeEach(async () => {
      people += 1;
      ann = await a.register(`ann ${people}`);
      ben = await a.register(`ben ${people}`, ['phone', 'laptop']);
      channel = await TestChannel.create(a, ann);
    });
    afterEach(async () => {
      a.calledProcess = a;
      proxy.restore();
      await nats.start();
      await whole(true, both);
    });

    const whole = async (is: boolean, processes: ServedRelay[]) => {
      for (const { server } of processes) {
        await vi.waitFor(() => expect(server.context.bus.isConnected).toBe(is), patience);
      }
    };
    const lose = async () => {
      await nats.stop();
      await whole(false, both);
      await compared(both);
    };
    const regain = async () => {
      await nats.start();
      await whole(true, both);
      await compared(both);
    };
    /** Waits until each process has compared all its connections with storage. */
    const compared = async (processes: ServedRelay[]) => {
      for (const { server } of processes) {
        const { metrics } = server.context;
        const before = metrics.value('resyncs');
        await vi.waitFor(() => {
          a.clock.advance(5);
          expect(metrics.value('resyncs')).toBeGreaterThan(before + 1);
        }, patience);
      }
    };
    const at = (process: ServedRelay, person = ben, device = 'phone') =>
      process.withChannels(person, [channel], { device });
    /** Waits for a hint with this head. */
    const arrives = async (socket: WebSocketClient, head: number) => {
      for (;;) {
        const [, is] = await nextHint(socket);
        if (is === head) return;
      }
    };
    const keepPhone = async () => {
      const { token } = await a.logInAccount(ben);
      const state = await ben.state({ devices: ['phone'] });
      expect(codeOf(await a.http().call('device.state.publish', state, { token }))).toBe('ok');
    };

    test('06 §9.2: a write at one process notifies connections at the other', async () => {
      const sockets = await Promise.all([ann, ben].flatMap((each) => [at(a, each), at(b, each)]));
      await channel.post();
      for (const socket of sockets) expect(await nextHint(socket)).toEqual(['timeline', 1]);
      a.calledProcess = b;
      await channel.post();
      for (const socket of sockets) expect(await nextHint(socket)).toEqual(['timeline', 2]);
    });

    test('02 §10.3: a device removed at one process gets no hint at the other', async () => {
      const [laptop, phone] = [await at(b, ben, 'laptop'), await at(b)];
      await keepPhone();
      await channel.post();
      await arrives(phone, 1);
      expect(await receivedHints(laptop)).toEqual([]);
    });

    describe('while NATS is away', () => {
      beforeEach(lose);

      test('a new subscription gets hints within seconds, and when NATS returns', async () => {
        const socket = await at(b);
        await channel.post();
        await compared([b]);
        expect(await receivedHints(socket)).toEqual([['timeline', 1]]);
        await channel.post();
        await regain();
        expect(await receivedHints(socket)).toEqual([['timeline', 2]]);
      });

      test('06 §9.2: a hint that was sent is not sent again', async () => {
        const socket = await at(b);
        a.calledProcess = b;
        await channel.post();
        await arrives(socket, 1);
        await regain();
        expect(await receivedHints(socket)).toEqual([]);
      });

      test('02 §10.3: a removed device gets no hint', async () => {
        const [laptop, phone] = [await at(b, ben, 'laptop'), await at(b)];
        await keepPhone();
        a.calledProcess = b;
        await channel.post();
        await arrives(phone, 1);
        expect(await receivedHints(laptop)).toEqual([]);
        await regain();
        await channel.post();
        await arrives(phone, 2);
        expect(await receivedHints(laptop)).toEqual([]);
      });
    });

    test('a write at a process without NATS notifies the others in the end', async () => {
      proxy.cut();
      await whole(false, [a]);
      const socket = await at(b);
      await channel.post();
      expect(await receivedHints(socket)).toEqual([]);
      expect(b.server.context.bus.isConnected).toBe(true);
      a.clock.advance(60);
      await arrives(socket, 1);
    });

    test('concurrent writes at both processes: every connection gets the last head', async () => {
      const sockets = [await at(a), await at(b)];
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(
          both.map(async (process) => {
            const { token } = await process.logInDevice(ann);
            const answer = await process.http().call('channel.post', channel.newPost(), { token });
            expect(codeOf(answer)).toBe('ok');
          }),
        );
      }
      for (const socket of sockets) await arrives(socket, 10);
    });
  },
);
