/** Groups at three processes of one relay: who hears at one what happened at another. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { nextHint, receivedHints } from '../fixtures/hints.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { TestNats, withoutNats } from '../support/nats.ts';
import { ServedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';
import { TcpProxy } from './tcp-proxy.ts';

const patience = { timeout: 20_000, interval: 20 };

describe.skipIf(withoutNats !== undefined)(`groups of one relay (${withoutNats ?? 'real'})`, () => {
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
    const config = {
      public: { https: ['https://127.0.0.1:8443/svc/v1'] },
      host: { groups: true },
      limits: { groupRecoveryWait: 500 },
    };
    a = parts.use(await ServedRelay.start({ ...config, bus: { nats: proxy.url } }));
    b = parts.use(await a.startProcess({ bus: { nats: nats.url } }));
    c = parts.use(await a.startProcess({ bus: { nats: nats.url } }));
    all = [a, b, c];
  });
  afterAll(() => parts.disposeAsync());

  let people = 0;
  /** Owner, and two members of whom the first may go; the first has a second device. */
  let ann: Person;
  let ben: Person;
  let cem: Person;
  let group: TestGroup;

  beforeEach(async () => {
    people += 1;
    ann = await a.register(`ann ${people}`);
    ben = await a.register(`ben ${people}`, ['phone', 'laptop']);
    cem = await a.register(`cem ${people}`);
    group = await TestGroup.create(a, ann);
    await group.admit(ben, cem);
  });
  afterEach(async () => {
    a.calledProcess = a;
    proxy.restore();
    await nats.start();
    await whole(true, all);
  });

  const whole = async (is: boolean, processes: ServedRelay[]) => {
    for (const { server } of processes) {
      await vi.waitFor(() => expect(server.context.bus.isConnected).toBe(is), patience);
    }
  };
  const lose = async () => {
    await nats.stop();
    await whole(false, all);
    await compared(all);
  };
  const regain = async () => {
    await nats.start();
    await whole(true, all);
    await compared(all);
  };
  /** Resolves when each has compared its connections with storage from beginning to end. */
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
  const at = (process: ServedRelay, person: Person, device = 'phone') =>
    process.withGroups(person, [group], { device });
  /** Waits until a hint of this head has come. */
  const arrives = async (socket: WebSocketClient, head: number) => {
    for (;;) {
      const [name, is] = await nextHint(socket);
      if (name === 'timeline' && is === head) return;
    }
  };
  const keepPhone = async () => {
    const { token } = await a.logInAccount(ben);
    const state = await ben.state({ devices: ['phone'] });
    expect(codeOf(await a.http().call('device.state.publish', state, { token }))).toBe('ok');
  };

  test('05 §15: a write at one process notifies connections at the others', async () => {
    const owners = await Promise.all(all.map((process) => at(process, ann)));
    const members = await Promise.all(all.map((process) => at(process, cem)));
    await group.update({ name: 'other' });
    for (const socket of [...owners, ...members]) {
      expect(await nextHint(socket)).toEqual(['timeline', 2]);
    }
    a.calledProcess = b;
    await group.requestRecovery(ann);
    for (const socket of owners) expect(await nextHint(socket)).toEqual(['recoveries']);
    for (const socket of members) expect(await receivedHints(socket)).toEqual([]);
  });

  test('05 §15.4: the expiry of a request is notified at every process', async () => {
    await group.requestRecovery(ben);
    const owners = await Promise.all(all.map((process) => at(process, ann)));
    a.clock.advance(500);
    for (const socket of owners) expect(await nextHint(socket)).toEqual(['recoveries']);
  });

  test('an account removed at one process is not notified at another', async () => {
    const [left, stays] = [await at(b, ben), await at(b, cem)];
    await group.remove([ben]);
    await arrives(stays, 2);
    a.calledProcess = c;
    await group.update({ name: 'later' });
    await arrives(stays, 3);
    expect(await receivedHints(left)).toEqual([]);
  });

  describe('while NATS is away', () => {
    beforeEach(lose);

    test.each(['leave', 'remove', 'ban'] as const)(
      'after a %s at one process, nothing is heard at another of what that does itself',
      async (how) => {
        const [left, stays] = [await at(b, ben), await at(b, cem)];
        if (how === 'leave') await group.leave(ben);
        else await group[how]([ben]);
        a.calledProcess = b;
        await group.update({ name: 'later' });
        await arrives(stays, 3);
        expect(await receivedHints(left)).toEqual([]);
        await regain();
        a.calledProcess = a;
        await group.update({ name: 'last' });
        await arrives(stays, 4);
        expect(await receivedHints(left)).toEqual([]);
      },
    );

    test('02 §10.3: a removed device is not notified', async () => {
      const [laptop, phone] = [await at(b, ben, 'laptop'), await at(b, ben)];
      await keepPhone();
      a.calledProcess = b;
      await group.update({ name: 'later' });
      await arrives(phone, 2);
      expect(await receivedHints(laptop)).toEqual([]);
      await regain();
      await group.update({ name: 'last' });
      await arrives(phone, 3);
      expect(await receivedHints(laptop)).toEqual([]);
    });

    test('heads are notified within seconds, and when it returns', async () => {
      const socket = await at(b, cem);
      await group.update({ name: 'one' });
      await compared([b]);
      expect(await receivedHints(socket)).toContainEqual(['timeline', 2]);
      await group.update({ name: 'two' });
      await regain();
      expect(await receivedHints(socket)).toContainEqual(['timeline', 3]);
    });

    test('02 §12.3 rule 6: when it returns managers are notified of their lists', async () => {
      const [owner, member] = [await at(b, ann), await at(b, cem)];
      await receivedHints(owner);
      await group.requestRecovery(ann);
      await regain();
      const heard = await receivedHints(owner);
      expect(heard).toContainEqual(['recoveries']);
      expect(heard).toContainEqual(['applications']);
      expect(await receivedHints(member)).toEqual([]);
    });
  });

  describe('a process that is cut off alone', () => {
    beforeEach(async () => {
      proxy.cut();
      await whole(false, [a]);
    });

    test('an account that it removes is not notified at the others, which know nothing of the removal', async () => {
      const [left, stays] = [await at(b, ben), await at(b, cem)];
      await group.remove([ben]);
      a.calledProcess = c;
      await group.update({ name: 'later' });
      await arrives(stays, 3);
      expect(await receivedHints(left)).toEqual([]);
      expect(b.server.context.bus.isConnected).toBe(true);
    });

    test('a device that it removes is not notified once its access has ended', async () => {
      const laptop = await at(b, ben, 'laptop');
      const phone = await at(b, ben);
      await keepPhone();
      await vi.waitFor(async () => {
        const noted = await b.server.context.storage.read((tx) =>
          tx.get('SELECT 1 AS one FROM inactive_devices WHERE account = ?', ben.account),
        );
        expect(noted).toBe(undefined);
      }, patience);
      a.calledProcess = c;
      await group.update({ name: 'later' });
      await arrives(phone, 2);
      expect(await receivedHints(laptop)).toEqual([]);
    });

    test('its writes are notified in the end, even if it never reconnects', async () => {
      const socket = await at(b, cem);
      await group.update({ name: 'other' });
      expect(await receivedHints(socket)).toEqual([]);
      a.clock.advance(60);
      await arrives(socket, 2);
    });
  });

  test('two processes open one interval of a device concurrently', async () => {
    const sockets = await Promise.all([b, c].map((process) => at(process, ben, 'laptop')));
    expect(sockets).toHaveLength(2);
    const rows = await a.server.context.storage.read((tx) =>
      tx.all(
        'SELECT message_from FROM group_intervals WHERE device_id = ?',
        ben.device('laptop').deviceId,
      ),
    );
    expect(rows).toEqual([{ message_from: 2 }]);
  });

  test('concurrent subscription and removal of a device leave no interval open', async () => {
    for (let round = 0; round < 10; round += 1) {
      const socket = await b.socket();
      await b.bindDevice(socket, ben.device('laptop'));
      const { groupId } = group;
      await Promise.all([socket.call('group.subscribe', { group_ids: [groupId] }), keepPhone()]);
      await vi.waitFor(async () => {
        const open = await a.server.context.storage.read((tx) =>
          tx.get(
            `SELECT 1 AS one FROM group_intervals
              WHERE device_id = ? AND message_to IS NULL`,
            ben.device('laptop').deviceId,
          ),
        );
        expect(open).toBe(undefined);
      }, patience);
      const { token } = await a.logInAccount(ben);
      const both = await ben.state();
      expect(codeOf(await a.http().call('device.state.publish', both, { token }))).toBe('ok');
    }
  });
});
