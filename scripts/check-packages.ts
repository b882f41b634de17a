/**
 * Checks the packages that `npm run build` made: two linters of packages, and a story in each runtime
 * that the client promises. What it needs is in `.ci/packages`, with a lock file of its own, so that
 * `npm ci` of the project brings no runtimes.
 *
 * @example
 * npm run build && npx node scripts/check-packages.ts
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { installPackages } from './installed.ts';

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

async function serveRelay(folder: string): Promise<ChildProcess> {
  const command = join(root, 'packages/relay/dist/bin/posthouse.js');
  const flags = ['--dev', '--data', folder, '--listen', '127.0.0.1:0', '--log', 'error'];
  const relay = spawn(process.execPath, [command, 'serve', ...flags], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(relay.stdout, 'data');
  return relay;
}

check('npm ci', ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], tools);
const names = readdirSync(join(root, 'packages'));
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
process.exitCode = failures === 0 ? 0 : 1;
