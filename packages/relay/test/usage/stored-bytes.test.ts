/** 02 §18: the bytes that groups and channels have stored, in all. */
import { describe, expect, test } from 'vitest';
import { migrations as channelMigrations } from '../../src/channels/migrations.ts';
import { restorePost, withholdPost } from '../../src/channels/moderation/withhold.ts';
import { migrations as groupMigrations } from '../../src/groups/migrations.ts';
import type { Migration } from '../../src/storage/types.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
const month = 2_592_000;

const tables = {
  group: ['group_events', 'group_messages'],
  channel: ['channel_events', 'channel_withheld_events'],
} as const;

/** Returns the counted bytes of the only group or channel, which must be the sum of its rows. */
async function stored(kind: keyof typeof tables): Promise<number> {
  let sum = 0;
  for (const table of tables[kind]) {
    for (const { bytes } of await relay.rows(table)) sum += bytes as number;
  }
  const [row, ...others] = await relay.rows(`${kind}s`);
  expect(others).toEqual([]);
  expect(row?.stored_bytes).toBe(sum);
  return sum;
}

/** Counts anew as an upgrade does. */
async function recount(kind: keyof typeof tables, migrations: readonly Migration[]): Promise<void> {
  const counting = migrations.find(({ name }) => name === `${kind}s: bytes stored of each ${kind}`);
  await relay.context.storage.write('relay', async (tx) => {
    await tx.run(`UPDATE ${kind}s SET stored_bytes = -1`);
    await tx.run(counting?.statements[1] as string);
  });
}

const full = { code: 'rate_limited', data: { retry_after: 3_600 } };

describe('02 §18: a group', () => {
  test('counts events and messages, gives expired ones back, and an upgrade counts the same', async () => {
    const group = await TestGroup.create(relay, ann);
    const created = await stored('group');
    await group.admit(ben);
    await Promise.all([1, 2, 3, 4].map((n) => group.send(n % 2 === 0 ? ann : ben, 1)));
    await group.rotate();
    await group.ban([ben]);
    const most = await stored('group');
    expect(most).toBeGreaterThan(created);
    await recount('group', groupMigrations);
    expect(await stored('group')).toBe(most);
    relay.clock.advance(month + 1);
    await relay.runJob('groups.retention');
    expect(await relay.rows('group_messages')).toEqual([]);
    expect(await stored('group')).toBeLessThan(most);
  });

  test('with groupStoredBytes gets no more messages until some expire; it is managed', async () => {
    const group = await TestGroup.create(relay, ann);
    await group.admit(ben);
    const message = group.message(ben, 1);
    const repeat = () => relay.codeOf('group.message.send', message, { session: ben.session() });
    expect(await repeat()).toBe('ok');
    await relay.restart({ groupStoredBytes: (await stored('group')) + 1 });
    await group.send(ben, 1);
    const before = await relay.dump();
    await expect(group.send(ben, 1)).rejects.toMatchObject(full);
    expect(await relay.dump()).toEqual(before);
    expect(await repeat()).toBe('ok');
    const other = await TestGroup.create(relay, ann);
    await other.send(ann, 0);
    relay.clock.advance(month + 1);
    await relay.runJob('groups.retention');
    await group.send(ben, 1);
    await relay.restart({ groupStoredBytes: 1 });
    await group.ban([ben]);
  });
});

describe('02 §18: a channel', () => {
  test('counts events, withheld ones too, gives deleted and expired ones back', async () => {
    const channel = await TestChannel.create(relay, ann);
    const created = await stored('channel');
    const [first, second] = await Promise.all([channel.post(), channel.post()]);
    await channel.edit(first, { body: text('another text') });
    const posted = await stored('channel');
    const key = { channelId: channel.channelId, sequence: first };
    await withholdPost(relay.context.storage, key, relay.clock.now());
    expect(await stored('channel')).toBe(posted);
    await recount('channel', channelMigrations);
    expect(await stored('channel')).toBe(posted);
    await restorePost(relay.context.storage, key);
    expect(await stored('channel')).toBe(posted);
    await channel.update({ name: 'Another name' });
    const updated = await stored('channel');
    expect(updated).toBeGreaterThan(posted);
    await channel.delete(second);
    await channel.delete(first);
    await relay.runJob('channels.retention');
    expect(await stored('channel')).toBeLessThan(updated);
    relay.clock.advance(month + 1);
    await relay.runJob('channels.retention');
    expect(await relay.rows('channel_events')).toHaveLength(1);
    expect(await stored('channel')).toBeLessThan(2 * created);
  });

  test('with channelStoredBytes gets no more posts and edits until some are deleted', async () => {
    const channel = await TestChannel.create(relay, ann);
    const post = channel.newPost({ body: text('x'.repeat(2_000)) });
    const sequence = await channel.publish(post);
    await relay.restart({ channelStoredBytes: (await stored('channel')) + 1 });
    const last = await channel.post();
    const before = await relay.dump();
    await expect(channel.post()).rejects.toMatchObject(full);
    await expect(channel.edit(last, { body: text('two') })).rejects.toMatchObject(full);
    expect(await relay.dump()).toEqual(before);
    expect(await channel.publish(post)).toBe(sequence);
    await channel.update({ name: 'Another name' });
    await channel.delete(sequence);
    await channel.edit(last, { body: text('two') });
  });
});
