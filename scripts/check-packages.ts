/**
 * Checks the packages that `npm run build` made: two linters of packages, a story in each runtime
 * that the client promises, and the commands of all packages installed as people install them. It also
 * has the documents of the API and the files for Docker judged by others' tools. What it needs is in
 * `.ci/packages`, with a lock file of its own, so that `npm ci` of the project brings no runtimes.
 *
 * @example
 * npm run build && npx node scripts/check-packages.ts
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openApi, openRpc } from '../packages/relay/src/about/api-documents.ts';
import { installPackages } from './installed.ts';
import { packAll } from './pack.ts';
import { publishedPackages } from './published-packages.ts';

const root = join(import.meta.dirname, '..');
const tools = join(root, '.ci/packages');
const tool = (path: string) => join(tools, 'node_modules', path);

/** The runtimes of `engines`, and those that the client's README names. */
const runtimes: Readonly<Record<string, readonly string[]>> = {
  'Node 22.13': [tool('node22/bin/node')],
  'Node 24': [tool('node24/bin/node')],
  'Node 26': [process.execPath],
  Bun: [tool('bun/bin/bun')],
  Deno: [tool('deno/deno'), 'run', '--allow-all'],
};

/** The Node versions that the commands promise to run on. */
const commandRuntimes = { 24: tool('node24/bin/node'), 26: process.execPath };

let failures = 0;

/** Runs a command, and shows what it printed if it fails. */
function check(what: string, [command = '', ...parameters]: readonly string[], folder = root) {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(command, parameters, {
    ...{ cwd: folder, encoding: 'utf8', timeout: 120_000 },
  });
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok    ' : 'FAILED'} ${what} (${seconds} s)`);
  if (status === 0) return;
  failures += 1;
  console.log(stdout, stderr);
}

function checkForm(name: string): void {
  const dist = join(root, 'packages', name, 'dist');
  check(`publint ${name}`, [tool('.bin/publint'), '--strict', dist]);
  check(`attw ${name}`, [tool('.bin/attw'), '--pack', dist, '--profile', 'esm-only']);
}

async function serveRelay(
  folder: string,
  command = join(root, 'packages/relay/dist/bin/posthouse.js'),
  node = process.execPath,
): Promise<ChildProcess> {
  const listen = ['--listen', '127.0.0.1:0', '--peer', '/ip4/127.0.0.1/tcp/4201'];
  const flags = ['--dev', '--data', folder, ...listen, '--log', 'error'];
  const relay = spawn(node, [command, 'serve', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(relay.stdout, 'data');
  return relay;
}

/** Checks that a command refuses to run: one sentence and status 1. */
function checkRefused(
  what: string,
  [command = '', ...parameters]: readonly string[],
  text: RegExp,
) {
  const { status, stdout, stderr } = spawnSync(command, parameters, { encoding: 'utf8' });
  const isGood = status === 1 && stdout === '' && text.test(stderr);
  console.log(`${isGood ? 'ok    ' : 'FAILED'} ${what}`);
  if (isGood) return;
  failures += 1;
  console.log(status, stdout, stderr);
}

/** Has the documents of the API that a relay serves judged by their specifications, and types made of one. */
function checkApiDocuments(place: string): void {
  const addresses = {
    https: ['https://relay.example/svc/v1'],
    wss: ['wss://relay.example/svc/v1'],
  };
  const facts = { name: 'Posthouse', version: '0.1.0', sessionHeader: 'X-Svc-Session' };
  const path = join(place, 'openapi.json');
  writeFileSync(path, JSON.stringify(openApi({ ...facts, ...addresses })));
  check('openapi.json by the schema of OpenAPI 3.1', [
    ...[
      process.execPath,
      tool('@seriousme/openapi-schema-validator/bin/validate-api-cli.js'),
      path,
    ],
  ]);
  const types = join(place, 'openapi.ts');
  check('openapi-typescript', [tool('.bin/openapi-typescript'), path, '--output', types]);
  const methods = join(place, 'openrpc.json');
  writeFileSync(methods, JSON.stringify(openRpc({ ...facts, ...addresses })));
  const judge = join(tools, 'openrpc.mjs');
  check('openrpc.json by the meta-schema of OpenRPC', [process.execPath, judge, methods]);
}

/** No image can be built everywhere: the files are judged as texts. */
function checkDockerFiles(): void {
  const [image, compose] = ['Dockerfile', 'compose.yml'].map((name) => join(root, 'deploy', name));
  check('dockerfile-utils', [tool('.bin/dockerfile-utils'), 'lint', image as string]);
  // The ports of a relay are for everybody, on all interfaces of IPv4 and IPv6.
  const options = ['--max-warnings', '0', '--disable-rule', 'no-unbound-port-interfaces'];
  const dclint = [process.execPath, tool('dclint/bin/dclint.cjs'), compose as string, ...options];
  check('dclint', dclint);
}

/** `npm install --global` of the tarballs, and the commands under each Node that may come along. */
async function checkCommands(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'posthouse-packed-'));
  try {
    const tarballs = packAll(join(place, 'packed')).map((name) => join(place, 'packed', name));
    checkApiDocuments(place);
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
    const prefix = join(place, 'prefix');
    check(
      'npm install --global',
      ['npm', 'install', '--global', ...flags, '--prefix', prefix, ...tarballs],
      place,
    );
    const command = (name: string) => join(prefix, 'bin', name);
    for (const [version, node] of Object.entries(commandRuntimes)) {
      for (const name of ['posthouse', 'courier', 'posthouse-conformance']) {
        for (const flag of ['--version', '--help']) {
          check(`${name} ${flag} on Node ${version}`, [node, command(name), flag], place);
        }
      }
      const relay = await serveRelay(join(place, version), command('posthouse'), node);
      relay.kill('SIGTERM');
      const [status] = await once(relay, 'exit');
      console.log(`${status === 0 ? 'ok    ' : 'FAILED'} posthouse serve on Node ${version}`);
      if (status !== 0) failures += 1;
    }
    const old = tool('node20/bin/node');
    for (const name of ['posthouse', 'courier', 'posthouse-conformance']) {
      const sentence = new RegExp(
        `^${name} needs Node \\d+(\\.\\d+)? or later, and this is 20\\..+\\n$`,
      );
      checkRefused(`${name} on Node 20`, [old, command(name), '--version'], sentence);
    }
    check(
      'courier on Node 22.13',
      [tool('node22/bin/node'), command('courier'), '--version'],
      place,
    );
    const source = ['pack', '--silent', '--pack-destination', place, join(root, 'packages/relay')];
    checkRefused('npm pack of sources', ['npm', ...source], /run `npm run pack` instead/);
  } finally {
    rmSync(place, { recursive: true });
  }
}

check('npm ci', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], tools);
checkDockerFiles();
const names = publishedPackages;
for (const name of names) checkForm(name);

const folder = installPackages(['protocol', 'client']);
const relay = await serveRelay(join(folder, 'relay'));
try {
  copyFileSync(join(tools, 'story.js'), join(folder, 'story.js'));
  for (const [name, command] of Object.entries(runtimes)) {
    const file = name.replace(/\W/g, '');
    check(name, [...command, 'story.js', join(folder, 'relay'), file], folder);
  }
} finally {
  relay.kill('SIGTERM');
  await once(relay, 'exit');
  rmSync(folder, { recursive: true });
}
await checkCommands();
process.exitCode = failures === 0 ? 0 : 1;
