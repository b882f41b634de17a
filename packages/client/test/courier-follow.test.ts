/** `courier follow --exec`: a program for each new message. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { contactsOfCourier } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();

/** A program that stores its parameters, variables and input, and runs `then`. */
function program(folder: string, then = ''): string {
  const path = join(folder, 'bot.mjs');
  const lines = [
    '#!/usr/bin/env node',
    "import { readFileSync, writeFileSync } from 'node:fs';",
    "const event = JSON.parse(readFileSync(0, 'utf8'));",
    'const env = Object.fromEntries(',
    "  Object.entries(process.env).filter(([name]) => name.startsWith('COURIER_')),",
    ');',
    `const path = ${JSON.stringify(`${folder}/run-`)} + env.COURIER_MESSAGE_ID + '.json';`,
    'writeFileSync(path, JSON.stringify({ event, env, args: process.argv.slice(2) }));',
    then,
  ];
  writeFileSync(path, lines.join('\n'), { mode: 0o755 });
  return path;
}

test('each new message of others runs the program once, one at a time, without a shell', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const bot = program(ann.folder);
  await bob.json('send', 'ann', 'while it was not running');
  await ann.json('send', 'me', 'not of others');
  const args = ['follow', '--json', '--exec', bot, '--', '--flag', '', '$(touch x)', 'two words'];
  const follow = ann.start(args);
  await expect.poll(follow.objects).toMatchObject([{ event: 'exec' }]);
  const { message_id: id, from } = await bob.json('send', 'ann', '"; touch y; \u001b[2J');
  await expect.poll(follow.objects).toMatchObject([{}, { event: 'exec', message_id: id }]);
  follow.stop();
  expect(await follow.exit).toBe(0);
  expect(follow.objects()[1]).toEqual({ event: 'exec', message_id: id });
  expect(JSON.parse(readFileSync(join(ann.folder, `run-${id}.json`), 'utf8'))).toMatchObject({
    args: ['--flag', '', '$(touch x)', 'two words'],
    env: {
      ...{ COURIER_EVENT: 'message', COURIER_FROM: from, COURIER_MESSAGE_ID: id },
      COURIER_HOME: ann.folder,
    },
    event: { event: 'message', message: { from, text: '"; touch y; \u001b[2J' } },
  });
  expect(readdirSync(ann.folder).filter((name) => name.startsWith('run-'))).toHaveLength(2);
});

test('decision 0034: what other commands read while no program runs is not lost for it, nor run twice', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const bot = program(ann.folder);
  const runs = async (count: number, ...more: string[]) => {
    const follow = ann.start(['follow', '--json', '--exec', bot, ...more]);
    const ids = () => follow.objects().map(({ message_id }) => message_id);
    await expect.poll(ids).toHaveLength(count);
    follow.stop();
    expect(await follow.exit).toBe(0);
    return ids();
  };
  const send = async (text: string): Promise<string> =>
    (await bob.json('send', 'ann', text)).message_id;
  const first = await send('one');
  expect(await runs(1)).toEqual([first]);
  const away = [await send('two')];
  expect((await ann.json('inbox')).messages).toHaveLength(2);
  away.push(await send('three'));
  await ann.json('sync');
  expect(await runs(2)).toEqual(away);
  const last = await send('four');
  expect(await runs(1)).toEqual([last]);
  // Another reader of the folder begins as any other.
  const next = await send('five');
  expect(await runs(1, '--reader', 'other')).toEqual([next]);
  expect(await runs(1)).toEqual([next]);
  const wrong = await ann.run(['follow', '--exec', bot, '--reader', 'x'.repeat(65)]);
  expect([wrong.exit, wrong.error]).toEqual([2, expect.stringContaining('a long name')]);
});

test.each([
  ['ends with a status', 'process.exit(3);', '60', 'exit status 3'],
  ['takes too long', 'setInterval(() => {}, 1_000);', '0.5', 'ended after 0.5 seconds'],
])(
  'a program that %s is reported, and the next message runs it again',
  async (_, then, seconds, why) => {
    const [ann, bob] = await contactsOfCourier(world);
    const bot = program(ann.folder, then);
    const follow = ann.start(['follow', '--exec', bot, '--timeout', seconds]);
    await bob.json('send', 'ann', 'one');
    await bob.json('send', 'ann', 'two');
    await expect.poll(() => follow.written.error.split(why)).toHaveLength(3);
    follow.stop();
    expect(await follow.exit).toBe(0);
  },
);

test('a program that is not there is reported; an interrupt ends the one that runs', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  await bob.json('send', 'ann', 'one');
  const missing = ann.start(['follow', '--exec', join(ann.folder, 'missing')]);
  await expect.poll(() => missing.written.error).toContain('ENOENT');
  missing.stop();
  await missing.exit;
  const bot = program(ann.folder, 'setInterval(() => {}, 1_000);');
  const follow = ann.start(['follow', '--exec', bot]);
  await bob.json('send', 'ann', 'two');
  await expect.poll(() => readdirSync(ann.folder).join()).toContain('run-');
  follow.stop();
  expect(await follow.exit).toBe(0);
});

test('with --shell, the program is a command line, and parameters are not part of it', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const line = `printf '%s' "$1 $COURIER_EVENT" > "$COURIER_HOME/said"`;
  const follow = ann.start(['follow', '--json', '--shell', '--exec', line, '--', '; exit 1']);
  await bob.json('send', 'ann', 'one');
  await expect.poll(follow.objects).toMatchObject([{ event: 'exec' }]);
  follow.stop();
  await follow.exit;
  expect(readFileSync(join(ann.folder, 'said'), 'utf8')).toBe('; exit 1 message');
});

test.each(['0', '-1', 'soon', '86401'])('--timeout %s is refused', async (timeout) => {
  const [ann] = await contactsOfCourier(world);
  const { exit } = await ann.run(['follow', '--exec', '/bin/true', '--timeout', timeout]);
  expect(exit).toBe(2);
});
