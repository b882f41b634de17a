/** What the operator does: blocks accounts and addresses, and ends blocks. */
import { networkInterfaces } from 'node:os';
import { ProtocolError } from '@posthouse/protocol';
import type { RelayLimits } from '../limits.ts';
import { endSessionsOf } from '../sessions/session-store.ts';
import type { Storage, Writer } from '../storage/types.ts';
import {
  type AddressRange,
  ofCustomers,
  overlaps,
  readRange,
  writeRange,
} from './address-range.ts';
import { AddressSet } from './address-set.ts';
import {
  type Block,
  type BlockKind,
  blockWrites,
  deleteBlock,
  readBlock,
  storeBlock,
} from './block-store.ts';

/** A block to store. */
export type NewBlock = Omit<Block, 'createdAt' | 'kind'>;

export interface BlockOptions {
  /** Unix seconds. */
  readonly now: number;
  readonly limits: Pick<
    RelayLimits,
    'blockedAccounts' | 'blockedAddresses' | 'blockedChannels' | 'blockedRelays'
  >;
}

/** By kind: the limit of its blocks, and what they are called. */
const limitOf = {
  account: 'blockedAccounts',
  address: 'blockedAddresses',
  channel: 'blockedChannels',
  relay: 'blockedRelays',
} as const satisfies Record<BlockKind, keyof RelayLimits>;

const namesOf = {
  account: 'accounts',
  address: 'addresses',
  channel: 'channels',
  relay: 'relays',
} as const;

/**
 * Stores a block in a write that holds `blockWrites`.
 *
 * @returns whether it is new
 * @throws ProtocolError `state_conflict` if there is no room for it
 */
export async function addBlock(
  tx: Writer,
  block: Omit<Block, 'createdAt'>,
  { now, limits }: BlockOptions,
): Promise<boolean> {
  const setting = limitOf[block.kind];
  const limit = limits[setting];
  const stored = await storeBlock(tx, block, { now, limit });
  if (stored !== 'full') return stored === 'new';
  throw new ProtocolError(
    'state_conflict',
    `${limit} ${namesOf[block.kind]} are blocked: remove one, or raise limits.${setting}`,
  );
}

/**
 * Blocks an account, whether this relay knows it or not, and ends its sessions. A running relay refuses
 * it within two seconds.
 *
 * @returns whether it was not blocked before
 * @throws ProtocolError `state_conflict` if too many accounts are blocked
 */
export async function blockAccount(
  storage: Storage,
  block: NewBlock,
  options: BlockOptions,
): Promise<boolean> {
  const { id: account } = block;
  return await storage.write(
    [blockWrites, `account:${account}`],
    async (tx) => {
      const isNew = await addBlock(tx, { kind: 'account', ...block }, options);
      await endSessionsOf(tx, account);
      return isNew;
    },
    { keepsFacts: true },
  );
}

/**
 * Ends the sessions and connections of an account, and refuses it for a while. A block that there is
 * already stays as it is.
 */
export async function blockBriefly(
  storage: Storage,
  { account, until }: { readonly account: string; readonly until: number },
  options: BlockOptions,
): Promise<void> {
  const { now } = options;
  const known = await storage.read((tx) => readBlock(tx, { kind: 'account', id: account }, now));
  // A repeat ends sessions again.
  const block = known ?? { id: account, reason: 'the account is being deleted', endsAt: until };
  await blockAccount(storage, block, options);
}

/** Addresses that are never blocked: connections from this machine. */
const loopback = ['127.0.0.0/8', '::1'];

/** Returns the addresses by which this machine reaches itself, as its checks of the relay do. */
function ownAddresses(): string[] {
  const found = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return found.map(({ address }) => address);
}

/**
 * Reads the address or network of a block; of IPv6 nothing smaller than a /64, one customer's network.
 *
 * @param trustedProxies addresses and networks of the proxies whose connections carry other clients
 * @param own addresses of this machine's network interfaces
 * @returns as it is stored
 * @throws ProtocolError `bad_request` if it is none, or holds an address of this machine or a trusted proxy
 * @example
 * addressToBlock('2001:db8:1:2::9', []); // '2001:db8:1:2::/64'
 */
export function addressToBlock(
  text: string,
  trustedProxies: readonly string[],
  own: readonly string[] = ownAddresses(),
): string {
  const range = rangeOf(text);
  const proxy = trustedProxies.find((one) => overlapsText(range, one));
  if (proxy !== undefined) {
    throw new ProtocolError(
      'bad_request',
      `${writeRange(range)} has the trusted proxy ${proxy}, through which others connect: ` +
        'give the address of the client',
    );
  }
  if ([...loopback, ...own].some((one) => overlapsText(range, one))) {
    throw new ProtocolError(
      'bad_request',
      `${writeRange(range)} has addresses of this machine itself: give a smaller network`,
    );
  }
  return writeRange(range);
}

/** @throws ProtocolError `bad_request` */
function rangeOf(text: string): AddressRange {
  const read = readRange(text);
  if (read !== undefined) return ofCustomers(read);
  throw new ProtocolError(
    'bad_request',
    `${JSON.stringify(text)} is no address: give one as 192.0.2.7, 192.0.2.0/24, 2001:db8::7 or 2001:db8::/48`,
  );
}

/** Whether a network is so large that it is hardly meant: more than a /8 of IPv4, a /19 of IPv6. */
export function isWide(text: string): boolean {
  const { family, length } = rangeOf(text);
  return length < (family === 4 ? 8 : 19);
}

/**
 * Reads an address or network as {@link addressToBlock} does, whatever it holds.
 *
 * @returns it as it is written in lists, and whether it holds an address, as `addressKey` writes that
 * @throws ProtocolError `bad_request` if it is none
 */
export function networkOf(text: string): {
  readonly network: string;
  readonly holds: (address: string) => boolean;
} {
  const range = rangeOf(text);
  const set = new AddressSet();
  set.add(range, Number.POSITIVE_INFINITY);
  return { network: writeRange(range), holds: (address) => set.has(address, 0) };
}

function overlapsText(range: AddressRange, text: string): boolean {
  const other = readRange(text);
  return other !== undefined && overlaps(range, ofCustomers(other));
}

/**
 * Blocks an address or a network that {@link addressToBlock} returned. A running relay closes its
 * connections within two seconds.
 *
 * @returns whether it was not blocked before
 * @throws ProtocolError `state_conflict` if too many addresses are blocked
 */
export async function blockAddress(
  storage: Storage,
  block: NewBlock,
  options: BlockOptions,
): Promise<boolean> {
  return await storage.write(blockWrites, (tx) =>
    addBlock(tx, { kind: 'address', ...block }, options),
  );
}

/**
 * Blocks a channel that this relay hosts: it is as if it was not hosted here, until the block ends.
 *
 * @returns whether it was not blocked before
 * @throws ProtocolError `state_conflict` if too many channels are blocked
 */
export async function blockChannel(
  storage: Storage,
  block: NewBlock,
  options: BlockOptions,
): Promise<boolean> {
  return await storage.write(blockWrites, (tx) =>
    addBlock(tx, { kind: 'channel', ...block }, options),
  );
}

/** Ends the block of anything but a relay; returns whether it was blocked. */
export async function unblock(
  storage: Storage,
  block: Pick<Block, 'kind' | 'id'>,
  now: number,
): Promise<boolean> {
  return await storage.write(blockWrites, (tx) => deleteBlock(tx, block, now));
}
