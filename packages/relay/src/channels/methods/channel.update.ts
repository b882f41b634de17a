import {
  checkChannelDescriptor,
  checkChannelDescriptorSize,
  checkChannelOpen,
  checkDescriptorUpdate,
  deviceSignatures,
} from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import {
  checkRevision,
  checkSigningTime,
  readOwned,
  replaceDescriptor,
  requireOwner,
} from '../descriptors.ts';

/** `channel.update` (06 §8.4), in the order of its checks. */
export const channelUpdate: Handler<'channel.update'> = async (context, call) => {
  const { clock, network, storage, verifier } = context;
  const { params: descriptor } = call;
  const session = call.session;
  const { channel_id: channelId } = descriptor;
  const before = await readOwned(context, session, { channelId, now: clock.now() });
  checkChannelDescriptor(network, descriptor);
  // The members that the ID is derived from cannot change, so the ID is not derived again.
  checkDescriptorUpdate(before.current, descriptor);
  const { certificate } = before.caller;
  await verifier.verify(deviceSignatures(network, descriptor, certificate), 'descriptor');
  checkChannelOpen(before.channel);
  const text = checkChannelDescriptorSize(descriptor);
  return await storage.write(`channel:${channelId}`, async (tx) => {
    const now = clock.now();
    const owned = await requireOwner(tx, session, { channelId, now });
    checkChannelOpen(owned.channel);
    checkSigningTime(context, { signedAt: descriptor.updated_at, now });
    await checkRevision(tx, owned.channel, descriptor.revision);
    const notices = await replaceDescriptor(context, tx, { owned, descriptor, text, now });
    return { result: null, notices };
  });
};
