import {
  checkChannelDescriptorSize,
  closedDescriptor,
  deviceSignatures,
  ProtocolError,
} from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import {
  checkRevision,
  checkSigningTime,
  readOwned,
  replaceDescriptor,
  requireOwner,
} from '../descriptors.ts';

/** `channel.close` (06 §8.5), in the order of its checks. */
export const channelClose: Handler<'channel.close'> = async (context, call) => {
  const { clock, network, storage, verifier } = context;
  const { channel_id: channelId, revision, updated_at: signedAt } = call.params;
  const session = call.session;
  const now = clock.now();
  const before = await readOwned(context, session, { channelId, now });
  await storage.read((tx) => checkRevision(tx, before.channel, revision));
  checkSigningTime(context, { signedAt, now });
  const descriptor = closedDescriptor(before.current, call.params);
  const { certificate } = before.caller;
  await verifier.verify(deviceSignatures(network, descriptor, certificate), 'device_signature');
  const text = checkChannelDescriptorSize(descriptor);
  return await storage.write(`channel:${channelId}`, async (tx) => {
    const acceptedAt = clock.now();
    const owned = await requireOwner(tx, session, { channelId, now: acceptedAt });
    // A revision names one descriptor for good: the copied and verified one must still be current.
    if (owned.channel.revision !== before.channel.revision) {
      throw new ProtocolError('state_conflict', 'revision: not the next one');
    }
    const next = { owned, descriptor, text, now: acceptedAt };
    return { result: null, notices: await replaceDescriptor(context, tx, next) };
  });
};
