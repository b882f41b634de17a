import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { pino } from 'pino';
import { beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { BlockedAddresses } from '../../src/transport/blocked-addresses.ts';
import { ClientAddresses } from '../../src/transport/client-addresses.ts';
import { ConnectionTable } from '../../src/transport/connection-table.ts';
import { fullTurns, turn } from '../support/full-turns.ts';

/** 02 §18: which connection makes room for a new one. */

class FakeSocket extends EventEmitter {
  static ports = 0;
  readonly remotePort = ++FakeSocket.ports;
  destroyed = false;
  readonly remoteAddress: string;
  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }
  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

let clients: ClientAddresses;
let table: ConnectionTable;
let blocked: string[];
const blocks = {
  get hasAddresses() {
    return blocked.length > 0;
  },
  hasAddress: (address: string) => blocked.includes(address),
};
beforeEach(() => {
  blocked = [];
  const limits = {
    ...defaultLimits,
    ...{ connections: 6, strangerConnections: 4, connectionsPerAddress: 3 },
  };
  clients = new ClientAddresses(['192.0.2.99', '2001:db8:0:1::99']);
  table = new ConnectionTable({
    context: { limits, log: pino({ level: 'silent' }), metrics: new Metrics() },
    clients,
    blocked: new BlockedAddresses(blocks, clients),
  });
});

function connect(address: string, hasSession = false): FakeSocket {
  const socket = new FakeSocket(address);
  table.add(socket as unknown as Socket);
  table.setSession(socket as unknown as Socket, hasSession);
  return socket;
}

const destroyed = (sockets: readonly FakeSocket[]) => sockets.map((socket) => socket.destroyed);

test('IPv6 addresses of one /64 are one address', () => {
  const sockets = ['1', '2', '3', '4'].map((last) => connect(`2001:db8:1:2::${last}`));
  expect(destroyed(sockets)).toEqual([true, false, false, false]);
  expect(connect('2001:db8:1:3::1').destroyed).toBe(false);
});

test('if strangers have their share, the oldest one of the address with most ends', () => {
  const [few, ...many] = ['192.0.2.1', '192.0.2.2', '192.0.2.2', '192.0.2.2'].map((address) =>
    connect(address),
  );
  expect(connect('192.0.2.3').destroyed).toBe(false);
  expect(destroyed([few as FakeSocket, ...many])).toEqual([false, true, false, false]);
});

test('connections with a session have the rest, and are not replaced by strangers', () => {
  const bound = ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map((address) => connect(address, true));
  const strangers = ['4', '5', '6', '7'].map((last) => connect(`192.0.2.${last}`));
  expect(destroyed(bound)).toEqual([false, false, false]);
  expect(destroyed(strangers)).toEqual([true, false, false, false]);
});

test('an address full of sessions gets no more; a full relay takes from the address with most', () => {
  const ones = [1, 2, 3].map(() => connect('192.0.2.1', true));
  expect(connect('192.0.2.1').destroyed).toBe(true);
  const others = ['2', '3', '4'].map((last) => connect(`192.0.2.${last}`, true));
  expect(connect('192.0.2.5').destroyed).toBe(false);
  expect(destroyed(ones)).toEqual([true, false, false]);
  expect(destroyed(others)).toEqual([false, false, false]);
});

test('the connections of a proxy have no limit until they are assigned to clients', () => {
  const proxied = [1, 2, 3, 4].map(() => connect('192.0.2.99'));
  expect(destroyed(proxied)).toEqual([false, false, false, false]);
  const assigned = proxied.map((socket) => {
    const end = () => socket.destroy();
    return table.assign(socket as unknown as Socket, { client: '192.0.2.1', end });
  });
  expect(assigned).toEqual([true, true, true, true]);
  expect(destroyed(proxied)).toEqual([true, false, false, false]);
});

test('connections that ended leave room', () => {
  for (let count = 0; count < 10; count += 1) connect('192.0.2.1').destroy();
  const sockets = [1, 2, 3].map(() => connect('192.0.2.1'));
  expect(destroyed(sockets)).toEqual([false, false, false]);
});

test('connections of a blocked address end, and it gets no new ones; a trusted proxy is never blocked', async () => {
  const open = ['192.0.2.1', '192.0.2.2'].map((address) => connect(address));
  const proxy = connect('192.0.2.99');
  table.assign(proxy as unknown as Socket, {
    client: '2001:db8:0:1::7',
    end: () => proxy.destroy(),
  });
  blocked = ['192.0.2.1', '192.0.2.99', '2001:db8:0:1::/64'];
  await table.endBlocked();
  expect(destroyed([...open, proxy])).toEqual([true, false, true]);
  expect(connect('192.0.2.1').destroyed).toBe(true);
  expect(connect('::ffff:192.0.2.1').destroyed).toBe(true);
  expect(connect('2001:db8:0:1:1::7').destroyed).toBe(true);
  expect(connect('192.0.2.99').destroyed).toBe(false);
});

test('nor is a trusted proxy with an IPv6 address, in a network that is blocked; its clients there are', async () => {
  const named = (client: string) => {
    const socket = connect('2001:db8:0:1::99');
    table.assign(socket as unknown as Socket, { client, end: () => socket.destroy() });
    return socket;
  };
  // Without a header that names a client, the proxy is its own.
  const sockets = ['2001:db8:0:1::99', '2001:db8:0:1::7', '2001:db8:0:2::7'].map(named);
  const later = connect('2001:db8:0:1::9');
  blocked = ['2001:db8:0:1::/64'];
  clients.trust(['2001:db8:0:1::99', '2001:db8:0:1::9']);
  await table.endBlocked();
  expect(destroyed([...sockets, later])).toEqual([false, true, false, false]);
  expect(connect('2001:db8:0:1::99').destroyed).toBe(false);
  expect(connect('2001:db8:0:1::8').destroyed).toBe(true);
  const asked = new BlockedAddresses(blocks, clients);
  const isBlocked = (from: string) =>
    asked.hasClient({
      socket: { remoteAddress: '2001:db8:0:1::99' } as Socket,
      headers: from === '' ? {} : { 'x-forwarded-for': from },
    });
  expect(['', '2001:db8:0:1::7', '2001:db8:0:2::7'].map(isBlocked)).toEqual([false, true, false]);
});

test.each([
  ['the relay stops', () => table.terminate()],
  [
    'their addresses are blocked',
    () => {
      blocked = ['192.0.2.1', '192.0.2.2'];
      return table.endBlocked();
    },
  ],
])('0019: of three connections one ends in each turn when %s', async (_, end) => {
  const sockets = ['192.0.2.1', '192.0.2.1', '192.0.2.2'].map((address) => connect(address));
  using _full = fullTurns();
  const ended = end();
  for (const count of [0, 1, 2, 3]) {
    expect(destroyed(sockets).filter(Boolean)).toHaveLength(count);
    await turn();
  }
  await ended;
});

test('02 §18: a connection learns why it ends', async () => {
  const named = (client: string) => {
    const socket = connect(client);
    const end = vi.fn(() => socket.destroy());
    table.assign(socket as unknown as Socket, { client, end });
    return end;
  };
  const [first, second, third] = ['192.0.2.1', '192.0.2.1', '192.0.2.2'].map(named);
  for (let count = 0; count < 2; count += 1) connect('192.0.2.1');
  expect(first).toHaveBeenCalledExactlyOnceWith('too many connections');
  blocked = ['192.0.2.1'];
  await table.endBlocked();
  expect(second).toHaveBeenCalledExactlyOnceWith('the address is blocked');
  await table.terminate();
  expect(third).toHaveBeenCalledExactlyOnceWith('relay stops');
});
