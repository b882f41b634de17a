import { expect, test } from 'vitest';
import {
  channels,
  lastWithheld,
  listWithheld,
  restorePost,
  withholdPost,
} from '../../src/channels/index.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { Person } from '../fixtures/person.ts';
import { scansAndSorts } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay({ channelTimelineRetention: 1_000 });

test('no statement of any method or job reads a whole table or sorts', async () => {
  const ann = await Person.register(relay, 'ann');
  const ben = await Person.register(relay, 'ben', ['phone', 'laptop']);
  const statements = new Set<string>();
  relay.faults.beforeStatement = (sql) => void statements.add(sql);
  await live(ann, ben);
  delete relay.faults.beforeStatement;
  const tables = /\bchannel(?:s|_\w+)\b/;
  const found: Record<string, string[]> = {};
  const searching = [...statements].filter(
    (sql) => tables.test(sql) && /\bWHERE\b|^\s*SELECT/.test(sql) && !/^\s*INSERT/.test(sql),
  );
  for (const sql of searching) {
    const slow = await scansAndSorts(relay.context.storage, sql);
    if (slow.length > 0) found[sql] = slow;
  }
  expect(found).toEqual({});
  expect(searching.length).toBeGreaterThan(25);
});

/** Calls every method except `channel.subscribe`, and runs every job, at least once. */
async function live(ann: Person, ben: Person): Promise<void> {
  const channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  const by = { by: ben, device: 'laptop' };
  const [one, two] = [await channel.post(), await channel.post(undefined, by)];
  for (const target of [one, two]) await channel.edit(target, { body: text('x') }, by);
  await channel.edit(one, { body: text('y') });
  await channel.edit(2 * one + 1, { body: text('y') }).catch(() => {});
  const report = { channel_id: channel.channelId, target_sequence: one, reason: 'spam' };
  await relay.call('channel.post.report', report, { session: ben.session() });
  for (const range of [{}, { before: 3 }, { after: 1 }]) await channel.read(range, by);
  await channel.update({ name: 'other' });
  await operate({ channelId: channel.channelId, sequence: two });
  await channel.delete(two, {}, by);
  for (const { name } of channels.jobs) await relay.runJob(name);
  for (const revision of [undefined, 0]) await channel.resolve(revision);
  await channel.close();
  relay.clock.advance(86_400 * 100);
  for (const { name } of channels.jobs) await relay.runJob(name);
}

/** Runs every operator command about a post. */
async function operate(post: { readonly channelId: string; readonly sequence: number }) {
  const { clock, storage } = relay.context;
  await withholdPost(storage, post, clock.now());
  await listWithheld(storage, { before: lastWithheld, limit: 9 });
  await restorePost(storage, post);
  await withholdPost(storage, post, clock.now());
}

test('06 §8.7: a post needs few statements', async () => {
  const ann = await Person.register(relay, 'ann');
  const ben = await Person.register(relay, 'ben');
  const channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  for (const by of [ann, ben]) {
    await channel.post(undefined, { by });
    const post = channel.newPost(undefined, { by });
    let statements = 0;
    relay.faults.beforeStatement = () => {
      statements += 1;
    };
    await channel.publish(post, { by });
    delete relay.faults.beforeStatement;
    expect(statements).toBeLessThanOrEqual(8);
  }
});
