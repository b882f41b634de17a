import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkDescriptor, Network } from '@posthouse/protocol';
import { noblePrimitives } from '@posthouse/protocol/crypto';
import { parseJson } from '@posthouse/protocol/json';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';

let folder: ReturnType<typeof temporaryFolder>;

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => {
  killAll();
  folder[Symbol.dispose]();
});

test('serve: a wrong configuration is told in full, with exit code 2', async () => {
  const relay = posthouse(['serve', '--dev', '--listen', 'nowhere'], {
    POSTHOUSE_LIMITS_PAGE_SIZE: '0',
  });
  expect(await relay.ended).toBe(2);
  expect(relay.output.errors.split('\n')).toEqual([
    'the configuration is invalid:',
    expect.stringMatching(/^listen: expected .*found "nowhere" \(command line\)$/),
    'limits.pageSize: expected an integer from 1, found 0 ' +
      '(environment POSTHOUSE_LIMITS_PAGE_SIZE)',
    '',
  ]);
});

describe('posthouse init, descriptor, config explain', () => {
  const network = `neo:860833102:0x${'12'.repeat(20)}`;
  const config = () => {
    const path = join(folder.path, 'config.json');
    writeFileSync(
      path,
      JSON.stringify({
        network,
        data: join(folder.path, 'data'),
        public: { https: ['https://relay.example/svc/v1'], peer: '/dns4/relay.example/tcp/4201' },
        tls: { mode: 'off' },
      }),
    );
    return path;
  };

  test('init needs no more than a folder and a network', async () => {
    const made = posthouse(['init', '--data', join(folder.path, 'new'), '--network', network]);
    expect(await made.ended).toBe(0);
    expect(made.output.text).toContain('relay id 0x');
  });

  test('init makes keys once; descriptor signs with them', async () => {
    const file = config();
    const first = posthouse(['init', '--config', file]);
    expect(await first.ended).toBe(0);
    expect(first.output.text).toMatch(
      /^keys made: .*\nrelay id 0x[0-9a-f]{40}\npublic key .{44}\npeer id 12D3Koo.*\n$/,
    );
    const second = posthouse(['init', '--config', file]);
    await second.ended;
    expect(second.output.text).toBe(first.output.text.replace('made', 'there already'));
    const descriptor = posthouse(['descriptor'], { POSTHOUSE_CONFIG: file });
    expect(await descriptor.ended).toBe(0);
    const value = parseJson(descriptor.output.text);
    checkDescriptor(new Network({ context: network, primitives: noblePrimitives }), value);
    expect(value.endpoints.slice(0, 2)).toEqual([
      'https://relay.example/svc/v1',
      'wss://relay.example/svc/v1',
    ]);
    expect(first.output.text).toContain(value.relay_id);
  });

  test('config explain prints the value and source of every key', async () => {
    const explained = posthouse(['config', 'explain', '--config', config(), '--log', 'warn']);
    expect(await explained.ended).toBe(0);
    expect(explained.output.text).toContain('log = "warn"  (command line)');
    expect(explained.output.text).toContain(`network = "${network}"  (file `);
  });

  const hostile = '\u001b[2J\u009b1m\u0007';
  test.each([
    ['an unknown command', 1, ['nonsense']],
    ['an unknown option', 1, ['serve', '--nonsense']],
    ['a value of an option', 1, ['serve', '--log']],
    ['a value of an option of a verb', 2, ['invite', 'create', '--uses', 'x']],
    ['an argument of a verb', 2, ['account', 'show', 'x']],
    ['a database', 2, ['move', '--from', 'x', '--to', 'sqlite:/nowhere']],
    ['a folder', 1, ['move', '--to', 'sqlite:/nowhere/y', '--from', 'sqlite:/nowhere/x']],
    ['a file', 2, ['config', 'explain', '--config', '/nowhere/x']],
  ])('an error that repeats %s does not command the terminal', async (_, status, args) => {
    const failed = posthouse([...args.slice(0, -1), `${args.at(-1)}${hostile}`]);
    expect(await failed.ended).toBe(status);
    expect(failed.output.errors).toMatch(/^\P{Cc}+\n$/mu);
    expect(failed.output.errors).not.toMatch(/[^\P{Cc}\n]/u);
  });

  test('an unknown command or option fails', async () => {
    expect(await posthouse(['nonsense']).ended).toBe(1);
    expect(await posthouse(['serve', '--nonsense']).ended).toBe(1);
  });
});
