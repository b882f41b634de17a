/**
 * Creating, changing and closing channels: descriptors, one revision after another (06 §8.2 to
 * §8.5).
 */
import type { ChannelDescriptor } from '@posthouse/protocol';
import type { RelayConnection } from '../../connect/relay-connection.ts';
import type { AccountCore } from '../../core.ts';
import type { StoreReader } from '../../store/index.ts';
import {
  ClientError,
  checkInput,
  closedDescriptor,
  currentDescriptor,
  encodeBase64url,
  enqueueWrite,
  isPending,
  isRefusal,
  outgoingToChannel,
  putChannel,
  RelayMisbehaviour,
  requireChannel,
  resolveDescriptor,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
  submitDescriptor,
  whileKept,
} from '../../taken.ts';
import type { ChannelRow } from '../channel-rows.ts';
import type { DescriptorWrite } from '../outbox.ts';

export interface NewChannelFacts {
  readonly name: string;
  readonly description?: string | undefined;
  /** Accounts that may write in addition to the owner; at most ten. */
  readonly moderators?: readonly string[] | undefined;
  /** Relay ID of the host; by default the home relay. It never changes. */
  readonly relayId?: string | undefined;
}

/** Changes of an update: an absent member stays, `null` removes it. */
export interface ChannelFacts {
  readonly name?: string | undefined;
  readonly description?: string | null | undefined;
  readonly moderators?: readonly string[] | null | undefined;
}

/** Limit of revisions a change is tried on while other devices change the channel. */
const attempts = 5;

/**
 * Creates a channel. The signed descriptor is enqueued before the request leaves; if the answer is
 * lost, the next `sync` asks the host whether it has the descriptor.
 *
 * @returns the channel ID
 * @throws ClientError `invalid_input`; `no_relay` if the relay does not host channels
 */
export async function createChannel(
  core: AccountCore,
  facts: NewChannelFacts,
  signal: AbortSignal,
): Promise<string> {
  const { network, account: creator, device, random, store } = core;
  const relay_id = facts.relayId ?? (await core.home()).relayId;
  const relay = await requireHost(core, relay_id, signal);
  const { name, description, moderators } = facts;
  const said = {
    ...{ creator, relay_id, name },
    ...(description !== undefined && { description }),
    ...(moderators !== undefined && { moderators }),
  };
  for (let attempt = 1; ; attempt += 1) {
    // Each attempt makes another channel: a nonce is used once (06 §3).
    const nonce = encodeBase64url(random(16));
    const created = { ...said, nonce, created_at: relay.relayClock.now() };
    const descriptor = makeDescriptor(() => signChannelDescriptor(network, device, created));
    const { channel_id } = descriptor;
    const value = { write: 'create', descriptor } as const;
    const { lane } = outgoingToChannel(core, channel_id);
    try {
      await core.sender.alone(lane, async () => {
        const { row, pending } = await store.write(async (tx) => {
          const made: ChannelRow = { channel_id, relay_id, standing: 'creating', descriptor };
          await putChannel(tx, made);
          return { row: made, pending: await enqueueWrite(tx, channel_id, value) };
        });
        const isKept = (tx: StoreReader) => isPending(tx, pending);
        await whileKept(store, isKept, () =>
          submitDescriptor(core, { row, pending, isFresh: true }, signal),
        );
      });
      return channel_id;
    } catch (error) {
      if (!isRefusal(error, 'clock_skew') || attempt > 1) throw error;
      relay.relayClock.adopt();
    }
  }
}

/** Connects to the host. @throws ClientError `no_relay` if it does not host channels */
async function requireHost(
  core: AccountCore,
  relayId: string,
  signal: AbortSignal,
): Promise<RelayConnection> {
  const connection = core.relay(relayId);
  const { descriptor } = (await connection.authenticated(signal)).relay;
  if (descriptor.capabilities?.includes('channel.host.v1')) return connection;
  throw new ClientError('no_relay', `${relayId} does not host channels: choose another relay`);
}

/** Signs an update. @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input` */
export async function updateChannel(
  core: AccountCore,
  { channelId, facts }: { readonly channelId: string; readonly facts: ChannelFacts },
  signal: AbortSignal,
): Promise<void> {
  const { network, device } = core;
  const given = Object.entries(facts).filter(([, value]) => value !== undefined);
  await writeDescriptor(core, channelId, {
    signal,
    make: (current, updated_at) => {
      const change = { ...Object.fromEntries(given), updated_at };
      return {
        write: 'update',
        descriptor: signChannelUpdate(network, device, { current, change }),
      };
    },
  });
}

/** Closes a channel for good. @throws ClientError `unknown_channel`, `not_permitted` */
export async function closeChannel(
  core: AccountCore,
  channelId: string,
  signal: AbortSignal,
): Promise<void> {
  const { network, device } = core;
  await writeDescriptor(core, channelId, {
    signal,
    make: (current, updatedAt) => {
      const close = signChannelClose(network, device, { current, updatedAt });
      return { write: 'close', close, descriptor: closedDescriptor(current, close) };
    },
  });
}

interface DescriptorChange {
  readonly make: (current: ChannelDescriptor, at: number) => DescriptorWrite;
  readonly signal: AbortSignal;
}

/**
 * Signs the next revision on the current one and submits it, after what waits for the channel: a
 * revision is never signed twice with different content while an earlier one may be accepted.
 */
async function writeDescriptor(
  core: AccountCore,
  channelId: string,
  change: DescriptorChange,
): Promise<void> {
  const { lane, work } = outgoingToChannel(core, channelId);
  await core.sender.alone(lane, async (signal) => {
    await work(AbortSignal.any([signal, change.signal]));
    await writeNextDescriptor(core, channelId, change);
  });
}

async function writeNextDescriptor(
  core: AccountCore,
  channelId: string,
  { make, signal }: DescriptorChange,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const row = await core.store.read((tx) => requireChannel(tx, channelId));
    const current = await currentDescriptor(core, row, signal).catch((error) => {
      if (attempt < attempts && isLost(core, row, error)) return undefined;
      throw error;
    });
    if (current === undefined) {
      const found = await resolveDescriptor(core, row, { signal });
      await submitAgain(core, row, { found, signal });
      continue;
    }
    if (current.creator !== core.account) {
      throw new ClientError('not_permitted', 'only the owner can change a channel: ask the owner');
    }
    if (current.status === 'closed')
      throw new ClientError('not_permitted', 'the channel is closed: it cannot be changed');
    try {
      return await submitNext(core, row, { make: (at) => make(current, at), signal });
    } catch (error) {
      if (!isRefusal(error, 'state_conflict', 'clock_skew') || attempt >= attempts) throw error;
    }
  }
}

/** Signs a descriptor, stores and submits it. After `clock_skew` it can be called again. */
async function submitNext(
  core: AccountCore,
  row: ChannelRow,
  {
    make,
    signal,
  }: { readonly make: (at: number) => DescriptorWrite; readonly signal: AbortSignal },
): Promise<void> {
  const { relayClock } = core.relay(row.relay_id);
  const value = makeDescriptor(() => make(relayClock.now()));
  const pending = await core.store.write((tx) => enqueueWrite(tx, row.channel_id, value));
  try {
    const isKept = (tx: StoreReader) => isPending(tx, pending);
    await whileKept(core.store, isKept, () =>
      submitDescriptor(core, { row, pending, isFresh: true }, signal),
    );
  } catch (error) {
    if (isRefusal(error, 'clock_skew')) relayClock.adopt();
    throw error;
  }
}

/** Whether an error says that the host lost descriptors of an own channel. */
function isLost(core: AccountCore, { descriptor }: ChannelRow, error: unknown): boolean {
  if (!(error instanceof RelayMisbehaviour) || descriptor.creator !== core.account) return false;
  return error.reason === 'channel_rollback' || error.reason === 'channel_conflict';
}

interface LostDescriptor {
  /** What the host has. */
  readonly found: ChannelDescriptor;
  readonly signal: AbortSignal;
}

/**
 * Publishes the newest descriptor of an own channel again, because the host lost it: with a revision
 * after all that readers may have seen, which a restored host accepts (06 §8.12).
 *
 * @throws ClientError `counter_exhausted`; RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function publishAgain(
  core: AccountCore,
  row: ChannelRow,
  { found, signal }: LostDescriptor,
): Promise<void> {
  const { lane } = outgoingToChannel(core, row.channel_id);
  await core.sender.alone(lane, async (closed) => {
    const either = AbortSignal.any([closed, signal]);
    await submitAgain(core, row, { found, signal: either }).catch(async (error: unknown) => {
      if (!isRefusal(error, 'clock_skew')) throw error;
      await submitAgain(core, row, { found, signal: either });
    });
  });
}

async function submitAgain(
  core: AccountCore,
  row: ChannelRow,
  { found, signal }: LostDescriptor,
): Promise<void> {
  const { network, device } = core;
  const { descriptor } = row;
  const make = (updatedAt: number): DescriptorWrite => {
    if (descriptor.status === 'active') {
      const change = { current: descriptor, change: { updated_at: updatedAt } };
      return { write: 'update', descriptor: signChannelUpdate(network, device, change) };
    }
    // The host makes the final descriptor of the one that it has.
    const current = { ...found, revision: descriptor.revision };
    const close = signChannelClose(network, device, { current, updatedAt });
    return { write: 'close', close, descriptor: closedDescriptor(current, close) };
  };
  await submitNext(core, row, { make, signal });
}

/** Makes a signed descriptor. @throws ClientError `invalid_input`, `counter_exhausted` */
function makeDescriptor<T>(make: () => T): T {
  try {
    return checkInput('channel', make);
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new ClientError('counter_exhausted', cause.message, { cause });
  }
}
