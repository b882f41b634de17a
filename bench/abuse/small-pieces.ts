/** Attacks with many small pieces: chunks of bodies, and records of TLS, with one byte each. */
import { once } from 'node:events';
import type { TLSSocket } from 'node:tls';
import { type Gate, openGate } from '../../packages/relay/test/support/gate.ts';
import {
  type Attack,
  type AttackTarget,
  emptyPings,
  frame,
  openRaw,
  openSeveral,
  openWebSocket,
} from './attack.ts';

/** Chunks of a body, in one write. */
const chunks = Buffer.from('1\r\n \r\n'.repeat(10_000));

/** Returns the headers of a body in chunks. */
function chunkedHead({ https }: AttackTarget): string {
  const { host, pathname } = new URL(https);
  return (
    `POST ${pathname}/auth/challenge HTTP/1.1\r\nHost: ${host}\r\n` +
    'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  );
}

async function openBody(target: AttackTarget): Promise<TLSSocket> {
  const socket = await openRaw(target);
  socket.write(chunkedHead(target));
  return socket;
}

/** Keeps connections open, and writes the same on each as fast as it takes it. */
async function sendOnEach(
  sockets: TLSSocket[],
  signal: AbortSignal,
  { open, bytes }: { readonly open: () => Promise<TLSSocket>; readonly bytes: Uint8Array },
): Promise<void> {
  while (!signal.aborted) {
    for (const [index, socket] of sockets.entries()) {
      if (socket.destroyed) sockets[index] = await open();
      else if (socket.writableLength === 0) socket.write(bytes);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

export const smallChunks: Attack = {
  title: '4 bodies of a stranger arrive in chunks of one byte',
  hasPreparation: true,
  async run(target, signal, begun) {
    const bodies = await openSeveral(4, () => openBody(target), signal);
    begun();
    await sendOnEach(bodies, signal, { open: () => openBody(target), bytes: chunks });
  },
};

export const owedChunks: Attack = {
  title: 'the same with 200 bodies, whose address owes',
  hasPreparation: true,
  async run(target, signal, begun) {
    const [debtor] = await openSeveral(1, () => openWebSocket(target), signal);
    const bodies = await openSeveral(200, () => openBody(target), signal);
    begun();
    debtor?.write(emptyPings);
    await sendOnEach(bodies, signal, { open: () => openBody(target), bytes: chunks });
  },
};

const recordsOfConnection = 20_000;

export const smallRecords: Attack = {
  title: '10 WebSockets of a stranger, whose address owes, get 20,000 records of one byte each',
  hasPreparation: true,
  async run(target, signal, begun) {
    const [debtor] = await openSeveral(1, () => openWebSocket(target), signal);
    const server = new URL(target.https);
    const gates: Gate[] = [];
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const gate = await openGate(server);
        gates.push(gate);
        const https = target.https.replace(`:${server.port}`, `:${gate.port}`);
        const socket = await openWebSocket({ ...target, https });
        gate.close();
        // The beginning of a message.
        const message = frame(1, Buffer.alloc(recordsOfConnection * 2));
        for (let sent = 0; sent < recordsOfConnection && !signal.aborted; sent += 1) {
          // A write that waits for the one before would share its record.
          await new Promise((resolve) => socket.write(message.subarray(sent, sent + 1), resolve));
        }
      }),
    );
    begun();
    debtor?.write(emptyPings);
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (const gate of gates) gate.open();
    if (!signal.aborted) await once(signal, 'abort');
  },
};

/** A chunk of one byte whose extension is as long as Node allows. */
const extended = Buffer.from(`1;${'a'.repeat(16_000)}\r\n \r\n`.repeat(4));

export const chunkExtensions: Attack = {
  title: '20 bodies of a stranger arrive in chunks of one byte with extensions of 16,000',
  hasPreparation: true,
  async run(target, signal, begun) {
    const bodies = await openSeveral(20, () => openBody(target), signal);
    begun();
    await sendOnEach(bodies, signal, { open: () => openBody(target), bytes: extended });
  },
};

/** The last chunk of a body, with trailers, and the headers of the next one. */
export const trailers: Attack = {
  title: '20 connections of a stranger send empty bodies with trailers of 15,000 bytes',
  hasPreparation: true,
  async run(target, signal, begun) {
    const open = () => openRaw(target);
    const sockets = await openSeveral(20, open, signal);
    begun();
    const trailer = `X: ${'a'.repeat(15_000)}`;
    const bytes = Buffer.from(`${chunkedHead(target)}0\r\n${trailer}\r\n\r\n`.repeat(4));
    await sendOnEach(sockets, signal, { open, bytes });
  },
};

export const tinyHeaderRecords: Attack = {
  title: '40 connections of a stranger get requests in records of one byte, 20,000 at once',
  hasPreparation: true,
  async run(target, signal, begun) {
    const server = new URL(target.https);
    const gates: Gate[] = [];
    const requests = Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000));
    await Promise.all(
      Array.from({ length: 40 }, async () => {
        const gate = await openGate(server);
        gates.push(gate);
        const https = target.https.replace(`:${server.port}`, `:${gate.port}`);
        const socket = await openRaw({ ...target, https });
        gate.close();
        for (let sent = 0; sent < recordsOfConnection && !signal.aborted; sent += 1) {
          await new Promise((resolve) => socket.write(requests.subarray(sent, sent + 1), resolve));
        }
      }),
    );
    begun();
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (const gate of gates) gate.open();
    if (!signal.aborted) await once(signal, 'abort');
  },
};
