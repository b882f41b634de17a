/**
 * Measures the wire between relays, always against js-libp2p in the same run: CPU of a call (both
 * ends are in this process), calls per second, handshakes, and the memory of an idle connection.
 *
 *   npm run bench:wire [-- --calls 2000 --connections 100]
 *
 * A call is one stream: a request frame, an answer frame of the same size. js-libp2p uses its own
 * Noise, with the descriptor added to the payload; its identify is not used.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PeerConnection, PeerHost } from '@posthouse/peer';
import {
  anyPort,
  echoProtocol,
  forever,
  hostOf,
  identityOf,
} from '../packages/peer/test/support/hosts.ts';
import { echoFrame, setDescriptor, startJsNode } from '../packages/peer/test/support/js-libp2p.ts';
import { count, readOptions } from './options.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const values = readOptions('npm run bench:wire', {
  calls: count(2_000),
  connections: count(100),
});
const { calls, connections } = values;

/** Microseconds of CPU of this process since a start. */
function cpuSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return user + system;
}

interface Measured {
  /** Microseconds of CPU of one call, both ends. */
  readonly cpu: number;
  readonly perSecond: number;
}

/** Makes calls, so many at once, after some that are not counted. */
async function measure(
  call: (message: Uint8Array) => Promise<void>,
  size: number,
  atOnce: number,
): Promise<Measured> {
  const message = Buffer.alloc(size, 'a call ');
  const count = Math.max(50, Math.floor(Math.min(calls, (calls * 6_000) / size)));
  const round = async (total: number) => {
    let left = total;
    const worker = async () => {
      while (left-- > 0) await call(message);
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };
  await round(Math.ceil(count / 4));
  const start = process.cpuUsage();
  const began = performance.now();
  await round(count);
  return { cpu: cpuSince(start) / count, perSecond: (count / (performance.now() - began)) * 1_000 };
}

async function ourCall(connection: PeerConnection<string>, message: Uint8Array): Promise<void> {
  const stream = await connection.openStream(echoProtocol, { signal: forever });
  await stream.writeFrame(message);
  stream.end();
  const answer = await stream.readFrame();
  if (answer?.length !== message.length) throw new Error('another answer');
  await stream.readFrame();
}

const line = (what: string, own: number, other: number, unit: string) =>
  console.log(
    `${what.padEnd(34)} ${own.toFixed(0).padStart(7)} ${unit.padEnd(4)} js-libp2p ${other.toFixed(0).padStart(7)}   ratio ${(other / own).toFixed(2)}`,
  );

setDescriptor('{"relay":"js"}');
await using parts = new AsyncDisposableStack();
const listener = parts.use(hostOf(1));
const dialer: PeerHost<string> = parts.use(hostOf(2));
const address = {
  ...(await listener.listen(anyPort)),
  peerId: identityOf(1).peerId,
  signal: forever,
};
const connection = await dialer.dial(address);
const jsListener = parts.use(await startJsNode());
const jsDialer = parts.use(await startJsNode());
await jsListener.serveEcho(echoProtocol);
const jsId = jsListener.libp2p.peerId.toString();
const jsConnection = await jsDialer.dial(jsListener.port, jsId);
const jsCall = async (message: Uint8Array) => {
  const answer = await echoFrame(await jsConnection.newStream(echoProtocol), message);
  if (answer.length !== message.length) throw new Error('another answer');
};

for (const size of [200, 6_000, 300_000]) {
  for (const atOnce of [1, 16]) {
    const own = await measure((message) => ourCall(connection, message), size, atOnce);
    const other = await measure(jsCall, size, atOnce);
    line(`CPU of a call, ${size} B, ${atOnce} at once`, own.cpu, other.cpu, 'us');
    line(`calls, ${size} B, ${atOnce} at once`, own.perSecond, other.perSecond, '/s');
  }
}

/** CPU and time of one connection, opened and closed. */
async function handshakes(
  open: () => Promise<unknown>,
  close: () => Promise<unknown>,
): Promise<Measured> {
  const count = 100;
  await open();
  await close();
  const start = process.cpuUsage();
  const began = performance.now();
  for (let index = 0; index < count; index += 1) {
    await open();
    await close();
  }
  return { cpu: cpuSince(start) / count, perSecond: (count / (performance.now() - began)) * 1_000 };
}

let opened: PeerConnection<string> | undefined;
const ownHandshakes = await handshakes(
  async () => {
    opened = await dialer.dial(address);
  },
  async () => {
    opened?.close('measured');
    await opened?.closed;
  },
);
await jsConnection.close();
const jsHandshakes = await handshakes(
  () => jsDialer.dial(jsListener.port, jsId),
  () => jsDialer.libp2p.hangUp(jsListener.libp2p.peerId),
);
line('CPU of a connection, both ends', ownHandshakes.cpu, jsHandshakes.cpu, 'us');
line('connections opened and closed', ownHandshakes.perSecond, jsHandshakes.perSecond, '/s');

collectGarbage();
const before = process.memoryUsage();
const dialers = Array.from({ length: Math.ceil(connections / 16) }, (_, index) =>
  parts.use(hostOf(20 + index)),
);
for (let index = 0; index < connections; index += 1) {
  await dialers[Math.floor(index / 16)]?.dial(address);
}
collectGarbage();
const after = process.memoryUsage();
const each = (bytes: number) => `${(bytes / connections / 1_024).toFixed(0)} KiB`;
console.log(
  `an idle connection, both ends      ${each(after.heapUsed - before.heapUsed)} of heap, ${each(after.rss - before.rss)} resident`,
);
