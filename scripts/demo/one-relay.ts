/** First act: one relay, two accounts, three devices; the relay is killed and restarted. */
import { join } from 'node:path';
import { Device, Follower } from './devices.ts';
import { expect, heading } from './output.ts';
import type { Relay } from './relays.ts';

/** Runs the act; `cleanUp` gets what must end if a step fails. */
export async function oneRelay(
  { folder, courier }: { readonly folder: string; readonly courier: string },
  relay: Relay,
  cleanUp: DisposableStack,
): Promise<void> {
  const network = [
    ...['--registry', join(relay.folder, 'registry.json')],
    ...['--ca', join(relay.folder, 'tls', 'ca.pem')],
  ];
  const device = (name: string) => new Device(name, courier, join(folder, name));
  const [phone, laptop, bob] = [device('ann-phone'), device('ann-laptop'), device('bob')];

  heading('A relay starts in an empty folder');
  await relay.start();

  heading('Two people create accounts');
  await phone.do('setup', ...network);
  await bob.do('setup', ...network);
  const ann = await phone.query('whoami');
  const bobs = await bob.query('whoami');
  expect(ann.account !== bobs.account, true, 'two accounts, each with a key of its own');
  await phone.do('profile', '--nickname', 'Ann');

  heading('An invite connects them');
  const invite = await phone.do('invite');
  await bob.do('accept', invite, '--note', 'Bob, from the fair', '--as', 'ann');
  expect(
    (await bob.query('contacts')).contacts[0].standing,
    'awaiting',
    'Bob waits for her answer',
  );
  await phone.do('inbox');
  await phone.do('accept', bobs.account, '--as', 'bob');
  await bob.do('sync');
  expect((await bob.query('contacts')).contacts[0].standing, 'active', 'they are contacts');

  heading('Messages both ways');
  await bob.do('send', 'ann', 'Hello', 'Ann!');
  await phone.do('inbox');
  await phone.do('send', 'bob', 'Hello', 'Bob!');
  await bob.do('inbox');
  expect(await phone.texts(), ['Hello Ann!', 'Hello Bob!'], 'Ann has both messages in order');
  expect(await bob.texts(), ['Hello Ann!', 'Hello Bob!'], 'and so has Bob');

  heading('Ann adds a laptop; her account key stays on the phone');
  const [request, approval] = [join(folder, 'request.json'), join(folder, 'approval.json')];
  await laptop.do(
    ...['devices', 'request', '--account-key', ann.public_key, '--out', request, ...network],
  );
  await phone.do('devices', 'approve', request, '--out', approval);
  await laptop.do('devices', 'complete', approval, '--account-key', ann.public_key);
  await phone.do('sync');
  await laptop.do('sync');
  await phone.do('devices');
  expect((await phone.query('devices')).devices.length, 2, 'her account has two devices');
  const known = (await laptop.query('contacts')).contacts;
  expect(known, (await phone.query('contacts')).contacts, 'the laptop knows her contacts');
  await bob.do('sync');

  heading('The laptop is offline while the others write; Bob follows live');
  const follower = new Follower(bob);
  cleanUp.defer(() => follower.kill());
  await follower.waitFor('Bob is connected', ({ event }) => event === 'connected');
  await bob.do('send', 'ann', 'Are you still there?');
  await phone.do('inbox', '--limit', '1');
  await phone.do('send', 'bob', 'Of course.');
  await follower.waitFor('Of course.', ({ message }) => message?.text === 'Of course.');

  heading('The relay is killed with SIGKILL');
  await relay.kill();
  await follower.waitFor('Bob lost the connection', ({ event }) => event === 'disconnected');
  const failed = await phone.runShown('send', 'bob', 'Sent into the void');
  expect(failed.exit, 4, 'courier exits with 4: no relay can be reached');
  expect((await phone.query('status')).outbox, 1, 'her message waits in her outbox');

  heading('The relay starts again, on the same folder');
  await relay.start();
  await follower.waitFor('Bob is connected again', ({ event }) => event === 'connected');
  await phone.do('sync');
  await follower.waitFor('Ann’s message', ({ message }) => message?.text === 'Sent into the void');
  expect((await phone.query('status')).outbox, 0, 'her outbox is empty');
  expect(await follower.stop(), 0, 'Bob stops following');

  heading('The laptop comes back');
  const all = [
    'Hello Ann!',
    'Hello Bob!',
    'Are you still there?',
    'Of course.',
    'Sent into the void',
  ];
  await laptop.do('inbox');
  expect(await laptop.texts(), all.slice(2), 'it has all messages since it was added');
  expect(await phone.texts(), all, 'the phone has every message once');
  expect(await bob.texts(), all, 'and so has Bob');
  await laptop.do('send', 'bob', 'Hello from my laptop');
  expect(
    (await bob.texts()).at(-1),
    'Hello from my laptop',
    'Bob gets the message from the laptop',
  );
  expect((await phone.texts()).at(-1), 'Hello from my laptop', 'and so does the phone');
}
