/** `courier channel`, with one folder per account. */
import { expect, test } from 'vitest';
import { Person } from '../support/courier.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { channels: true } });

let people = 0;
async function someone(name: string): Promise<{ person: Person; account: string }> {
  people += 1;
  const person = new Person(world, `${name}${people}`);
  const { account } = await person.json('setup', ...person.network);
  return { person, account };
}

async function lines(person: Person, ...args: string[]): Promise<string[]> {
  const { exit, out, error } = await person.run(args);
  if (exit !== 0) throw new Error(`courier ${args.join(' ')}: exit ${exit}: ${error}`);
  return out.trimEnd().split('\n');
}

test('create, follow, post, edit, delete, report, close', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  const about = ['--description', 'of the day', '--moderator', bob.account];
  const news = await ann.person.json('channel', 'create', 'The', 'News', ...about);
  expect(news).toMatchObject({ name: 'The News', role: 'owner', moderators: [bob.account] });
  const { sequence } = await ann.person.json('channel', 'post', 'The News', 'Rain', 'today');
  expect(await lines(bob.person, 'channel', 'read', news.link)).toEqual([
    expect.stringMatching(/^ +0 {2}\* neo:\S+ created the channel: "The News"$/),
    expect.stringMatching(/^ +1 .*neo:\S+: Rain today$/),
  ]);
  expect(await bob.person.json('channel', 'list')).toEqual({ channels: [] });
  expect(await bob.person.json('channel', 'follow', news.link)).toMatchObject({
    channel: news.channel,
    role: 'moderator',
    standing: 'followed',
  });
  await bob.person.json('channel', 'edit', 'The News', String(sequence), 'Rain', 'tomorrow');
  const from = { input: '# Sun\u001b[31m\n\n![sun](ni:///sha-256;AAAA)' };
  const posted = await bob.person.run(['channel', 'post', news.channel, '--markdown'], from);
  expect(posted).toMatchObject({ exit: 2 });
  const { error } = posted;
  expect(error).toContain('attachment reference');
  await bob.person.run(['channel', 'post', news.channel, '--markdown'], {
    input: '# Sun\u001b[31m',
  });
  expect(await lines(ann.person, 'channel', 'read', 'The News', '--after', '0')).toEqual([
    expect.stringMatching(/^ +1 .*me: Rain tomorrow \(edited\)$/),
    expect.stringMatching(/^ +3 .*neo:\S+: # Sun.?\[31m$/),
  ]);
  const { entries } = await ann.person.json('channel', 'read', 'The News', '--after', '1');
  expect(entries).toMatchObject([
    {
      kind: 'post',
      sequence: 3,
      from: bob.account,
      content_type: expect.stringMatching(/markdown/),
    },
  ]);
  await ann.person.json('channel', 'delete', 'The News', '3', '--reason', 'shouting');
  expect((await lines(bob.person, 'channel', 'read', 'The News')).at(-1)).toMatch(
    /^ +4 {2}\* neo:\S+ deleted 3: shouting$/,
  );
  expect(await bob.person.json('channel', 'report', 'The News', '1', 'not', 'true')).toMatchObject({
    sequence: 1,
  });
  expect(
    await ann.person.json('channel', 'update', 'The News', '--name', 'Olds', '--no-moderators'),
  ).toMatchObject({ name: 'Olds', moderators: [], revision: 1, description: 'of the day' });
  // Bob's device does not know the new revision until it syncs; the host does.
  const post = () => bob.person.run(['channel', 'post', news.channel, 'still?']);
  expect((await post()).exit).toBe(5);
  await bob.person.run(['channel', 'list']);
  expect((await post()).exit).toBe(7);
  expect(await ann.person.json('channel', 'close', 'Olds')).toMatchObject({ status: 'closed' });
  expect(await bob.person.json('channel', 'show', news.channel)).toMatchObject({
    status: 'closed',
    name: 'Olds',
    role: 'reader',
  });
  await bob.person.json('channel', 'unfollow', news.channel);
  expect(await bob.person.json('channel')).toEqual({ channels: [] });
});

test('reads pages by channel ID, followed or not', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  const { channel, relay } = await ann.person.json('channel', 'create', 'Numbers');
  for (const number of ['one', 'two', 'three']) {
    await ann.person.json('channel', 'post', 'Numbers', number);
  }
  const texts = async (...args: string[]) => {
    const { entries, has_more } = await bob.person.json('channel', 'read', channel, ...args);
    return [entries.map((entry: { text?: string }) => entry.text ?? '*'), has_more];
  };
  for (const step of ['a look', 'followed']) {
    expect(await texts('--limit', '2'), step).toEqual([['two', 'three'], true]);
    expect(await texts('--before', '2')).toEqual([['*', 'one'], false]);
    expect(await texts('--after', '1', '--limit', '1')).toEqual([['two'], true]);
    await bob.person.json('channel', 'follow', channel, '--relay', relay, '--from-creation');
  }
  for (const args of [
    ['read', 'an unknown channel'],
    ['read', channel, '--before', '1', '--after', '1'],
    ['read', channel, '--before', 'x'],
    ['edit', 'Numbers', '0', 'text'],
    ['update', 'Numbers'],
  ]) {
    expect((await bob.person.run(['channel', ...args])).exit, args.join(' ')).toBe(2);
  }
  expect((await bob.person.run(['channel', 'follow', 'svc-channel:AAAA'])).exit).toBe(6);
});

test('watch --json prints one JSON object per event', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  const { channel, link } = await ann.person.json('channel', 'create', 'Live');
  await bob.person.json('channel', 'follow', link);
  const watching = bob.person.start(['channel', 'watch', channel, '--json']);
  const events = () => watching.objects().map(({ event }) => event);
  await expect.poll(events).toContain('entry');
  await ann.person.json('channel', 'post', 'Live', 'first');
  await ann.person.json('channel', 'edit', 'Live', '1', 'second');
  await ann.person.json('channel', 'delete', 'Live', '1');
  await expect.poll(events).toContain('channel-deleted');
  watching.stop();
  await watching.exit;
  const seen = watching.objects();
  expect(seen[0]).toMatchObject({ event: 'entry', entry: { kind: 'change', sequence: 0 } });
  expect(seen.at(-1)).toEqual({ event: 'channel-deleted', channel, sequence: 1, by: ann.account });
});

test('watch shows each entry once, also what another program of the folder reads meanwhile', async () => {
  const [ann, bob] = [await someone('ann'), await someone('bob')];
  const { channel, link } = await ann.person.json('channel', 'create', 'Live');
  await bob.person.json('channel', 'follow', link);
  const post = (text: string) => ann.person.json('channel', 'post', 'Live', text);
  await post('listed');
  // The command waits for the reader of its output after the list, before it follows.
  const [waiting, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const drained = async () => {
    waiting.resolve();
    await goOn.promise;
  };
  const watching = bob.person.start(['channel', 'watch', channel, '--json'], { drained });
  const seen = () => watching.objects().flatMap(({ entry }) => entry?.text ?? entry?.kind ?? []);
  await waiting.promise;
  for (const text of ['one', 'two']) await post(text);
  await ann.person.json('channel', 'delete', 'Live', '2');
  await bob.person.json('sync');
  expect(seen()).toEqual(['change', 'listed']);
  goOn.resolve();
  await expect.poll(seen).toEqual(['change', 'listed', 'gap', 'two', 'deletion']);
  await post('three');
  await expect.poll(seen).toEqual(['change', 'listed', 'gap', 'two', 'deletion', 'three']);
  watching.stop();
  expect(await watching.exit).toBe(0);
});

test('a name that equals another channel’s address does not match that channel', async () => {
  const [ann, bob, eve] = [await someone('ann'), await someone('bob'), await someone('eve')];
  const news = await ann.person.json('channel', 'create', 'News');
  const byId = await eve.person.json('channel', 'create', news.channel);
  const byLink = await eve.person.json('channel', 'create', news.link);
  for (const { link } of [byId, byLink]) await bob.person.json('channel', 'follow', link);
  const unknown = await bob.person.run(['channel', 'show', news.channel]);
  expect(unknown).toMatchObject({
    exit: 2,
    error: expect.stringContaining('is not followed here'),
  });
  await bob.person.json('channel', 'follow', news.link);
  for (const name of [news.channel, news.link]) {
    expect(await bob.person.json('channel', 'show', name)).toMatchObject({
      channel: news.channel,
    });
  }
});
