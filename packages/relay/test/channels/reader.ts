/** Reads a whole channel as a careful client does: every event is verified. */
import {
  type ChannelDescriptor,
  type VerifiedChannelEvent,
  verifyChannelPage,
  verifyChannelResolution,
} from '@posthouse/protocol';
import { network } from '../support/modules.ts';
import type { Ground } from '../support/people.ts';
import type { TestChannel } from './support.ts';

/**
 * Reads every readable event in small pages and verifies each page by itself; missing descriptors
 * come from `channel.resolve` (06 §10.1).
 *
 * @throws if an event does not verify, or the host lacks what is needed to verify it
 */
export async function readWhole(
  { relayId }: Pick<Ground, 'relayId'>,
  channel: TestChannel,
): Promise<VerifiedChannelEvent[]> {
  const known = { channelId: channel.channelId, relayId };
  const found: VerifiedChannelEvent[] = [];
  for (let after = -1, more = true; more; ) {
    const page = await channel.read({ after, limit: 3 });
    const { missing } = verifyChannelPage(network, page, known);
    const descriptors = new Map<number, ChannelDescriptor>();
    for (const revision of missing) {
      const answer = await channel.resolve(revision);
      descriptors.set(revision, verifyChannelResolution(network, answer, { ...known, revision }));
    }
    const verified = verifyChannelPage(network, page, { ...known, descriptors });
    for (const { sequence, error } of verified.refused) {
      throw new Error(`event ${sequence} does not verify`, { cause: error });
    }
    if (verified.events.length !== page.events.length) throw new Error('events lack proof');
    found.push(...verified.events);
    after = found.at(-1)?.sequence ?? after;
    more = page.has_more;
  }
  return found;
}
