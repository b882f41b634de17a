/** Attachments at the home relay, through the SDK and the command (decision 0032). */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashReferenceUri } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import type { UploadProgress } from '../../src/attachments/seal-attachment.ts';
import { writeNew } from '../../src/courier/new-file.ts';
import { SqliteStore } from '../../src/node.ts';
import { Person } from '../support/courier.ts';
import { RawSender } from '../support/raw-sender.ts';
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

  test('0032: the progress of an upload is told by parts, and grows to its end', async () => {
    using folder = temporaryFolder();
    const blobs = { folder: folder.path, maxBytes: 1_048_576, accountBytes: 1_048_576 };
    await using large = await RelayWithClients.start({ blobs });
    const [ann] = await large.friends();
    const told: UploadProgress[] = [];
    const reference = await ann.attachments.seal(new Uint8Array(300_000).fill(7), {
      contentType: 'text/plain',
      progress: (progress) => told.push(progress),
    });
    const of = 300_016;
    const parts = [65_536, 131_072, 196_608, 262_144, of];
    expect(told).toEqual(parts.map((sent) => ({ sent, of })));
    expect((await ann.attachments.download(reference)).every((byte) => byte === 7)).toBe(true);
  });

  test("0032: an upload that is refused while it is sent fails with the relay's answer", async () => {
    const [ann] = await world.friends();
    const failing = ann.attachments.seal(new Uint8Array(1_000_000), {
      contentType: 'text/plain',
      progress: () => undefined,
    });
    await expect(failing).rejects.toMatchObject({ code: 'invalid_input' });
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

describe('courier: files of messages', () => {
  let people = 0;

  /** Two contacts, each with an empty folder for files. */
  async function contacts() {
    people += 1;
    const [ann, bob] = [new Person(world, `ann-${people}`), new Person(world, `bob-${people}`)];
    for (const person of [ann, bob]) await person.json('setup', ...person.network);
    const { account } = await bob.json('whoami');
    const { invite } = await ann.json('invite');
    await bob.json('accept', invite, '--as', 'ann');
    await ann.json('accept', account, '--as', 'bob');
    await bob.json('sync');
    const to = join(bob.folder, 'files');
    mkdirSync(to);
    const photo = join(ann.folder, 'photo.png');
    writeFileSync(photo, 'pixels');
    const note = join(ann.folder, 'note.txt');
    writeFileSync(note, 'words');
    return { ann, bob, account, to, photo, note };
  }

  test('a file is sent with a message and fetched by its recipient', async () => {
    const { ann, bob, to, photo } = await contacts();
    await ann.json('send', 'bob', 'look', '--file', photo);
    await ann.json('send', 'bob', '--file', photo);
    const { messages } = await bob.json('inbox');
    expect(messages).toMatchObject([
      { text: 'look', attachments: [{ content_type: 'image/png', size: 6 }] },
      { attachments: [{ content_type: 'image/png' }] },
    ]);
    const { files } = await bob.json('fetch', messages[0].message_id, '--to', to);
    expect(files).toEqual([join(to, `${messages[0].message_id}-1.png`)]);
    expect(readFileSync(files[0], 'utf8')).toBe('pixels');
    const again = await bob.run(['fetch', messages[0].message_id, '--to', to]);
    expect(again.exit).toBe(2);
    expect((await bob.run(['fetch', 'unknown'])).exit).toBe(2);
    expect((await bob.run(['fetch', messages[1].message_id, '--to', photo])).exit).toBe(2);
    expect((await ann.run(['send', 'bob', '--file', join(to, 'missing')])).exit).toBe(2);
  });

  test('a file that its host lost delays no other; the exit status says that one failed', async () => {
    const { ann, bob, to, photo, note } = await contacts();
    const { attachments, message_id: id } = await ann.json(
      ...['send', 'bob', '--file', photo, '--file', note],
    );
    await bob.json('sync');
    rmSync(join(blobs.path, attachments[0].uri.split('/').at(-1)));
    const { exit, out, error } = await bob.run(['fetch', id, '--to', to, '--json']);
    const [, text] = [1, 2].map((n) => join(to, `${id}-${n}${n === 1 ? '.png' : '.txt'}`));
    expect(JSON.parse(out)).toMatchObject({
      files: [text],
      failed: [{ attachment: 1, code: JSON.parse(error).error.code }],
    });
    expect(exit).toBe(6);
    expect(readdirSync(to)).toEqual([`${id}-2.txt`]);
  });

  test('a message of the same ID from another sender needs --from', async () => {
    const { ann, bob, account, to, photo } = await contacts();
    const { message_id: messageId } = await ann.json('send', 'bob', '--file', photo);
    // Bob sends himself a note under the ID that Ann chose.
    {
      await using store = SqliteStore.open(join(bob.folder, 'store.sqlite'));
      await using raw = new RawSender(world, store);
      const body = { content_type: 'text/plain', text: 'mine' };
      await raw.send(account, { $type: 'svc.message.direct', body }, { messageId });
    }
    await bob.json('sync');
    const unclear = await bob.run(['fetch', messageId, '--to', to]);
    expect(unclear).toMatchObject({ exit: 2, error: expect.stringContaining('--from') });
    expect((await bob.run(['fetch', messageId, '--to', to, '--from', 'me'])).exit).toBe(2);
    const { files } = await bob.json('fetch', messageId, '--to', to, '--from', 'ann');
    expect(readFileSync(files[0], 'utf8')).toBe('pixels');
  });

  test('groups and channels carry files, too', async () => {
    const { ann, bob, account, to, photo, note } = await contacts();
    await ann.json('group', 'create', 'Pictures');
    const { invite } = await ann.json('group', 'invite', 'Pictures');
    await bob.json('group', 'join', invite);
    await ann.json('group', 'approve', 'Pictures', account);
    const { sequence } = await ann.json('group', 'send', 'Pictures', '--file', photo);
    const { link } = await ann.json('channel', 'create', 'News');
    const post = await ann.json('channel', 'post', 'News', 'read', '--file', note);
    await bob.json('channel', 'follow', link);
    await bob.json('group', 'read', 'Pictures');
    const [fromGroup, fromChannel] = [
      await bob.json('group', 'fetch', 'Pictures', String(sequence), '--to', to),
      await bob.json('channel', 'fetch', 'News', String(post.sequence), '--to', to),
    ];
    expect(readFileSync(fromGroup.files[0], 'utf8')).toBe('pixels');
    expect(readFileSync(fromChannel.files[0], 'utf8')).toBe('words');
    for (const args of [
      ['group', 'fetch', 'Pictures', '1'],
      ['group', 'fetch', 'Pictures', '99'],
      ['channel', 'fetch', 'News', '99'],
    ]) {
      expect((await bob.run(args)).exit).toBe(2);
    }
  });

  test('a write that fails leaves no part of the file, and replaces no other', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'photo.png');
    async function* cut() {
      yield 'pix';
      // Until it is whole, nothing has the name.
      expect(readdirSync(folder.path)).toEqual([expect.stringMatching(/\.part$/)]);
      throw new Error('the disk is full');
    }
    await expect(writeNew(path, cut(), '--to')).rejects.toThrow('--to: the disk is full');
    expect(readdirSync(folder.path)).toEqual([]);
    await writeNew(path, 'pixels', '--to');
    await expect(writeNew(path, 'other', '--to')).rejects.toThrow(`${path} exists`);
    expect(readFileSync(path, 'utf8')).toBe('pixels');
    expect(readdirSync(folder.path)).toEqual(['photo.png']);
  });
});
