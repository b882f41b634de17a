/** 02 §18: each limit of bytes in memory is that of its own owners and kind. */
import { expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ByteHold, ByteLedger, ByteOwner } from '../../src/transport/byte-ledger.ts';
import { ManualClock } from '../support/clock.ts';

/** No two are the same, so that each is only found where it counts. */
const limits = {
  receivedBytesPerAddress: 110,
  receivedBytesPerAccount: 220,
  receivedBytesOfStrangers: 330,
  receivedBytes: 440,
  waitingBytesPerAddress: 150,
  waitingBytesPerAccount: 250,
  waitingBytesOfStrangers: 350,
  waitingBytes: 450,
};

/** Returns how many bytes so many owners hold, one byte after another in turns, before a hold ends. */
function bytesOf(ledger: ByteLedger, kind: ByteOwner['kind'], owners: number): number {
  let hasEnded = false;
  const evicted = () => {
    hasEnded = true;
  };
  const holds: readonly ByteHold[] = Array.from({ length: owners }, (_, id) =>
    ledger.open({ kind, id: `${id}` }, evicted),
  );
  for (let bytes = 0; ; bytes += 1) {
    const isOpen = (holds[bytes % owners] as ByteHold).add(1);
    if (!isOpen || hasEnded) return bytes;
  }
}

test.each([
  ['receivedBytesPerAddress', 'received', 'address', 1],
  ['receivedBytesPerAccount', 'received', 'account', 1],
  ['receivedBytesOfStrangers', 'received', 'address', 10],
  ['receivedBytes', 'received', 'account', 10],
  ['waitingBytesPerAddress', 'waiting', 'address', 1],
  ['waitingBytesPerAccount', 'waiting', 'account', 1],
  ['waitingBytesOfStrangers', 'waiting', 'address', 10],
  ['waitingBytes', 'waiting', 'account', 10],
] as const)('%s are held, and a hold ends at one byte more', (name, ledger, kind, owners) => {
  const bytes = new ByteAccounts({
    clock: new ManualClock(),
    limits: { ...defaultLimits, ...limits },
  });
  expect(bytesOf(bytes[ledger], kind, owners)).toBe(limits[name]);
});
