/**
 * The description of a chain that smoldot needs to connect to anything. The chain does not exist: a
 * block and two epochs are made up, complete enough to be taken for a checkpoint (SCALE encoding).
 */

const littleEndian = (value: number, bytes: 4 | 8) => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUInt32LE(value);
  return buffer;
};
const u32 = (value: number) => littleEndian(value, 4);
const u64 = (value: number) => littleEndian(value, 8);
/** A compact integer: one byte below 64, two bytes up to 16,383. */
const compact = (value: number) =>
  value < 64 ? Buffer.of(value * 4) : Buffer.of((value * 4 + 1) % 256, value >> 6);
const vector = (...items: readonly Uint8Array[]) =>
  Buffer.concat([compact(items.length), ...items]);
const bytes = (value: Uint8Array) => Buffer.concat([compact(value.length), value]);
const hash = (fill: number) => Buffer.alloc(32, fill);
const none = Buffer.of(0);
const empty = vector();
const hex = (...parts: readonly Uint8Array[]) => `0x${Buffer.concat(parts).toString('hex')}`;

const authority = Buffer.concat([hash(1), u64(1)]);
const slotsPerEpoch = 10;

/** An entry of a block's digest for the consensus engine BABE. */
const digestItem = (kind: number, value: Uint8Array) =>
  Buffer.concat([Buffer.of(kind), Buffer.from('BABE'), bytes(value)]);

/** Block 5, produced in slot 15 by authority 0 (pre-digest kind 2), with a seal. */
const header = Buffer.concat([
  hash(2),
  compact(5),
  hash(3),
  hash(4),
  vector(
    digestItem(6, Buffer.concat([Buffer.of(2), u32(0), u64(15)])),
    digestItem(5, Buffer.alloc(64)),
  ),
]);

/** An epoch that block `index` announced: blocks of slots with a chance of 1/4, all kinds allowed. */
const epoch = (index: number) =>
  Buffer.concat([
    ...[hash(index), u32(index), Buffer.of(1)],
    ...[u64(index), u64(index * slotsPerEpoch), u64(slotsPerEpoch), vector(authority), hash(5)],
    ...[u64(1), u64(4), Buffer.of(2)],
  ]);

/** The text of a chain specification with one boot node. */
export function chainSpec(bootNode: string): string {
  return JSON.stringify({
    name: 'No chain',
    id: 'no-chain',
    chainType: 'Live',
    bootNodes: [bootNode],
    properties: null,
    genesis: { stateRootHash: hex(hash(6)) },
    lightSyncState: {
      finalizedBlockHeader: hex(header),
      babeEpochChanges: hex(empty, none, vector(epoch(1), epoch(2))),
      babeFinalizedBlockWeight: 1,
      grandpaAuthoritySet: hex(vector(authority), u64(0), empty, none, empty, empty),
    },
  });
}
