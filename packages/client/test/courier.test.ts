/** The command `courier`. */
import { spawn } from 'node:child_process';
import { createCipheriv, scryptSync } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { accountSigner, utf8 } from '@posthouse/protocol';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { describe, expect, test } from 'vitest';
import { qrCode } from '../src/courier/qr-code.ts';
import { SqliteStore } from '../src/node.ts';
import { Person } from './support/courier.ts';
import { RawSender } from './support/raw-sender.ts';
import { network, relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();
let count = 0;

const newPerson = () => {
  count += 1;
  return new Person(world, `person-${count}`);
};

async function newAccount(): Promise<Person & { account: string }> {
  const person = newPerson();
  const { account } = await person.json('setup', ...person.network);
  return Object.assign(person, { account });
}

async function contacts(): Promise<[Person & { account: string }, Person & { account: string }]> {
  const [ann, bob] = [await newAccount(), await newAccount()];
  const { invite } = await ann.json('invite');
  await bob.json('accept', invite, '--as', 'ann');
  await ann.json('accept', bob.account, '--as', 'bob');
  await bob.json('sync');
  return [ann, bob];
}

describe('setup', () => {
  test('creates an account; folder and files are readable by their owner only', async () => {
    const ann = newPerson();
    const { exit, out, error } = await ann.run(['setup', ...ann.network]);
    expect({ exit, lines: out.split('\n').length }).toEqual({ exit: 0, lines: 5 });
    expect(error).toContain('courier key export');
    const mode = (name: string) => statSync(join(ann.folder, name)).mode & 0o777;
    expect(statSync(ann.folder).mode & 0o777).toBe(0o700);
    expect([mode('store.sqlite'), mode('courier.json')]).toEqual([0o600, 0o600]);
  });

  test('stores the network, so that later commands need no flags', async () => {
    const ann = await newAccount();
    const me = await ann.json('whoami');
    expect(me).toMatchObject({ account: ann.account, relay: world.relay.relayId });
    expect(Object.keys(me)).toEqual(['account', 'device', 'public_key', 'relay']);
  });

  test('accepts the URL of a relay and trusts its ID once', async () => {
    const ann = newPerson();
    const [, , ...ca] = ann.network;
    const relay = world.relay.https[0] as string;
    const { relay: home } = await ann.json(
      ...['setup', '--relay', relay, '--network', network.context, ...ca],
    );
    expect(home).toBe(world.relay.relayId);
    const written = readFileSync(join(ann.folder, 'registry.json'), 'utf8');
    expect(JSON.parse(written).relays).toHaveLength(1);
  });

  test('an existing folder keeps its mode; files written to it are private', async () => {
    const ann = newPerson();
    mkdirSync(ann.folder, { recursive: true });
    chmodSync(ann.folder, 0o755);
    await ann.json('setup', ...ann.network);
    const modes = ['', 'store.sqlite', 'courier.json'].map(
      (name) => statSync(join(ann.folder, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o755, 0o600, 0o600]);
  });

  test('is refused a second time with its own exit status', async () => {
    const ann = await newAccount();
    const { exit, error } = await ann.run(['setup', ...ann.network, '--json']);
    expect({ exit, ...JSON.parse(error) }).toMatchObject({
      exit: 3,
      error: { code: 'already_set_up' },
    });
  });

  test('prints no secret except by key export', async () => {
    const ann = newPerson();
    const printed = await ann.run(['setup', ...ann.network, '--json']);
    const { account_private_key: key } = await ann.json('key', 'export');
    expect(key).toMatch(/^[A-Za-z0-9_-]{43}$/);
    for (const args of [['whoami'], ['status'], ['devices'], ['contacts'], ['inbox']]) {
      const { out, error } = await ann.run([...args, '--json']);
      expect(out + error + printed.out + printed.error).not.toContain(key);
    }
    // The verb must be named.
    expect(await ann.run(['key'])).toMatchObject({ exit: 2, out: '' });
  });
});

describe('contacts and messages', () => {
  test('invite, accept, send, inbox', async () => {
    const [ann, bob] = await contacts();
    const { contacts: known } = await ann.json('contacts');
    expect(known).toEqual([{ account: bob.account, alias: 'bob', standing: 'active' }]);
    const sent = await ann.json('send', 'bob', 'hello', 'there');
    expect(sent).toMatchObject({
      direction: 'out',
      text: 'hello there',
      status: 'target_accepted',
    });
    const { messages } = await bob.json('inbox');
    expect(messages).toMatchObject([{ direction: 'in', from: ann.account, text: 'hello there' }]);
    const { out } = await bob.run(['inbox']);
    expect(out).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d {2}ann: hello there\n$/);
  });

  test('a local name given with a request is stored, and can be changed', async () => {
    const [ann, bob] = await contacts();
    expect((await bob.json('contacts')).contacts).toMatchObject([{ alias: 'ann' }]);
    await bob.json('contacts', 'rename', 'ann', 'Anna');
    expect((await bob.json('contacts')).contacts).toMatchObject([{ alias: 'Anna' }]);
    expect((await bob.run(['contacts', 'rename', 'Anna', ' '])).exit).toBe(2);
    await bob.json('send', 'Anna', 'hello');
    expect((await ann.json('inbox')).messages).toHaveLength(1);
  });

  test('a local name is none that commands take for something else', async () => {
    const [ann, bob] = await contacts();
    const carl = await newAccount();
    const { invite } = await carl.json('invite');
    const taken = ['me', ann.account, 'ann', '', ' Ann'];
    for (const name of taken) {
      const { exit, error } = await bob.run(['accept', invite, '--as', name]);
      expect([name, exit], error).toEqual([name, 2]);
    }
    await bob.json('accept', invite, '--as', 'carl');
    for (const name of taken) {
      expect((await bob.run(['contacts', 'rename', 'carl', name])).exit, name).toBe(2);
    }
    await bob.json('contacts', 'rename', 'ann', 'ann');
  });

  test('a contact is named by the end of its ID as it is shown, not by what it calls itself', async () => {
    const [ann, bob] = await contacts();
    await ann.json('profile', '--nickname', 'Nora');
    await bob.run(['profile', 'ann']);
    const refused = await bob.run(['send', 'Nora', 'x']);
    expect([refused.exit, refused.error]).toEqual([
      2,
      expect.stringContaining(`…${ann.account.slice(-6)} calls itself so`),
    ]);
    await bob.json('send', `…${ann.account.slice(-6)}`, 'by its end');
    await bob.json('send', ann.account.slice(-8), 'and by more of it');
    expect((await bob.run(['send', ann.account.slice(-5), 'x'])).exit).toBe(2);
    expect((await ann.json('inbox')).messages).toMatchObject([
      { text: 'by its end' },
      { text: 'and by more of it' },
    ]);
  });

  test('conversations are listed with what is unread', async () => {
    const [ann, bob] = await contacts();
    await ann.json('send', 'bob', 'one');
    await ann.json('send', 'bob', 'two');
    await bob.json('send', 'me', 'a note');
    const { conversations } = await bob.json('conversations');
    const byId = Map.groupBy(conversations, ({ id }: { id: string }) => id);
    expect(byId.get(bob.account)).toMatchObject([
      { kind: 'person', unread: 0, last: { text: 'a note' } },
    ]);
    expect(byId.get(ann.account)).toMatchObject([
      { kind: 'person', unread: 2, last: { text: 'two' } },
    ]);
    expect((await bob.json('conversations', '--limit', '1')).conversations).toHaveLength(1);
    const { out } = await bob.run(['conversations']);
    expect(out).toMatch(/person +me +a note$/m);
    expect(out).toMatch(/person +ann +2 unread +two$/m);
  });

  test('the line feed that ends standard input is not sent', async () => {
    const [ann, bob] = await contacts();
    await ann.run(['send', 'bob'], { input: 'one\n\n' });
    expect((await bob.json('inbox')).messages).toMatchObject([{ text: 'one\n' }]);
  });

  test('wrong arguments are answered with the help that lists the right ones', async () => {
    const [ann] = await contacts();
    const errors = async (...args: string[]) => (await ann.run(args)).error;
    expect(await errors('devices', 'approve', 'a', 'b')).toContain(
      'courier devices approve --help',
    );
    expect(await errors('devices', 'aprove')).toContain('see: courier devices --help');
    expect(await errors('invite', 'x')).toMatch(/but got 1; see: courier invite --help/);
  });

  test('send reads its text from standard input', async () => {
    const [ann, bob] = await contacts();
    const { exit } = await ann.run(['send', 'bob', '--markdown'], { input: '# Big\n\nnews' });
    expect(exit).toBe(0);
    const { messages } = await bob.json('inbox');
    expect(messages).toMatchObject([
      { text: '# Big\n\nnews', content_type: expect.stringContaining('markdown') },
    ]);
  });

  test('an empty recipient is refused: the next word does not take its place', async () => {
    const [ann, bob] = await contacts();
    for (const command of [['send'], ['group', 'send'], ['channel', 'post']]) {
      const { exit, error } = await ann.run([...command, '', 'bob', 'secret']);
      expect({ exit, error }).toMatchObject({ exit: 2, error: expect.stringContaining('empty') });
    }
    expect((await bob.json('inbox')).messages).toEqual([]);
    expect((await ann.run(['send', 'bob', ''], { input: 'not read' })).exit).toBe(2);
    await ann.json('send', 'bob', 'in', 'words');
    expect((await bob.json('inbox')).messages).toMatchObject([{ text: 'in words' }]);
  });

  test('received text cannot control the terminal', async () => {
    const [ann, bob] = await contacts();
    await ann.json('send', 'bob', 'a\u001b[2Jb\u202ec\r\n2025-01-01 00:00  ann: forged');
    const { out } = await bob.run(['inbox']);
    expect(out).toContain('a [2Jb c\n    2025-01-01');
  });

  test('objects of an unknown type cannot control the terminal or break the output', async () => {
    const [ann, bob] = await contacts();
    await using store = SqliteStore.open(join(ann.folder, 'store.sqlite'));
    await using raw = new RawSender(world, store);
    const type = 'example.\u001b[2Jpoll';
    for (const body of [5, { text: 5 }, { text: { deep: true } }]) {
      await raw.send(bob.account, { $type: type, body, attachments: [5], reply_to: 'x' });
    }
    const { out, exit } = await bob.run(['inbox']);
    expect({ exit, lines: out.match(/ann: \[example\. \[2Jpoll\]\n/g) }).toMatchObject({
      exit: 0,
      lines: { length: 3 },
    });
    const { messages } = await bob.json('inbox');
    expect(messages).toHaveLength(3);
    expect(messages[0]).not.toHaveProperty('text');
  });

  test('--json prints the same text without control characters', async () => {
    const [ann, bob] = await contacts();
    const text = '\u001b[2J \u009b2J \u202e';
    await ann.json('send', 'bob', text);
    const { out } = await bob.run(['inbox', '--json']);
    expect(out).toMatch(/^[\x20-\x7e]+\n$/);
    expect(JSON.parse(out).messages).toMatchObject([{ text }]);
  });

  test('contacts are synced before they are shown; without a relay, the stored ones are shown', async () => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    const { invite } = await ann.json('invite');
    await bob.json('accept', invite, '--as', 'ann', '--note', 'bob');
    const { out: pending } = await ann.run(['contacts']);
    expect(pending).toBe(`asks  ${bob.account}    "bob"\n`);
    await ann.json('accept', bob.account);
    await world.stopRelay();
    const { out, error, exit } = await bob.run(['contacts']);
    await world.startRelay();
    expect({ out, exit }).toEqual({ out: `waiting  ${ann.account}  ann\n`, exit: 0 });
    expect(error).toContain('cannot be reached');
  });

  test('without a relay, inbox shows stored messages and fails', async () => {
    const [ann, bob] = await contacts();
    await ann.json('send', 'bob', 'before');
    await bob.json('sync');
    await world.stopRelay();
    const { out, error, exit } = await bob.run(['inbox']);
    await world.startRelay();
    expect({ exit, shown: out.endsWith('ann: before\n') }).toEqual({ exit: 4, shown: true });
    expect(error).toContain('no answer from');
  });

  test('send reads an unread answer to a contact request first', async () => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    const { invite } = await ann.json('invite');
    await bob.json('accept', invite, '--as', 'ann');
    expect((await bob.run(['send', 'ann', 'hello'])).error).toContain('has not answered yet');
    await ann.json('accept', bob.account);
    expect((await bob.json('send', 'ann', 'hello')).status).toBe('target_accepted');
  });

  test('only a request can be rejected', async () => {
    const ann = await newAccount();
    expect((await ann.run(['reject', 'neo:0:nemo'])).exit).toBe(2);
    expect((await ann.json('contacts')).contacts).toEqual([]);
  });

  test('a request is shown until it is decided', async () => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    const { invite } = await ann.json('invite', '--days', '1');
    await bob.json('accept', invite, '--note', 'from the fair');
    const { error } = await ann.run(['inbox']);
    expect(error).toContain(`courier accept ${bob.account}`);
    expect((await ann.run(['inbox'])).error).toContain('from the fair');
    await ann.json('reject', bob.account);
    expect((await ann.run(['inbox'])).error).toBe('');
    expect((await bob.json('contacts')).contacts).toMatchObject([{ standing: 'awaiting' }]);
  });

  test('removing a contact ends it', async () => {
    const [ann, bob] = await contacts();
    await ann.json('contacts', 'remove', 'bob');
    expect((await ann.json('contacts')).contacts).toEqual([]);
    await bob.json('send', 'ann', 'hello?');
    const { out, error } = await ann.run(['inbox']);
    expect({ out, refused: error.includes('no_relationship') }).toEqual({ out: '', refused: true });
  });

  test('the profile is published and read', async () => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    await ann.json('profile', '--nickname', 'Ann', '--public');
    expect((await bob.json('profile', ann.account)).profile).toMatchObject({
      nickname: 'Ann',
      public_discovery: true,
    });
    expect((await bob.json('profile')).profile).toBeNull();
    await bob.json('accept', ann.account);
    expect((await ann.run(['inbox'])).error).toContain(bob.account);
  });
});

describe('names, unread messages and requests', () => {
  test('a profile names an account without a local name: quoted, with the end of the ID', async () => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    await bob.json('profile', '--nickname', 'Bob" \u202e', '--public');
    await ann.json('profile', '--nickname', 'Ann', '--public');
    const asked = await ann.run(['accept', bob.account, '--note', 'hi']);
    const named = `"Bob\\" [U+202E]" (${bob.account})`;
    expect(asked.out).toBe(`asked ${named}; waiting for the answer\n`);
    expect((await bob.run(['inbox'])).error).toContain(`"Ann" (${ann.account}) asks to be`);
    expect(await bob.json('inbox')).toMatchObject({
      requests: [{ account: ann.account, note: 'hi' }],
    });
    expect((await bob.run(['contacts'])).out).toBe(`asks  ${ann.account}  "Ann"  "hi"\n`);
    expect((await bob.run(['accept', ann.account])).out).toBe(
      `"Ann" (${ann.account}) is a contact\n`,
    );
    await ann.json('sync');
    await ann.json('send', bob.account, 'hello');
    expect((await bob.run(['inbox'])).out).toMatch(/ {2}\* "Ann" \(….{6}\): hello\n$/);
    expect((await bob.run(['inbox', '--ids'])).out).toContain(`  ${ann.account}: hello\n`);
    await bob.json('contacts', 'rename', ann.account, 'Annie');
    expect((await bob.run(['inbox'])).out).toMatch(/ {2}Annie: hello\n$/);
  });

  test('what is shown is marked and then read; a conversation is shown alone', async () => {
    const [ann, bob] = await contacts();
    for (const text of ['one', 'two', 'three']) await ann.json('send', 'bob', text);
    await bob.json('send', 'me', 'a note');
    const unreadOf = async (...args: string[]) => {
      const { messages } = await bob.json('inbox', ...args);
      return messages.map(({ text, unread = false }: { text: string; unread?: boolean }) =>
        unread ? `* ${text}` : text,
      );
    };
    const cut = await bob.run(['inbox', '--with', 'ann', '--limit', '2']);
    expect(cut.error).toContain('1 older unread message is not shown');
    expect(await unreadOf('--keep-unread')).toEqual(['a note', '* one', '* two', '* three']);
    expect(await unreadOf('--with', 'me')).toEqual(['a note']);
    const { out } = await bob.run(['inbox', '--with', 'ann']);
    expect(out.split('\n').map((line) => line.slice(16))).toEqual([
      '  * ann: one',
      '  * ann: two',
      '  * ann: three',
      '',
    ]);
    expect(await unreadOf()).toEqual(['a note', 'one', 'two', 'three']);
    await ann.json('send', 'bob', 'four');
    expect(await unreadOf('--with', 'ann', '--limit', '1')).toEqual(['* four']);
    expect(await unreadOf('--limit', '0')).toEqual([]);
    expect((await bob.run(['inbox', '--with', 'nemo'])).exit).toBe(2);
  });

  test('a followed inbox marks what it shows as read, and begins with requests', async () => {
    const [ann, bob] = await contacts();
    const eve = await newAccount();
    const { invite } = await bob.json('invite');
    await eve.json('accept', invite, '--note', 'eve');
    const follow = bob.start(['inbox', '--follow', '--json', '--with', 'ann']);
    await expect
      .poll(follow.objects)
      .toContainEqual({ event: 'request', account: eve.account, note: 'eve' });
    await bob.json('send', 'me', 'not of this conversation');
    await ann.json('send', 'bob', 'hello');
    await expect.poll(follow.objects).toContainEqual(expect.objectContaining({ event: 'message' }));
    follow.stop();
    expect(await follow.exit).toBe(0);
    expect(follow.objects().filter(({ event }) => event === 'message')).toHaveLength(1);
    expect((await bob.json('inbox')).messages[1]).not.toHaveProperty('unread');
  });
});

describe('devices', () => {
  test('03 §18: one send is enough for a contact whose grant is of a device that was replaced', async () => {
    const [ann, bob] = await contacts();
    const laptop = newPerson();
    const [ask, answer] = [join(world.folder, 'ask-2.json'), join(world.folder, 'answer-2.json')];
    const { public_key: key, device: old } = await ann.json('whoami');
    await laptop.json('devices', 'request', '--account-key', key, '--out', ask, ...laptop.network);
    await ann.json('devices', 'approve', ask, '--out', answer);
    await laptop.json('devices', 'complete', answer, '--account-key', key);
    for (const device of [ann, laptop, ann, laptop]) await device.json('sync');
    await ann.json('devices', 'remove', old, '--force');
    await laptop.json('sync');
    expect(await bob.json('send', 'ann', 'once')).toMatchObject({ status: 'target_accepted' });
    expect((await laptop.json('inbox')).messages).toMatchObject([{ text: 'once' }]);
  });

  test('a second device joins; the account key stays on the first', async () => {
    const [ann, bob] = await contacts();
    const laptop = newPerson();
    const [ask, answer] = [join(world.folder, 'ask.json'), join(world.folder, 'answer.json')];
    const { public_key: key } = await ann.json('whoami');
    const { device } = await laptop.json(
      ...['devices', 'request', '--account-key', key, '--out', ask, ...laptop.network],
    );
    await ann.json('devices', 'approve', ask, '--device', device, '--out', answer);
    const joined = await laptop.json('devices', 'complete', answer, '--account-key', key);
    expect(joined).toEqual({ account: ann.account, device });
    await ann.json('sync');
    await laptop.json('sync');
    await bob.json('sync');
    await bob.json('send', 'ann', 'to both of you');
    for (const device of [ann, laptop]) {
      expect((await device.json('inbox')).messages).toMatchObject([{ text: 'to both of you' }]);
    }
    expect((await laptop.run(['key', 'export'])).exit).toBe(8);
    expect((await ann.run(['devices'])).error).toContain(`courier devices hand-over ${device}`);
    const handed = await ann.json('devices', 'hand-over', device, '--with', 'bob', '--days', '1');
    expect(handed).toEqual({ device, sent: 1, skipped: 0, total: 1, complete: true });
    expect((await ann.json('devices')).devices[1]).not.toHaveProperty('history');
    expect(await ann.json('devices', 'hand-over', device)).toMatchObject({ complete: true });
    expect((await laptop.run(['sync'])).exit).toBe(0);
    expect((await laptop.json('inbox')).messages).toHaveLength(1);
    const { devices } = await ann.json('devices');
    expect(devices).toMatchObject([{}, { device, history: 'handed-over' }]);
    const own = await ann.run(['devices', 'remove', devices[0].device]);
    expect(own).toMatchObject({ exit: 2, error: expect.stringContaining('--force') });
    await ann.json('devices', 'remove', device);
    expect((await ann.json('devices')).devices).toHaveLength(1);
    expect((await laptop.run(['inbox'])).exit).toBe(5);
  });

  test('an approval for another account is refused', async () => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    const laptop = newPerson();
    const ask = join(world.folder, 'ask-2.json');
    const { public_key: key } = await ann.json('whoami');
    await laptop.json('devices', 'request', '--account-key', key, '--out', ask, ...laptop.network);
    const { exit, error } = await bob.run(['devices', 'approve', ask, '--json']);
    expect({ exit, ...JSON.parse(error) }).toMatchObject({
      exit: 6,
      error: { code: 'verification_failed' },
    });
  });

  test('renewing keeps the device', async () => {
    const ann = await newAccount();
    const renewed = await ann.json('devices', 'renew');
    expect((await ann.json('devices')).devices).toEqual([renewed]);
  });
});

describe('failures', () => {
  test.each([
    ['an unknown command', ['gallop'], 2],
    ['no account yet', ['inbox'], 3],
    ['setup without a network', ['setup'], 2],
    ['a registry that is not there', ['setup', '--registry', '/nowhere/registry.json'], 2],
  ])('%s', async (_, args, exit) => {
    const ran = await newPerson().run(args);
    expect(ran.exit).toBe(exit);
    expect(ran.out).toBe('');
    expect(ran.error).not.toContain('    at ');
  });

  test.each([
    ['an unknown command', ['gallop'], "unknown command 'gallop'"],
    ['a missing argument', ['accept'], "missing required argument 'whom'"],
    ['an unknown option', ['inbox', '--fast'], "unknown option '--fast'"],
    [
      'a value that is not one of the choices',
      ['sync', '--registry-agree', '3'],
      'Allowed choices',
    ],
    ['an unknown verb of a command', ['group', 'gallop'], "unknown command 'gallop'"],
    ['no command', [], "unknown option '--json'"],
    ['a wrong number', ['inbox', '--limit', 'many'], '--limit'],
  ])('with --json, %s is one JSON object', async (_, args, message) => {
    const person = newPerson();
    if (args[0] === 'inbox') await person.json('setup', ...person.network);
    const { exit, out, error } = await person.run([...args, '--json']);
    expect({ exit, out, lines: error.split('\n').length }).toEqual({ exit: 2, out: '', lines: 2 });
    expect(JSON.parse(error)).toEqual({
      error: { code: 'usage', message: expect.stringContaining(message) },
    });
  });

  test.each([
    ['send', "missing required argument 'to'; see: courier send --help"],
    ['send me', 'the text is empty: give a text, or a file with --file'],
    ['inbox --fast', "unknown option '--fast'; see: courier inbox --help"],
    ['group gallop', "unknown command 'gallop'; see: courier group --help"],
    ['serve', "required option '--stdio' not specified; see: courier serve --help"],
  ])('%s: what is wrong, and where to look', async (line, message) => {
    const person = newPerson();
    if (line === 'send me') await person.json('setup', ...person.network);
    const ran = await person.run(line.split(' '));
    expect(ran).toEqual({ exit: 2, out: '', error: `courier: ${message}\n` });
  });

  test('after --, --json is text', async () => {
    const { error } = await newPerson().run(['gallop', '--', '--json']);
    expect(error).toContain("courier: unknown command 'gallop'");
  });

  test.each([
    ['an unknown name', ['send', 'nemo', 'hello'], 2, 'usage'],
    ['an account that is not a contact', ['send', 'ACCOUNT', 'hello'], 7, 'not_a_contact'],
    ['a malformed invite', ['accept', 'svc-invite:AAAA'], 6, 'verification_failed'],
    ['an account without public discovery', ['accept', 'ACCOUNT'], 5, 'relay_refused'],
    ['an unregistered relay', ['move', '--to', `0x${'12'.repeat(20)}`], 4, 'no_relay'],
    ['an unknown device', ['devices', 'remove', `dev_${'A'.repeat(22)}`], 2, 'invalid_input'],
    ['an empty message', ['send', 'me', ' '], 2, 'invalid_input'],
  ])('%s', async (_, args, exit, code) => {
    const [ann, bob] = [await newAccount(), await newAccount()];
    const filled = args.map((arg) => (arg === 'ACCOUNT' ? bob.account : arg));
    const ran = await ann.run([...filled, '--json']);
    expect({ exit: ran.exit, ...JSON.parse(ran.error) }).toMatchObject({ exit, error: { code } });
  });

  test('a folder of another network', async () => {
    const ann = await newAccount();
    const { relays } = JSON.parse(
      readFileSync(join(world.folder, 'relay', 'registry.json'), 'utf8'),
    );
    const other = join(ann.folder, 'other.json');
    writeFileSync(other, JSON.stringify({ context: `neo:1:0x${'00'.repeat(20)}`, relays }));
    const ran = await ann.run([
      ...['whoami', '--registry', other, '--network', `neo:1:0x${'00'.repeat(20)}`],
    ]);
    expect(ran.exit).toBe(9);
  });

  test('a certificate authority that did not sign the relay', async () => {
    const ann = newPerson();
    const [registry, file] = ann.network;
    const ran = await ann.run(['setup', registry as string, file as string, '--json']);
    expect({ exit: ran.exit, ...JSON.parse(ran.error) }).toMatchObject({
      exit: 4,
      error: { message: expect.stringContaining('no trusted authority') },
    });
  });
});

test('the process follows the inbox and ends on SIGTERM', async () => {
  const [ann, bob] = await contacts();
  const main = join(import.meta.dirname, '../src/courier/main.ts');
  const child = spawn(process.execPath, [main, 'inbox', '--follow', '--json'], {
    env: { ...process.env, COURIER_HOME: bob.folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string);
  expect(await next()).toEqual({ event: 'connected', transport: 'websocket' });
  await ann.json('send', 'bob', 'are you there?');
  expect(await next()).toMatchObject({ event: 'message', message: { text: 'are you there?' } });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('an exported key restores the account after everything else is lost', async () => {
  const ann = await newAccount();
  const { account_private_key: key } = await ann.json('key', 'export');
  const again = newPerson();
  const file = join(world.folder, 'exported.key');
  writeFileSync(file, `${key}\n`);
  const back = await again.json('setup', '--key-file', file, '--recover', ...again.network);
  expect(back.account).toBe(ann.account);
  expect((await again.json('devices')).devices).toMatchObject([{ device: back.device }]);
  writeFileSync(file, 'not a key');
  const wrong = await newPerson().run(['setup', '--key-file', file, ...again.network]);
  expect(wrong.exit).toBe(2);
});

function base58(bytes: Uint8Array): string {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
  let value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  let text = '';
  for (; value > 0n; value /= 58n) text = (alphabet[Number(value % 58n)] as string) + text;
  return text;
}

/** A NEP-6 wallet with small scrypt costs, made here. */
async function walletOf(privateKey: Uint8Array, password: string): Promise<object> {
  const account = accountSigner(network, privateKey).account;
  const address = account.slice(account.lastIndexOf(':') + 1);
  const twice = (bytes: Uint8Array) =>
    nodePrimitives.sha256(nodePrimitives.sha256(bytes)).subarray(0, 4);
  const salt = twice(utf8(address));
  const derived = scryptSync(password, salt, 64, { N: 2, r: 1, p: 1 });
  const mixed = privateKey.map((byte, index) => byte ^ (derived[index] as number));
  const cipher = createCipheriv('aes-256-ecb', derived.subarray(32), null).setAutoPadding(false);
  const sealed = Buffer.concat([cipher.update(mixed), cipher.final()]);
  const payload = Buffer.concat([Uint8Array.of(0x01, 0x42, 0xe0), salt, sealed]);
  const key = base58(Buffer.concat([payload, twice(payload)]));
  return { scrypt: { n: 2, r: 1, p: 1 }, accounts: [{ address, isDefault: true, key }] };
}

test('an account of a wallet: the key stays in the wallet', async () => {
  const ann = newPerson();
  mkdirSync(ann.folder, { recursive: true });
  const wallet = join(ann.folder, 'wallet.json');
  const privateKey = nodeRandom(32);
  writeFileSync(wallet, JSON.stringify(await walletOf(privateKey, 'open sesame')));
  const setup = ['setup', ...ann.network, '--wallet', wallet];
  expect((await ann.run(setup, { password: 'wrong' })).exit).toBe(8);
  expect((await ann.run(setup, { password: 'open sesame' })).exit).toBe(0);
  const { account } = await ann.json('whoami');
  expect(account).toBe(accountSigner(network, privateKey).account);
  expect((await ann.run(['key', 'export'])).exit).toBe(8);
  expect((await ann.run(['devices', 'renew'])).exit).toBe(8);
  const renewing = ['devices', 'renew', '--wallet', wallet];
  expect((await ann.run(renewing, { password: 'open sesame' })).exit).toBe(0);
});

test('a wallet that the command wrote opens the account again, with its password only', async () => {
  const ann = await newAccount();
  const wallet = join(ann.folder, 'backup.json');
  const write = ['key', 'export', '--wallet', wallet, '--json'];
  const { out, error, exit } = await ann.run(write, { password: 'open sesame' });
  expect({ exit, error }).toEqual({ exit: 0, error: '' });
  const { address } = JSON.parse(out);
  expect(`${network.context.split(':').slice(0, 2).join(':')}:${address}`).toBe(ann.account);
  expect(statSync(wallet).mode & 0o777).toBe(0o600);
  const { account_private_key: key } = await ann.json('key', 'export');
  expect(readFileSync(wallet, 'utf8')).not.toContain(key);
  // An existing file, and an empty password, are refused.
  expect((await ann.run(write, { password: 'open sesame' })).exit).toBe(2);
  const other = ['key', 'export', '--wallet', `${wallet}.2`];
  expect((await ann.run(other, { password: '' })).exit).toBe(2);
  const setup = ['setup', '--recover', '--wallet', wallet, ...ann.network, '--json'];
  expect((await newPerson().run(setup, { password: 'open sesam' })).exit).toBe(8);
  const again = await newPerson().run(setup, { password: 'open sesame' });
  expect(JSON.parse(again.out)).toMatchObject({ account: ann.account });
});

test('an invite is drawn as a QR code: its three finders are where readers look', async () => {
  const ann = await newAccount();
  const { out } = await ann.run(['invite', '--qr']);
  const lines = out.trimEnd().split('\n');
  const invite = lines.pop() ?? '';
  expect(invite).toMatch(/^svc-invite:/);
  expect((await ann.run(['invite', '--qr', '--json'])).out).not.toContain('\u2588');
  const rows = lines.flatMap((line) => [
    [...line].map((block) => block === '\u2588' || block === '\u2580'),
    [...line].map((block) => block === '\u2588' || block === '\u2584'),
  ]);
  const width = rows[0]?.length ?? 0;
  // The three finders: a dark ring, a light one, and a dark square.
  const isDark = (x: number, y: number) => rows[y]?.[x] === false;
  for (const [left, top] of [
    [2, 2],
    [width - 9, 2],
    [2, width - 9],
  ] as const) {
    for (let x = 0; x < 7; x += 1) {
      for (let y = 0; y < 7; y += 1) {
        const ring = Math.max(Math.abs(x - 3), Math.abs(y - 3));
        expect(isDark(left + x, top + y)).toBe(ring !== 2);
      }
    }
  }
  expect(() => qrCode('x'.repeat(3_000))).toThrow('too many');
});

test('a file that is not a wallet', async () => {
  const ann = newPerson();
  mkdirSync(ann.folder, { recursive: true });
  const wallet = join(ann.folder, 'wallet.json');
  writeFileSync(wallet, 'null');
  const ran = await ann.run(['setup', ...ann.network, '--wallet', wallet], { password: 'x' });
  expect({ exit: ran.exit, error: ran.error }).toMatchObject({
    exit: 8,
    error: expect.stringContaining('NEP-6'),
  });
});
