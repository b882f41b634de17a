/** Attachments at the home relay, through the SDK and the command (decision 0032). */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashReferenceUri } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import { Person } from '../support/courier.ts';
import { RelayWithClients } from '../support/relay-with-clients.ts';

const blobs = temporaryFolder();
const world = new RelayWithClients({
  blobs: { folder: blobs.path, maxBytes: 8_192, accountBytes: 12_288 },
});
beforeAll(() => world.start());
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  blobs[Symbol.dispose]();
});

const stored = () => readdirSync(blobs.path).filter((name) => name !== 'posthouse-blobs');
const content = new TextEncoder().encode('the minutes');

describe('account.attachments at the home relay', () => {
  test('seals, stores without being able to read, and downloads', async () => {
    const [ann] = await world.friends();
    const reference = await ann.attachments.seal(content, { contentType: 'text/plain' });
    const [name = ''] = stored();
    expect(reference.uri).toBe(`${world.relay.https[0]}/blobs/${name}`);
    expect(readFileSync(join(blobs.path, name)).includes(Buffer.from(content))).toBe(false);
    expect(Buffer.from(await ann.attachments.download(reference)).toString()).toBe('the minutes');
  });

  test('a file over the limits of the relay is refused with what to do', async () => {
    const [ann] = await world.friends();
    const seal = (bytes: number) =>
      ann.attachments.seal(new Uint8Array(bytes), { contentType: 'text/plain' });
    await expect(seal(8_192)).rejects.toMatchObject({ code: 'invalid_input' });
    await seal(8_176);
    await expect(seal(4_097)).rejects.toMatchObject({ error: 'rate_limited' });
  });

  test('a relay that stores none is named as the cause, and nothing is sent', async () => {
    await using plain = await RelayWithClients.start();
    const [ann] = await plain.friends();
    const failing = ann.attachments.seal(content, { contentType: 'text/plain' });
    await expect(failing).rejects.toMatchObject({ code: 'no_relay' });
    await expect(failing).rejects.toThrow(/pass an `uploader`/);
  });
});

describe('04 §8.1: before a message is sent, each reference has its attachment', () => {
  const own = `sha256:${'A'.repeat(43)}`;
  const attachment = { uri: 'https://files.example/1', hash: own, content_type: 'a/b', size: 1 };
  const draft = (text: string) => ({
    text,
    contentType: 'text/markdown',
    attachments: [attachment],
  });

  test('a direct message with a reference to nothing of its own is refused', async () => {
    const [ann] = await world.friends();
    const missing = draft(`![x](ni:///sha-256;${'B'.repeat(42)}A)`);
    const failing = ann.messages.send(ann.id, missing);
    await expect(failing).rejects.toMatchObject({ code: 'invalid_input' });
    expect((await ann.status()).outbox).toBe(0);
    const good = draft(`![x](${hashReferenceUri(own)})`);
    await ann.messages.send(ann.id, good);
  });
});

test('courier: a file is sent with a message and fetched by its recipient', async () => {
  const [ann, bob] = [new Person(world, 'ann'), new Person(world, 'bob')];
  for (const person of [ann, bob]) await person.json('setup', ...person.network);
  const { account } = await bob.json('whoami');
  const { invite } = await ann.json('invite');
  await bob.json('accept', invite, '--as', 'ann');
  await ann.json('accept', account, '--as', 'bob');
  await bob.json('sync');
  const path = join(world.folder, 'photo.png');
  writeFileSync(path, 'pixels');
  await ann.json('send', 'bob', 'look', '--file', path);
  await ann.json('send', 'bob', '--file', path);
  const { messages } = await bob.json('inbox');
  expect(messages).toMatchObject([
    { text: 'look', attachments: [{ content_type: 'image/png', size: 6 }] },
    { attachments: [{ content_type: 'image/png' }] },
  ]);
  const to = join(world.folder, 'fetched');
  mkdirSync(to);
  const { files } = await bob.json('fetch', messages[0].message_id, '--to', to);
  expect(files).toEqual([join(to, `${messages[0].message_id}-1.png`)]);
  expect(readFileSync(files[0], 'utf8')).toBe('pixels');
  const again = await bob.run(['fetch', messages[0].message_id, '--to', to]);
  expect(again.exit).toBe(2);
  expect((await bob.run(['fetch', 'unknown'])).exit).toBe(2);
  expect((await ann.run(['send', 'bob', '--file', join(to, 'missing')])).exit).toBe(2);
});
