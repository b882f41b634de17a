/** What every row of `bench:abuse` is, and what rows share. */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { loadTarget, PlainSocket, type TargetOptions, TestContext } from '@posthouse/conformance';
import type { MakeRelay } from './relays.ts';

/** What an attacker knows. */
export interface AttackTarget {
  /** HTTPS base address. */
  readonly https: string;
  /** Certificate authority, PEM. */
  readonly ca: string;
  /** Token of an account of the attacker, good for this address. */
  readonly token: string;
  /** Path and query of a page of about 900 KB that the token may read. */
  readonly page: string;
  /** Finds the relay, for accounts of the attacker's own. */
  readonly kit: TargetOptions;
  /** The relay's data folder, for what an operator does. */
  readonly folder: string;
  /** WebSocket of the server that does nothing, if that is attacked instead of the relay. */
  readonly bare?: string;
}

/** One row: an attack that runs in a process of its own until the signal is aborted. */
export interface Attack {
  /** One line that says what the attacker does. */
  readonly title: string;
  /** Whether it calls `begun` when it has made its accounts: what comes before is not measured. */
  readonly hasPreparation?: true;
  /** Makes the relay; by default one process on SQLite. */
  readonly relay?: MakeRelay;
  run(target: AttackTarget, signal: AbortSignal, begun: () => void): Promise<void>;
}

/** Opens what an account needs to call the relay. */
export async function openKit({ kit }: AttackTarget): Promise<TestContext> {
  return await TestContext.open(await loadTarget(kit), 'wss');
}

/**
 * Opens a TLS connection that reads nothing until it is resumed.
 * @param localAddress an address of loopback to connect from
 */
export async function openRaw(
  { https, ca }: AttackTarget,
  localAddress = '127.0.0.1',
): Promise<TLSSocket> {
  const { hostname, port } = new URL(https);
  const socket = connect({ host: hostname, port: Number(port), ca, ...{ localAddress } });
  socket.on('error', () => {});
  await Promise.race([once(socket, 'secureConnect'), once(socket, 'close')]);
  return socket;
}

/** Opens a WebSocket by hand, which reads nothing after the handshake. */
export async function openWebSocket(target: AttackTarget): Promise<TLSSocket> {
  const socket = await openRaw(target);
  const { host, pathname } = new URL(target.https);
  socket.write(
    `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  await Promise.race([once(socket, 'data'), once(socket, 'close')]);
  socket.pause();
  return socket;
}

/** Opens several connections, one after another; those that fail are left out. */
export async function openSeveral(
  count: number,
  open: () => Promise<TLSSocket>,
  signal: AbortSignal,
): Promise<TLSSocket[]> {
  const sockets: TLSSocket[] = [];
  while (sockets.length < count && !signal.aborted) sockets.push(await open());
  return sockets.filter(({ destroyed }) => !destroyed);
}

/** Encodes a masked frame of a client; the mask is zero. */
export function frame(opcode: number, payload: Buffer, isLast = true): Buffer {
  const length = payload.length;
  const head =
    length < 126
      ? Buffer.from([(isLast ? 0x80 : 0) | opcode, 0x80 | length])
      : Buffer.alloc(10, Buffer.from([(isLast ? 0x80 : 0) | opcode, 0x80 | 127]));
  if (length >= 126) head.fill(0, 2).writeUInt32BE(length, 6);
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

/** As much as one connection receives at once: an address owes all that it can owe for it. */
export const emptyPings = Buffer.concat(
  Array.from({ length: 10_922 }, () => frame(9, Buffer.alloc(0))),
);

/** Writes the same bytes on every connection as fast as each of them takes them. */
export async function flood(
  sockets: readonly TLSSocket[],
  bytes: Buffer,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const socket of sockets) {
      if (!socket.destroyed && socket.writableLength === 0) socket.write(bytes);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Registers an account and opens a WebSocket with a session of its device. */
export async function openSession(context: TestContext) {
  const account = context.account();
  const device = await account.device();
  await context.register(account, [device]);
  const caller = await context.wss();
  await context.authenticateDevice(caller, device);
  return { caller, device };
}

/**
 * Makes calls on one WebSocket: a new one for each answer, whatever the answer is. If a server that does
 * nothing is attacked, they are made there.
 */
export async function hammer(
  target: AttackTarget,
  socket: PlainSocket,
  { signal, call, inFlight = 16 }: Hammering,
): Promise<void> {
  const attacked =
    target.bare === undefined ? socket : await PlainSocket.open(target.bare, target.ca);
  let id = 0;
  const next = () => {
    id += 1;
    attacked.send(JSON.stringify({ jsonrpc: '2.0', id, ...call(id) }));
  };
  attacked.listen((text) => {
    if (!signal.aborted && text.includes('"id":')) next();
  });
  for (let count = 0; count < inFlight; count += 1) next();
}

interface Hammering {
  readonly signal: AbortSignal;
  /** Returns the call with an ID. */
  readonly call: (id: number) => { readonly method: string; readonly params: object };
  /** Calls under way at once. */
  readonly inFlight?: number;
}

/** Runs the same work several times at once, again and again. */
export async function repeat(
  count: number,
  work: (worker: number) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const run = async (worker: number) => {
    while (!signal.aborted) await work(worker);
  };
  await Promise.all(Array.from({ length: count }, (_, worker) => run(worker)));
}

/** Waits until the signal is aborted. */
export async function hold(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
