/**
 * Checks the Debian package as its operator meets it: lintian, the rights of the unit, and in a fresh
 * Debian in a temporary folder (mmdebstrap, from the sources of this machine's apt) install, a relay as
 * the package's user, upgrade, removal and purge. Needs root; without it, or without a tool, it says so.
 *
 * @example
 * npm run build && npx node scripts/check-debian.ts
 */
import {
  type ChildProcess,
  execFileSync,
  type SpawnOptions,
  spawn,
  spawnSync,
} from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { failedSteps, report, reportSkipped } from './step-report.ts';

const root = join(import.meta.dirname, '..');
const place = mkdtempSync(join(tmpdir(), 'posthouse-debian-'));
/** The root folder of the fresh Debian. */
const system = join(place, 'system');
/** Highest exposure that `systemd-analyze security` may find, in tenths. */
const exposure = 20;

const isInstalled = (name: string) => spawnSync('which', [name]).status === 0;

function run(command: string, parameters: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, parameters, {
    ...{ encoding: 'utf8', timeout: 300_000, env: { ...process.env, ...env } },
  });
  return { isGood: status === 0, status, output: `${stdout}${stderr}${error?.message ?? ''}` };
}

/** Runs a command and reports it as a step. */
function check(what: string, command: string, ...parameters: string[]): string {
  const { isGood, output } = run(command, parameters);
  report(isGood, what, output);
  return output;
}

/** The arguments that run a command in the fresh Debian; its processes and mounts end with it. */
function inside(...command: readonly string[]): string[] {
  const script = `mount -t proc proc '${system}/proc' && exec chroot '${system}' "$@"`;
  const own = ['--mount', '--pid', '--fork', '--kill-child'];
  return [...own, 'sh', '-c', script, 'sh', ...command];
}

/** Becomes the package's user; unlike `runuser` it leaves no process between. */
const user = ['setpriv', '--reuid=posthouse', '--regid=posthouse', '--init-groups'];

/** The user of the package, with the empty environment of a service. */
const asUser = (...command: readonly string[]) =>
  inside(...user, 'env', '-i', 'PATH=/usr/bin:/bin', ...command);

/** Builds the package; then another one of an older version from the same files. */
function buildPackages(): { current: string; older: string; version: string } {
  const { isGood, output } = run(process.execPath, [join(root, 'deploy/debian.ts')]);
  report(isGood, 'deploy/debian.ts', output);
  const current = join(root, 'packed', basename(/'([^']+\.deb)'/.exec(output)?.[1] ?? ''));
  const files = join(place, 'files');
  execFileSync('dpkg-deb', ['--raw-extract', current, files]);
  const control = join(files, 'DEBIAN/control');
  const text = readFileSync(control, 'utf8');
  const version = /^Version: (.+)$/m.exec(text)?.[1] ?? '';
  writeFileSync(control, text.replace(/^Version: .+$/m, 'Version: 0.0.1'));
  const older = join(place, 'older.deb');
  execFileSync('dpkg-deb', ['--root-owner-group', '-Znone', '--build', files, older]);
  rmSync(files, { recursive: true });
  return { current, older, version };
}

/** The arguments of mmdebstrap: a minimal system with what the package depends on. */
function systemOf(deb: string): string[] {
  const depends = execFileSync('dpkg-deb', ['--field', deb, 'Depends'], { encoding: 'utf8' });
  const names = depends.split(',').map((one) => one.trim().split(' ')[0]);
  const codename = /^VERSION_CODENAME=(.+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  // Each file of Debian's own sources; without one, mmdebstrap has its own.
  const sources = globSync('/etc/apt/{sources.list,sources.list.d/debian.sources}').filter(
    (path) => statSync(path).size > 0,
  );
  const kind = ['--mode=root', '--variant=minbase', '--format=directory', '--quiet'];
  return [...kind, `--include=${names.join(',')}`, codename ?? 'stable', system, ...sources];
}

/** Waits for a started program; reports its status. */
async function finish(what: string, program: ChildProcess): Promise<void> {
  let output = '';
  for (const stream of [program.stdout, program.stderr]) {
    stream?.on('data', (part: Buffer) => {
      output += part.toString();
    });
  }
  const [status] = await once(program, 'close');
  report(status === 0, what, output);
}

/** What an operator must find again: keys, configuration and database. */
function kept(): string {
  const files = ['etc/posthouse', 'var/lib/posthouse'].flatMap((folder) =>
    globSync('**/*', { cwd: join(system, folder) }).map((path) => join(folder, path)),
  );
  const lasting = files.filter((path) => /relay\.json$|keys\/|registry\.json$/.test(path));
  return lasting
    .filter((path) => statSync(join(system, path)).isFile())
    .sort()
    .map((path) => `${path} ${readFileSync(join(system, path)).toString('base64')}`)
    .join('\n');
}

/** Starts the relay as the unit does, checks it from its own machine, and stops it in order. */
async function runRelay(what: string): Promise<void> {
  const config = ['--config', '/etc/posthouse/relay.json'];
  const command = asUser('posthouse', 'serve', ...config, '--log', 'error');
  const relay = spawn('unshare', command, { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
  const ended = once(relay, 'close');
  let output = '';
  relay.stderr.on('data', (part: Buffer) => {
    output += part.toString();
  });
  const ready = once(relay.stdout, 'data').then(([part]) => String(part));
  const line = await Promise.race([ready, ended.then(() => '')]);
  report(line.startsWith('ready '), `${what}: the relay starts as its user`, output);
  const checked = run('unshare', asUser('posthouse', 'check', '--local', ...config));
  report(checked.isGood, `${what}: posthouse check --local`, checked.output);
  if (relay.exitCode === null) {
    // `unshare` waits for the relay, its only child, and ends with its status.
    const child = readFileSync(`/proc/${relay.pid}/task/${relay.pid}/children`, 'utf8');
    process.kill(Number(child.trim()), 'SIGTERM');
  }
  const [status] = await ended;
  report(status === 0, `${what}: the relay ends in order`, output);
}

function install(what: string, deb: string): void {
  cpSync(deb, join(system, 'tmp/posthouse.deb'));
  check(what, 'unshare', ...inside('dpkg', '--install', '/tmp/posthouse.deb'));
  rmSync(join(system, 'tmp/posthouse.deb'));
}

function modeOf(path: string): string {
  return existsSync(join(system, path))
    ? (statSync(join(system, path)).mode & 0o777).toString(8)
    : 'missing';
}

/** Makes keys and configuration, and sets in it what an operator with a proxy sets. */
function configure(): void {
  const where = ['--config', '/etc/posthouse/relay.json', '--data', '/var/lib/posthouse'];
  const own = ['--private', '--listen', '127.0.0.1:0', '--url', 'https://relay.example/svc/v1'];
  const init = asUser('posthouse', 'init', ...where, ...own);
  check('posthouse init as the user of the package', 'unshare', ...init);
  const path = join(system, 'etc/posthouse/relay.json');
  const text = readFileSync(path, 'utf8')
    .replace('// "mode": "files"', '"mode": "off"')
    .replace('// "listen": "0.0.0.0:4201"', '"listen": ""');
  writeFileSync(path, text);
}

async function checkLife(deb: ReturnType<typeof buildPackages>): Promise<void> {
  install('an older version installs on a fresh Debian', deb.older);
  const modes = ['var/lib/posthouse', 'etc/posthouse'].map(modeOf).join(' ');
  report(modes === '700 750', 'folders of the package are for its user', modes);
  const program = run('unshare', inside('posthouse', '--version'));
  report(program.isGood, 'posthouse --version', program.output);
  configure();
  await runRelay('installed');
  const before = kept();

  install('the current version upgrades it', deb.current);
  const format = '--showformat=$' + '{Version}';
  const version = run('unshare', inside('dpkg-query', '--show', format, 'posthouse'));
  report(version.output === deb.version, `dpkg has ${deb.version}`, version.output);
  await runRelay('upgraded');
  report(kept() === before, 'an upgrade changes no key and no configuration');

  check('dpkg --remove', 'unshare', ...inside('dpkg', '--remove', 'posthouse'));
  report(modeOf('usr/bin/posthouse') === 'missing', 'removal takes the program away');
  report(kept() === before, 'removal keeps keys, configuration and data');
  const purged = check('dpkg --purge', 'unshare', ...inside('dpkg', '--purge', 'posthouse'));
  report(purged.includes('are kept'), 'a purge says what it keeps', purged);
  report(kept() === before, 'a purge keeps keys, configuration and data');

  install('it installs again on what was kept', deb.current);
  const asked = inside('env', 'POSTHOUSE_PURGE_DATA=yes', 'dpkg', '--purge', 'posthouse');
  check('dpkg --purge with POSTHOUSE_PURGE_DATA=yes', 'unshare', ...asked);
  const left = ['var/lib/posthouse', 'etc/posthouse'].map(modeOf).join(' ');
  report(left === 'missing missing', 'a purge that is asked to removes data and keys', left);
}

/** The unit with a program that exists here: only the package has its own. */
function checkUnit(): void {
  const unit = join(root, 'deploy/posthouse.service');
  const security = ['security', '--offline=true', `--threshold=${exposure}`, '--no-pager', unit];
  check(`systemd-analyze security: at most ${exposure / 10}`, 'systemd-analyze', ...security);
  const folder = join(place, 'unit');
  mkdirSync(folder);
  const copy = join(folder, basename(unit));
  writeFileSync(copy, readFileSync(unit, 'utf8').replace('/usr/bin/posthouse', '/bin/true'));
  check('systemd-analyze verify', 'systemd-analyze', 'verify', '--man=no', copy);
}

try {
  if (isInstalled('systemd-analyze')) checkUnit();
  else reportSkipped('the unit', 'systemd-analyze is not installed');
  const missing = ['dpkg-deb', 'strip', 'mmdebstrap', 'lintian', 'unshare'].filter(
    (name) => !isInstalled(name),
  );
  if (missing.length > 0) {
    reportSkipped('the Debian package', `${missing.join(', ')} not installed`);
  } else if (process.getuid?.() !== 0) {
    reportSkipped('the Debian package', 'a folder with a system of its own needs root');
  } else {
    const deb = buildPackages();
    const options: SpawnOptions = { stdio: ['ignore', 'pipe', 'pipe'] };
    const judged = ['--allow-root', '--fail-on', 'error,warning', deb.current];
    await Promise.all([
      finish('lintian: no error and no warning', spawn('lintian', judged, options)),
      finish('a fresh Debian', spawn('mmdebstrap', systemOf(deb.current), options)),
    ]);
    if (failedSteps() === 0) await checkLife(deb);
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
