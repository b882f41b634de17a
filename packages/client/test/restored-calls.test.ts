/** What programs that stay open do after their relay was restored: no call of theirs fails. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { patience } from '../../relay/test/support/patience.ts';
import type { AccountEvent } from '../src/index.ts';
import { club, groupTexts } from './groups/support.ts';
import { befriend, texts } from './support/relay-with-clients.ts';
import { RestorableRelay } from './support/restorable-relay.ts';

let relay: RestorableRelay;
beforeAll(async () => {
  relay = await RestorableRelay.start();
});
afterAll(() => relay[Symbol.asyncDispose]());

const noteworthy = (events: readonly AccountEvent[]) =>
  events
    .map(({ kind }) => kind)
    .filter((kind) => /failed|rejected|refused|gap|rollback|blocked/.test(kind));

describe('04 §17.1, 05 §13.28, 06 §8.7: after a restore every call succeeds', () => {
  test.each([
    ['groups', 'http'],
    ['messages', 'http'],
    ['channels', 'http'],
    ['groups', 'websocket'],
  ] as const)('%s first, over %s', async (first, prefer) => {
    const { world } = relay;
    const ann = await world.person({ prefer });
    const bob = await world.person({ prefer });
    await befriend(ann, bob);
    const groupId = await club(ann, [bob]);
    const { id: channelId, link } = await ann.channels.create({ name: 'News' });
    await bob.channels.follow(link);
    await bob.sync();
    await relay.backUp(`calls ${prefer} ${first}`);
    const sends = {
      messages: (text: string) => ann.messages.send(bob.id, { text }),
      groups: (text: string) => ann.groups.send(groupId, { text }),
      channels: (text: string) => ann.channels.send(channelId, { text }),
    };
    const order = [
      first,
      ...(['messages', 'groups', 'channels'] as const).filter((each) => each !== first),
    ];
    const send = async (...lines: string[]) => {
      for (const text of lines) for (const each of order) await sends[each](text);
    };
    await send('1', '2', '3');
    await bob.sync();
    await relay.restore(`calls ${prefer} ${first}`);
    await send('a', 'b', 'c', 'd');
    const all = ['1', '2', '3', 'a', 'b', 'c', 'd'];
    const events: AccountEvent[] = [];
    // The relay stores a message for its recipient soon after it has accepted it.
    await vi.waitFor(async () => {
      events.push(...(await bob.sync()));
      expect(await texts(bob)).toEqual(all);
    }, patience);
    // Told once; what is between the old and the new sequences is a gap.
    for (const each of [events, await ann.sync()]) {
      expect(noteworthy(each)).toEqual(['timeline-gap', 'channel-gap']);
    }
    expect(await groupTexts(bob, groupId)).toEqual(all);
    const posts = await bob.channels.listPosts(channelId);
    expect(posts.map((post) => post.body?.text)).toEqual(all);
  });
});
