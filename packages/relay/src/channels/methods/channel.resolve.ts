import { ProtocolError } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { readRestoredAt } from '../../storage/restored.ts';
import { requireChannel } from '../channel-store.ts';
import { readDescriptor } from '../event-store.ts';

/** `channel.resolve` (06 §8.3). A device that may call may read: channels are public. */
export const channelResolve: Handler<'channel.resolve'> = async (context, call) => {
  const { channel_id: channelId, revision } = call.params;
  return await context.storage.read(async (tx) => {
    const channel = await requireChannel(tx, channelId);
    const found = await readDescriptor(tx, channelId, revision ?? channel.revision);
    if (found === undefined) {
      const isLost = (revision ?? 0) > channel.revision;
      if (isLost && (await readRestoredAt(tx)) !== undefined) {
        context.restoreLosses.note('channel', channelId);
      }
      throw new ProtocolError('not_found', 'no such revision is kept');
    }
    return {
      result: {
        descriptor: new JsonText(found.descriptor),
        signer_certificate: new JsonText(found.certificate),
      },
    };
  });
};
