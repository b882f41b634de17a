/** 02 §18: what arrived on a WebSocket counts until it is read. */
import { beforeEach, expect, test } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ByteOwner } from '../../src/transport/byte-ledger.ts';
import { IncomingBytes } from '../../src/transport/incoming-bytes.ts';
import { ManualClock } from '../support/clock.ts';

const stranger: ByteOwner = { kind: 'address', id: '192.0.2.1' };
const account: ByteOwner = { kind: 'account', id: 'ann' };

let bytes: ByteAccounts;
let read: number;
let refused: boolean;
let incoming: IncomingBytes;
beforeEach(() => {
  const context = {
    clock: new ManualClock(),
    limits: { ...defaultLimits, receivedBytesPerAddress: 60_000 },
  };
  bytes = new ByteAccounts(context);
  read = 0;
  refused = false;
  incoming = new IncomingBytes({
    ...{ context, bytes, owner: stranger },
    socket: { pause: () => {}, resume: () => {} },
    turns: new CallTurns(context.clock),
    read: (chunk) => {
      read += chunk.length;
    },
    refused: () => {
      refused = true;
    },
    tooSlow: () => {},
  });
});

/** A masked text frame of a client (RFC 6455 §5.2). */
function frame(length: number): Buffer {
  const header = Buffer.from([0x81, 0x80 | 126, length >> 8, length & 0xff, 0, 0, 0, 0]);
  return Buffer.concat([header, Buffer.alloc(length, 'x')]);
}

const turn = () => new Promise<void>((go) => setImmediate(go));

test('02 §18: a message counts whole until its last frame is read', async () => {
  const text = frame(40_000);
  incoming.receive(text.subarray(0, 39_000));
  expect(bytes.received.total).toBeGreaterThanOrEqual(39_000);
  incoming.receive(text.subarray(39_000));
  expect(read).toBe(39_000);
  expect(bytes.received.total).toBeGreaterThanOrEqual(text.length);
  while (read < text.length) await turn();
  expect(bytes.received.total).toBe(0);
  expect(refused).toBe(false);
});

test('02 §18: frames that wait for their turn count for the account once it is bound', async () => {
  incoming.receive(frame(40_000));
  incoming.moveTo(account);
  expect(read).toBe(0);
  expect(bytes.received.hasRoom(stranger, 60_000)).toBe(true);
  while (read < 40_000) await turn();
  expect(bytes.received.total).toBe(0);
});
