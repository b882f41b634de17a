/** Three processes of one relay: one database, one NATS server, one public address. */
import { connect } from '@nats-io/transport-node';
import type { Challenge, MethodName } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Notice } from '../../src/dispatch/notice.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { RpcNotification, WebSocketClient } from '../support/websocket.ts';
import { TcpProxy } from './tcp-proxy.ts';

const unauthorized = -32001;
const patience = { timeout: 20_000, interval: 20 };

describe.skipIf(withoutNats !== undefined)(
  `processes of one relay (${withoutNats ?? 'real'})`,
  () => {
    let nats: TestNats;
    let proxy: TcpProxy;
    /** The first is connected to NATS by the proxy. */
    let a: ServedRelay;
    let b: ServedRelay;
    let c: ServedRelay;
    let all: ServedRelay[];
    const parts = new AsyncDisposableStack();

    beforeAll(async () => {
      nats = parts.use(await TestNats.start());
      proxy = parts.use(await TcpProxy.start(nats.url));
      const address = 'https://127.0.0.1:8443/svc/v1';
      a = parts.use(
        await ServedRelay.start({ public: { https: [address] }, bus: { nats: proxy.url } }),
      );
      b = parts.use(await a.startProcess({ bus: { nats: nats.url } }));
      c = parts.use(await a.startProcess({ bus: { nats: nats.url } }));
      all = [a, b, c];
    });
    afterAll(() => parts.disposeAsync());

    let people = 0;
    let ann: Person;
    let ben: Person;

    beforeEach(async () => {
      people += 1;
      ann = await a.register(`ann ${people}`, ['phone', 'laptop']);
      ben = await a.register(`ben ${people}`);
      await ann.publishState();
      await heardFrom(a);
    });

    afterEach(async () => {
      proxy.restore();
      await nats.start();
      await whole(true, all);
    });

    const whole = async (is: boolean, processes: ServedRelay[]) => {
      for (const { server } of processes) {
        await vi.waitFor(() => expect(server.context.bus.isConnected).toBe(is), patience);
      }
    };

    /** Resolves when the others have heard what a process published so far. */
    const heardFrom = async (from: ServedRelay): Promise<void> => {
      const marker = { kind: 'revoked', account: crypto.randomUUID(), deviceIds: [] } as const;
      const others = all.filter((process) => process !== from);
      const heard = others.map(({ server }) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        server.context.bus.subscribe((notice) => {
          if ('account' in notice && notice.account === marker.account) resolve();
        });
        return promise;
      });
      from.server.context.bus.publish([marker]);
      await Promise.all(heard);
    };

    /** Resolves when each has compared its connections with storage once more. */
    const caughtUp = async (processes: ServedRelay[], cause: () => Promise<void> | void) => {
      const times = () => processes.map(({ server }) => server.context.metrics.value('resyncs'));
      const before = times();
      await cause();
      await vi.waitFor(() => {
        for (const [index, count] of times().entries()) {
          expect(count).toBeGreaterThan(before[index] as number);
        }
      }, patience);
    };

    const lose = () =>
      caughtUp(all, async () => {
        await nats.stop();
        await whole(false, all);
      });
    const regain = () =>
      caughtUp(all, async () => {
        await nats.start();
        await whole(true, all);
      });

    const bound = async (process: ServedRelay, person: Person, device = 'phone') => {
      const socket = await process.socket();
      expect(await process.bindDevice(socket, person.device(device))).toHaveProperty('result');
      return socket;
    };

    /** A message of the person to itself, accepted at this process; its place in the timeline. */
    const note = async (process: ServedRelay, person: Person): Promise<number> => {
      const { token } = await process.logInDevice(person);
      const answer = await process.http().call('message.send', person.message(person), { token });
      expect(codeOf(answer)).toBe('ok');
      const page = await process.http().call('message.timeline.sync', { limit: 100 }, { token });
      return JSON.parse(page.text).items.at(-1).sequence;
    };

    const publish = async (process: ServedRelay, person: Person, devices?: string[]) => {
      const { token } = await process.logInAccount(person);
      const state = await person.state(devices === undefined ? {} : { devices });
      const answer = await process.http().call('device.state.publish', state, { token });
      expect(codeOf(answer)).toBe('ok');
      return state.revision;
    };

    const sync = async (process: ServedRelay, token: string) =>
      codeOf(await process.http().call('message.timeline.sync', {}, { token }));

    const changed = (head: number) => ({
      jsonrpc: '2.0',
      method: 'message.timeline.changed',
      params: { head },
    });
    const stateChanged = (revision: number) => ({
      jsonrpc: '2.0',
      method: 'device.state.changed',
      params: { revision },
    });
    const heads = (heard: readonly RpcNotification[]) =>
      heard.flatMap(({ params }) => ('head' in params ? [params.head] : []));

    describe('while NATS is there', () => {
      test('04 §19: what one process accepts, connections at the others hear', async () => {
        const [atA, atB, atC] = await Promise.all(all.map((process) => bound(process, ann)));
        const head = await note(a, ann);
        for (const socket of [atA, atB, atC]) {
          expect(await socket?.notification()).toEqual(changed(head));
        }
      });

      test('03 §6: a state published at one is heard at the others', async () => {
        const atB = await bound(b, ann);
        expect(await atB.notificationsSoFar()).toEqual([]);
        const revision = await publish(a, ann);
        expect(await atB.notification()).toEqual(stateChanged(revision));
      });

      test('02 §9.2: a challenge of one is used at another, once in all', async () => {
        const { nonce } = await a.challenge(ann.account);
        const proof = a.deviceProof(ann.device(), nonce);
        expect(codeOf(await b.http().call('auth.device.verify', proof))).toBe('ok');
        for (const process of all) {
          const again = await process.http().call('auth.device.verify', proof);
          expect(codeOf(again)).toBe('unauthorized');
        }
      });

      test('02 §9.2: of attempts at all processes at once, one has the challenge', async () => {
        for (let round = 0; round < 5; round += 1) {
          const { nonce } = await a.challenge(ann.account);
          const proof = a.deviceProof(ann.device(), nonce);
          const answers = await Promise.all(
            all.map((process) => process.http().call('auth.device.verify', proof)),
          );
          const codes = answers.map(codeOf).sort();
          expect(codes).toEqual(['ok', 'unauthorized', 'unauthorized']);
        }
      });

      test('02 §10.4: a token is good at every process', async () => {
        const { token } = await a.logInDevice(ann);
        for (const process of all) expect(await sync(process, token)).toBe('ok');
      });

      test('02 §10.2: sessions of a shortened certificate end at every process', async () => {
        const atB = await bound(b, ann, 'laptop');
        const phone = await bound(b, ann);
        const { token } = await c.logInDevice(ann, 'laptop');
        expect(await sync(c, token)).toBe('ok');
        await ann.addDevice('laptop', { expiresAt: a.clock.now() + 600 });
        const revision = await publish(a, ann);
        expect(await phone.notification()).toEqual(stateChanged(revision));
        expect(await atB.notification()).toEqual(stateChanged(revision));
        await heardFrom(a);
        a.clock.advance(600);
        expect(await atB.call('relay.info')).toHaveProperty('result');
        expect(await b.bindDevice(atB, ann.device('laptop'))).toHaveProperty(
          'error.code',
          unauthorized,
        );
        expect(await sync(c, token)).toBe('unauthorized');
        await note(a, ann);
        await phone.notification();
        expect(await atB.notificationsSoFar()).toEqual([]);
      });

      test('the removed device is cut off before the hint goes out', async () => {
        const heard: Notice[] = [];
        using _listening = c.server.context.bus.subscribe((notice) => heard.push(notice));
        await publish(a, ann, ['phone']);
        await vi.waitFor(() => expect(heard).toHaveLength(2), patience);
        expect(heard.map(({ kind }) => kind)).toEqual(['revoked', 'device-state']);
      });

      test('repeated resyncs send no hint twice', async () => {
        const atB = await bound(b, ann);
        const head = await note(a, ann);
        expect(await atB.notification()).toEqual(changed(head));
        await caughtUp(all, () => a.clock.advance(60));
        const first = await atB.notificationsSoFar();
        expect(heads(first)).toEqual([]);
        for (let round = 0; round < 3; round += 1) {
          await caughtUp(all, () => a.clock.advance(60));
          expect(await atB.notificationsSoFar()).toEqual([]);
        }
      });

      test('junk on the subject stops nothing', async () => {
        const atB = await bound(b, ann);
        const stranger = await connect({ servers: nats.url.replace('nats://', '') });
        const { network, identity, metrics } = b.server.context;
        const subject = `posthouse.${network.context}.${network.word}.${identity.relayId}.notices`;
        for (const text of ['', 'null', '[{}]', '[{"kind":"revoked"}]']) {
          stranger.publish(subject, text);
        }
        await stranger.drain();
        await vi.waitFor(() => expect(metrics.value('notices_invalid')).toBe(4), patience);
        const head = await note(a, ann);
        expect(await atB.notification()).toEqual(changed(head));
      });
    });

    describe.each(['there', 'away'] as const)('02 §10.3: a removed device, NATS %s', (where) => {
      beforeEach(() => (where === 'away' ? lose() : undefined));
      afterEach(() => (where === 'away' ? regain() : undefined));

      /** Removes the laptop, and waits until the other processes have heard, where they can. */
      const remove = async (): Promise<void> => {
        await publish(a, ann, ['phone']);
        if (where === 'there') await heardFrom(a);
      };

      test('its connections are dead at every process, at once', async () => {
        const sockets = await Promise.all(all.map((process) => bound(process, ann, 'laptop')));
        await remove();
        for (const [index, socket] of sockets.entries()) {
          const answer = await socket.call('message.timeline.sync', {});
          expect(answer).toHaveProperty('error.code', unauthorized);
          // Dead is dead: it authenticates there no more, whatever became of the device.
          expect(socket.socket.readyState).toBe(socket.socket.OPEN);
          expect(
            await (all[index] as ServedRelay).bindDevice(socket, ann.device('laptop')),
          ).toHaveProperty('error.code', unauthorized);
        }
      });

      test('its tokens are good at no process, also where they were just used', async () => {
        const { token } = await c.logInDevice(ann, 'laptop');
        const phone = await c.logInDevice(ann, 'phone');
        for (const process of all) expect(await sync(process, token)).toBe('ok');
        await remove();
        for (const process of all) {
          expect(await sync(process, token)).toBe('unauthorized');
          expect(await sync(process, phone.token)).toBe('ok');
        }
      });

      test('it comes back by new authentication only', async () => {
        const atB = await bound(b, ann, 'laptop');
        const { token } = await b.logInDevice(ann, 'laptop');
        expect(await sync(b, token)).toBe('ok');
        await remove();
        await publish(a, ann);
        expect(await sync(b, token)).toBe('unauthorized');
        expect(await atB.call('message.timeline.sync', {})).toHaveProperty(
          'error.code',
          unauthorized,
        );
        const renewal = await b.bindDevice(atB, ann.device('laptop'));
        expect(renewal).toHaveProperty('error.code', unauthorized);
        const again = await bound(b, ann, 'laptop');
        expect(await again.call('message.timeline.sync', {})).toHaveProperty('result');
      });

      test('it hears of nothing that came after', async () => {
        const laptops = await Promise.all(all.map((process) => bound(process, ann, 'laptop')));
        const phones = await Promise.all(all.map((process) => bound(process, ann)));
        await remove();
        const last = await Promise.all(all.map((process) => note(process, ann)));
        if (where === 'away') {
          await regain();
          for (const phone of phones) await arrives(phone, Math.max(...last));
          await lose();
        } else {
          for (const phone of phones) await arrives(phone, Math.max(...last));
        }
        for (const laptop of laptops) expect(await laptop.notificationsSoFar()).toEqual([]);
      });
    });

    /** Waits for a hint of this head, past others. */
    const arrives = async (socket: WebSocketClient, head: number): Promise<void> => {
      for (;;) {
        const { params } = await socket.notification();
        if (params.head === head) return;
      }
    };

    describe('while NATS is away', () => {
      test('a token in memory is not believed', async () => {
        const { token } = await b.logInDevice(ann);
        expect(await sync(b, token)).toBe('ok');
        expect(b.server.context.sessions.isKnown(token)).toBe(true);
        await lose();
        expect(b.server.context.sessions.isCurrent).toBe(false);
        expect(await sync(b, token)).toBe('ok');
        expect(b.server.context.sessions.isCurrent).toBe(false);
        await regain();
        expect(b.server.context.sessions.isKnown(token)).toBe(false);
      });

      test('connections hear after its return what they missed, without anything new', async () => {
        const [atB, atC] = [await bound(b, ann), await bound(c, ben)];
        await lose();
        for (const socket of [atB, atC]) await socket.notificationsSoFar();
        await note(a, ann);
        const head = await note(a, ann);
        const revision = await publish(a, ann);
        expect(await atB.notificationsSoFar()).toEqual([]);
        await regain();
        const heard = await atB.notificationsSoFar();
        expect(heard).toHaveLength(2);
        expect(heard).toContainEqual(changed(head));
        expect(heard).toContainEqual(stateChanged(revision));
        expect(await atC.notificationsSoFar()).toEqual([]);
      });

      test('they hear of it within seconds all the same', async () => {
        const atB = await bound(b, ann);
        await lose();
        const head = await note(a, ann);
        await caughtUp(all, () => a.clock.advance(5));
        expect(heads(await atB.notificationsSoFar())).toEqual([head]);
        const next = await note(a, ann);
        await caughtUp(all, () => a.clock.advance(5));
        expect(heads(await atB.notificationsSoFar())).toEqual([next]);
        await regain();
        expect(heads(await atB.notificationsSoFar())).toEqual([]);
      });

      test('02 §10.6 rule 4: a session that ended elsewhere is not renewed', async () => {
        const atB = await bound(b, ann, 'laptop');
        await lose();
        await publish(a, ann, ['phone']);
        await publish(a, ann);
        const renewal = await b.bindDevice(atB, ann.device('laptop'));
        expect(renewal).toHaveProperty('error.code', unauthorized);
      });

      test('02 §10.2: a session shortened elsewhere ends when it must', async () => {
        const atB = await bound(b, ann, 'laptop');
        const { token } = await c.logInDevice(ann, 'laptop');
        await lose();
        await ann.addDevice('laptop', { expiresAt: a.clock.now() + 600 });
        await publish(a, ann);
        await ann.addDevice('laptop');
        await publish(a, ann);
        a.clock.advance(599);
        expect(await atB.call('message.timeline.sync', {})).toHaveProperty('result');
        expect(await sync(c, token)).toBe('ok');
        a.clock.advance(1);
        expect(await atB.call('message.timeline.sync', {})).toHaveProperty(
          'error.code',
          unauthorized,
        );
        expect(await sync(c, token)).toBe('unauthorized');
      });

      test('what ended meanwhile stays ended when it is back', async () => {
        const removed = await bound(b, ann, 'laptop');
        const shortened = await bound(b, ben);
        await lose();
        await publish(a, ann, ['phone']);
        await publish(a, ann);
        await ben.addDevice('phone', { expiresAt: a.clock.now() + 600 });
        await publish(a, ben);
        await ben.addDevice('phone');
        await publish(a, ben);
        await regain();
        const after = async (socket: WebSocketClient) =>
          (await socket.call('message.timeline.sync', {})).error?.code;
        expect(await after(removed)).toBe(unauthorized);
        a.clock.advance(599);
        expect(await after(shortened)).toBeUndefined();
        a.clock.advance(1);
        expect(await after(shortened)).toBe(unauthorized);
      });

      test('nothing is kept for it', async () => {
        await lose();
        const { bus, metrics } = a.server.context;
        const before = metrics.value('notices_dropped');
        const notices = Array.from({ length: 100 }, (_, head) => ann.timelineNotice(head));
        for (let round = 0; round < 1_000; round += 1) bus.publish(notices);
        expect(metrics.value('notices_dropped')).toBe(before + 100_000);
        expect((bus as unknown as { unacknowledgedBytes: number }).unacknowledgedBytes).toBe(0);
      });

      test('processes stop and start', async () => {
        await lose();
        await c.restart();
        const atC = await bound(c, ann);
        expect(await atC.call('message.timeline.sync', {})).toHaveProperty('result');
        const head = await note(c, ann);
        expect(await atC.notification()).toEqual(changed(head));
      });
    });

    describe('a process that is cut off alone', () => {
      beforeEach(() =>
        caughtUp([a], async () => {
          proxy.cut();
          await whole(false, [a]);
        }),
      );

      test('has the others catch up when it is back', async () => {
        const [atA, atB] = [await bound(a, ann), await bound(b, ann)];
        const head = await note(a, ann);
        expect(await atA.notification()).toEqual(changed(head));
        expect(await atB.notificationsSoFar()).toEqual([]);
        await caughtUp(all, () => proxy.restore());
        expect(heads(await atB.notificationsSoFar())).toEqual([head]);
        expect(heads(await atA.notificationsSoFar())).toEqual([]);
      });

      test('hears itself what the others did, within seconds and on its return', async () => {
        const atA = await bound(a, ann);
        const head = await note(b, ann);
        await caughtUp([a], () => a.clock.advance(5));
        expect(heads(await atA.notificationsSoFar())).toEqual([head]);
        const next = await note(b, ann);
        await caughtUp([a], () => proxy.restore());
        expect(heads(await atA.notificationsSoFar())).toEqual([next]);
      });

      test('is made up for by the others themselves, in the end: it may never be back', async () => {
        const atB = await bound(b, ann);
        const head = await note(a, ann);
        await caughtUp([b], () => a.clock.advance(60));
        expect(heads(await atB.notificationsSoFar())).toEqual([head]);
      });

      test('02 §10.3: whom it removes can do nothing at the others, and hears nothing', async () => {
        const laptop = await bound(b, ann, 'laptop');
        const phone = await bound(b, ann);
        const { token } = await b.logInDevice(ann, 'laptop');
        expect(await sync(b, token)).toBe('ok');
        await publish(a, ann, ['phone']);
        // The others know nothing of it yet: their memory has the session, their storage no device.
        expect(b.server.context.sessions.isKnown(token)).toBe(true);
        for (const [method, params] of deviceMethods()) {
          const answer = await laptop.call(method, params);
          expect([method, answer.error?.code]).toEqual([method, unauthorized]);
          const http = await b.http().call(method, params, { token });
          expect([method, codeOf(http)]).toEqual([method, 'unauthorized']);
        }
        const head = await note(c, ann);
        await arrives(phone, head);
        expect(await laptop.notificationsSoFar()).toEqual([]);
        await caughtUp(all, () => proxy.restore());
        expect(b.server.context.sessions.isKnown(token)).toBe(false);
        expect(await b.bindDevice(laptop, ann.device('laptop'))).toHaveProperty(
          'error.code',
          unauthorized,
        );
        expect(await laptop.notificationsSoFar()).toEqual([]);
      });

      /** Each method that a device session may call, with parameters that are good as such. */
      const deviceMethods = (): [MethodName, JsonObject][] => {
        const laptop = ann.message(ann, { device: 'laptop', boxes: ['phone'] });
        const { message_id } = laptop.envelope;
        return [
          ['message.timeline.sync', {}],
          ['message.delivery.status', { message_id }],
          ['message.send', laptop as unknown as JsonObject],
          ['profile.resolve', { account: ben.account }],
          ['device.state.resolve', { account: ben.account }],
          ['device.state.resolve', { account: ann.account }],
        ];
      };
    });

    test('in races of authentication and removal at different processes, no removed device is bound', async () => {
      for (let round = 0; round < 10; round += 1) {
        const socket = await b.socket();
        const { result } = await socket.call('auth.challenge', { account: ann.account });
        const proof = b.deviceProof(ann.device('laptop'), (result as Challenge).nonce);
        const [, revision] = await Promise.all([
          socket.call('auth.device.verify', proof),
          publish(a, ann, ['phone']),
        ]);
        expect(await socket.call('message.timeline.sync', {})).toHaveProperty(
          'error.code',
          unauthorized,
        );
        expect(await socket.notificationsSoFar()).not.toContainEqual(stateChanged(revision));
        await publish(c, ann);
      }
    });
  },
);
