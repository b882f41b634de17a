/** `courier move` (03 §12), on a network of three relays. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SqliteStore } from '../../src/node.ts';
import { Person } from '../support/courier.ts';
import { impatient, unreachable } from '../support/restartable-client.ts';
import { lostRequest, SteeredTransport } from '../support/steered-transport.ts';
import { relaysWithClients } from './relays-with-clients.ts';

const world = relaysWithClients();

/** A person whose account was set up at A with the command. */
async function person(name: string): Promise<Person> {
  const someone = new Person(world, name);
  const { registryFile, authorityFile } = world.network;
  const trust = ['--registry', registryFile, '--ca', authorityFile];
  await someone.json('setup', '--relay', world.relayId('a'), ...trust);
  return someone;
}

test('a dry run shows what moves and what is not copied, and changes nothing', async () => {
  const ann = await person('dry');
  const [from, to] = [world.relayId('a'), world.relayId('b')];
  expect(await ann.json('move', '--to', to, '--dry-run')).toMatchObject({
    from: { relay: from, answers: true },
    to: { relay: to },
    moves: { devices: 1, contacts: 0, profile: false },
    outbox: 0,
    problems: [],
  });
  const { out } = await ann.run(['move', '--to', to, '--dry-run']);
  expect(out).toMatch(/moves +1 device\n/);
  expect(out).toContain('nothing stands against the move');
  expect(await ann.json('whoami')).toMatchObject({ relay: from });
  expect(await ann.json('move', '--status')).toEqual({ relay: from, move: null });
});

test('a move prints its steps, and the URL of a relay serves as well as its ID', async () => {
  const ann = await person('steps');
  const { exit, out, error } = await ann.run(['move', '--to', world.endpoint('b')]);
  expect({ exit, out }).toEqual({ exit: 0, out: `the home relay is ${world.relayId('b')}\n` });
  expect(error.split('\n')).toEqual([
    '1/7 reading the old relay once more',
    '2/7 storing the devices at the new relay',
    '3/7 signing the new route',
    '4/7 publishing the route',
    '5/7 publishing the profile',
    '6/7 reading and sending at the new relay',
    '7/7 having the route stored by other relays',
    '',
  ]);
  expect(await ann.json('move', '--to', world.relayId('c'))).toEqual({ relay: world.relayId('c') });
});

/** Interrupts a move of the person at a method. */
async function interrupt(someone: Person, to: string, method: string): Promise<void> {
  await using store = SqliteStore.open(join(someone.folder, 'store.sqlite'));
  const transport = new SteeredTransport(world.transport());
  transport.rules.set(method, lostRequest);
  const client = await world.client({ store, transport, ...impatient });
  await expect((await client.account()).home.move(to)).rejects.toMatchObject(unreachable);
}

test('an unfinished move is shown, cancelled before the route was sent, and resumed after', async () => {
  const ann = await person('again');
  const [from, to] = [world.relayId('a'), world.relayId('b')];
  await interrupt(ann, to, 'device.state.publish');
  expect(await ann.json('move', '--status')).toEqual({
    relay: from,
    move: { from, to, started_at: expect.any(Number), step: 'stage', can_cancel: true },
  });
  expect(await ann.json('status')).toMatchObject({ relay: from, move_to: to });
  expect((await ann.run(['status'])).out).toContain(`courier move --to ${to}`);
  expect(await ann.json('move', '--cancel')).toEqual({ relay: from });

  await interrupt(ann, to, 'account.route.publish');
  const status = await ann.run(['move', '--status']);
  expect(status.out).toContain(`run courier move --to ${to} again`);
  expect(status.out).not.toContain('--cancel');
  expect(await ann.run(['move', '--cancel'])).toMatchObject({
    exit: 7,
    error: expect.stringContaining('the route was sent'),
  });
  const other = ['move', '--to', world.relayId('c')];
  expect(await ann.run(other)).toMatchObject({
    exit: 7,
    error: expect.stringContaining('is not finished'),
  });
  expect(status.out).toContain('name another relay with --replace');
  expect(await ann.json('move', '--to', from, '--replace')).toEqual({ relay: from });

  await interrupt(ann, to, 'account.route.publish');
  expect(await ann.json('move')).toEqual({ relay: to });
  expect(await ann.json('move', '--status')).toEqual({ relay: to, move: null });
});

test('a relay that does not answer leaves the account where it is', async () => {
  const ann = await person('away');
  const [from, to] = [world.relayId('a'), world.relayId('c')];
  const gone = world.network.relay('c');
  await gone.stop();
  expect((await ann.run(['move', '--to', to])).exit).toBe(4);
  await gone.start();
  expect(await ann.json('whoami')).toMatchObject({ relay: from });
  expect(await ann.run(['move', '--to', from])).toMatchObject({
    exit: 2,
    error: expect.stringContaining('home relay already'),
  });
});

test('wrong uses have a status and say what to do', async () => {
  const ann = await person('wrong');
  const uses = [
    [['move'], 2, 'name the new relay with --to'],
    [['move', '--dry-run', '--status'], 2, 'only one of'],
    [['move', '--to', 'https://relay.example'], 2, '--to: the registry has no relay'],
    [['move', '--to', `0x${'12'.repeat(20)}`], 4, 'is not registered'],
    [['move', '--cancel'], 2, 'nothing to cancel'],
  ] as const;
  for (const [args, exit, text] of uses) {
    const ran = await ann.run(args);
    expect({ exit: ran.exit, error: ran.error }).toEqual({
      exit,
      error: expect.stringContaining(text),
    });
  }
});
