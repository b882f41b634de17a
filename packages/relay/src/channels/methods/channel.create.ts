import {
  badRequest,
  type ChannelDescriptor,
  checkChannelDescriptor,
  checkChannelDescriptorSize,
  checkChannelId,
  checkInitialDescriptor,
  ProtocolError,
} from '@posthouse/protocol';
import {
  type Caller,
  requireCaller,
  requireOwnAccount,
  verifyOwnSignature,
} from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { hasCreated, insertChannel, readChannel } from '../channel-store.ts';
import { checkSigningTime } from '../descriptors.ts';
import { insertEvent } from '../event-store.ts';

/** `channel.create` (06 §8.2). */
export const channelCreate: Handler<'channel.create'> = async (context, call) => {
  const { clock, identity, limits, network, storage } = context;
  const { params: descriptor } = call;
  const session = call.session;
  checkChannelDescriptor(network, descriptor);
  requireOwnAccount(session, descriptor.creator);
  await verifyOwnSignature(context, descriptor, { session, now: clock.now() });
  checkChannelId(network, descriptor);
  if (descriptor.relay_id !== identity.relayId) throw badRequest('relay_id', 'another relay');
  checkInitialDescriptor(descriptor);
  const text = checkChannelDescriptorSize(descriptor);
  const { channel_id: channelId } = descriptor;
  // The account's creations are locked too, because they are counted.
  const aggregates = [`channel:${channelId}`, `channels-of:${session.account}`];
  return await storage.write(aggregates, async (tx) => {
    const now = clock.now();
    const caller = await requireCaller(tx, session, now);
    if ((await readChannel(tx, channelId)) !== undefined) {
      throw new ProtocolError('state_conflict', 'the channel exists already');
    }
    checkSigningTime(context, { signedAt: descriptor.created_at, now });
    if (await hasCreated(tx, session.account, limits.channelsOfAccount)) {
      throw new ProtocolError(
        'rate_limited',
        'the account has created as many channels as this relay allows',
      );
    }
    await storeChannel(context, tx, { descriptor, text, caller, now });
    return { result: null };
  });
};

interface NewChannel {
  readonly descriptor: ChannelDescriptor;
  /** Canonical JSON of the descriptor. */
  readonly text: string;
  readonly caller: Caller;
  readonly now: number;
}

/** Stores the channel and its first event. */
async function storeChannel(
  { limits }: RelayContext,
  tx: Writer,
  { descriptor, text, caller, now }: NewChannel,
): Promise<void> {
  const { channel_id: channelId, creator, moderators = [], status } = descriptor;
  await insertChannel(tx, {
    ...{ channelId, creator, moderators, status },
    ...{ revision: 0, head: 0, neededUntil: 0, storedBytes: Buffer.byteLength(text) },
  });
  await insertEvent(tx, channelId, {
    event: {
      kind: 'descriptor',
      sequence: 0,
      descriptorRev: 0,
      acceptedAt: now,
      keepUntil: now + limits.channelTimelineRetention,
      payload: text,
    },
    signer: caller.signer,
  });
}
