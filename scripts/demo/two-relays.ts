/**
 * Second act: Ann and Bob live on different relays of one network. Messages both ways, one of them
 * while Bob's relay is stopped, then a group and a channel that Ann's relay hosts.
 */
import { join } from 'node:path';
import { Device } from './devices.ts';
import { expect, heading } from './output.ts';
import type { DevRelays } from './relays.ts';

/** Runs the act. */
export async function twoRelays(
  { folder, courier }: { readonly folder: string; readonly courier: string },
  relays: DevRelays,
): Promise<void> {
  const network = [
    ...['--registry', join(relays.folder, 'registry.json')],
    ...['--ca', join(relays.folder, 'tls', 'ca.pem')],
  ];
  const device = (name: string) => new Device(name, courier, join(folder, `act-2-${name}`));
  const [ann, bob] = [device('ann'), device('bob')];

  heading('Two relays of one network start');
  const [a = '', b = ''] = await relays.start(2);

  heading('Ann creates an account on relay a, Bob one on relay b');
  await ann.do('setup', ...network, '--relay', a);
  await bob.do('setup', ...network, '--relay', b);
  const [annsAccount, bobsAccount] = [await ann.query('whoami'), await bob.query('whoami')];
  expect(annsAccount.relay !== bobsAccount.relay, true, 'they live on different relays');

  heading('An invite connects them across relays');
  await bob.do('accept', await ann.do('invite'), '--note', 'Bob, from relay b', '--as', 'ann');
  await ann.until('his request reaches Ann', ['contacts'], hasContact('pending'));
  await ann.do('accept', bobsAccount.account, '--as', 'bob');
  await bob.until('they are contacts', ['contacts'], hasContact('active'));

  heading('Messages both ways');
  await bob.do('send', 'ann', 'Hello from relay b');
  await ann.until('Ann has it', ['inbox'], hasText('Hello from relay b'));
  await ann.do('send', 'bob', 'Hello from relay a');
  await bob.until('Bob has the answer', ['inbox'], hasText('Hello from relay a'));

  heading('Bob’s relay is stopped while Ann writes; her relay keeps the message');
  await relays.enter('stop b');
  await ann.do('send', 'bob', 'Are you there?');
  await relays.enter('start b');
  await bob.until('Bob has it after the start', ['inbox'], hasText('Are you there?'));

  heading('A group on relay a, with a member from relay b');
  await ann.do('group', 'create', 'Family');
  await bob.do('group', 'join', await ann.do('group', 'invite', 'Family'));
  await ann.do('group', 'approve', 'Family', bobsAccount.account);
  await bob.do('group', 'list');
  await bob.do('group', 'send', 'Family', 'Dinner at eight?');
  await ann.do('group', 'read', 'Family');
  await ann.do('group', 'send', 'Family', 'Eight it is.');
  await bob.until('Bob reads the group', ['group', 'read', 'Family'], hasEntry('Eight it is.'));

  heading('A channel on relay a, read from relay b');
  await ann.do('channel', 'create', 'Release notes');
  const { link } = await ann.query('channel', 'show', 'Release notes');
  await bob.do('channel', 'follow', link);
  await ann.do('channel', 'post', 'Release notes', 'Version 1.0 is out');
  await bob.until(
    'Bob reads the post',
    ['channel', 'read', 'Release notes'],
    hasEntry('Version 1.0 is out'),
  );
  await bob.do('channel', 'read', 'Release notes');
}

const hasContact =
  (state: string) =>
  ({ contacts }: { contacts: readonly { standing: string }[] }) =>
    contacts.some(({ standing }) => standing === state);

const hasText =
  (text: string) =>
  ({ messages }: { messages: readonly { text: string }[] }) =>
    messages.some((message) => message.text === text);

const hasEntry =
  (text: string) =>
  ({ entries }: { entries: readonly { text?: string }[] }) =>
    entries.some((entry) => entry.text === text);
