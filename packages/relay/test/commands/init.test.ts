/** `posthouse init` and `posthouse registry add|list` as an operator types them. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/index.ts';
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

const context = `neo:860833102:0x${'12'.repeat(20)}`;

async function run(...args: string[]) {
  const { ended, output } = posthouse(args);
  return { code: await ended, output: output.text, errors: output.errors };
}

const modeOf = (path: string) => statSync(path).mode & 0o777;

test('init writes private keys and a private configuration, says what to back up and to set, and overwrites nothing', async () => {
  const data = join(folder.path, 'data');
  const file = join(folder.path, 'etc/relay.json');
  const flags = ['--data', data, '--config', file];
  const first = await run('init', ...flags, '--network', context, '--log', 'warn');
  expect(first).toMatchObject({ code: 0, output: expect.stringMatching(/^keys made: /) });
  expect(first.errors).toMatch(/^ {2}public\.peer: expected a value/m);
  const keys = ['relay.key', 'peer.key'].map((name) => join(data, 'keys', name));
  for (const path of keys) expect(first.errors).toContain(`  ${path}\n`);
  const token = join(data, 'admin.token');
  expect([...keys, file, token].map(modeOf)).toEqual([0o600, 0o600, 0o600, 0o600]);
  expect(readFileSync(token, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
  expect(first.errors).toContain(
    `admin token ${token}\nfor the admin interface, set operations.listen `,
  );
  const { config } = loadConfig({ file, purpose: 'keys' });
  expect(config).toMatchObject({ network: context, data, log: 'warn' });
  expect(config.operations.adminTokenFile).toBe(token);

  writeFileSync(file, readFileSync(file, 'utf8').replace('"log": "warn"', '"log": "error"'));
  const before = [...keys, file, token].map((path) => readFileSync(path, 'utf8'));
  const again = await run('init', ...flags);
  expect(again.output).toBe(first.output.replace('made', 'there already'));
  expect(again.errors).toContain('configuration there already, not changed');
  expect([...keys, file, token].map((path) => readFileSync(path, 'utf8'))).toEqual(before);
});

test('init --private begins a network whose relays `registry add` and `registry list` enter and show', async () => {
  const one = join(folder.path, 'one');
  const url = 'https://one.example.net/svc/v1';
  const missing = await run('init', '--data', one, '--private');
  expect(missing).toMatchObject({ code: 1, errors: expect.stringContaining('--url') });
  const begun = await run('init', '--data', one, '--private', '--url', url);
  expect(begun.code).toBe(0);
  const relay = /relay id (\S+)/.exec(begun.output)?.[1];
  const config = ['--config', join(one, 'relay.json')];
  const { network, public: addresses } = loadConfig({ file: config[1], purpose: 'keys' }).config;
  expect(network).toMatch(/^neo:\d+:0x[0-9a-f]{40}$/);
  expect(addresses).toMatchObject({ https: [url], peer: '/dns4/one.example.net/tcp/4201' });
  expect(JSON.parse(readFileSync(join(one, 'registry.json'), 'utf8'))).toMatchObject({
    context: network,
    relays: [{ relay_id: relay, endpoint: url, status: 'active' }],
  });

  const other = `0x${'34'.repeat(20)}`;
  const address = 'https://two.example.net/svc/v1';
  expect(await run('registry', 'add', other, address, ...config)).toMatchObject({ code: 0 });
  const listed = await run('registry', 'list', ...config);
  expect(listed.output.trim().split('\n')).toEqual([
    expect.stringMatching(new RegExp(`^${relay} .* ${url}$`)),
    expect.stringMatching(new RegExp(`^${other}  active .* ${address}$`)),
  ]);
  const bad = await run('registry', 'add', other, 'http://two.example.net', ...config);
  expect(bad.code).toBe(2);
});

test('the commands of the README begin a relay in their order; an invite before the first start says what comes first', async () => {
  const readme = readFileSync(join(import.meta.dirname, '../../../../README.md'), 'utf8');
  const section = readme.split('## Run your own relay')[1]?.split('\n## ', 1)[0] ?? '';
  const lines = [...section.matchAll(/^npx posthouse ([^#\n]+)/gm)].map(([, line = '']) =>
    line.trim().replace('FILE', join(folder.path, 'relay.json')).split(' '),
  );
  const [explain = [], init = [], serve = [], invite = []] = lines;
  const data = join(folder.path, 'data');
  const url = 'https://localhost/svc/v1';
  expect(await run(...explain)).toMatchObject({ code: 0 });
  expect(
    await run(...init, '--data', data, ...['--private', '--url', url, '--log', 'warn']),
  ).toMatchObject({ code: 0 });
  expect(await run(...invite)).toMatchObject({
    code: 1,
    errors: `there is no relay.sqlite in ${data}: no relay has used the folder yet: start the relay on it once\n`,
  });
  const { child, ended, line } = posthouse(serve, {
    POSTHOUSE_LISTEN: '127.0.0.1:0',
    POSTHOUSE_FEDERATION_LISTEN: '127.0.0.1:0',
    POSTHOUSE_TLS_MODE: 'off',
  });
  expect(await line()).toMatch(/^ready /);
  expect(await run(...invite)).toMatchObject({ code: 0, output: expect.stringMatching(/\S{20}/) });
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});
