/**
 * Runs a relay with each proxy of `deploy/proxies` that is installed: its syntax as the proxy itself
 * judges it, `posthouse check` under the public address, a body of 2 MiB, and the quick part of the
 * conformance kit; of HAProxy also that it follows `/readyz`. Traefik is not in Debian: untried.
 *
 * @example
 * npm run build && npx node scripts/check-proxies.ts
 * npx node scripts/check-proxies.ts haproxy
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type InstalledProxy, proxies } from './proxies.ts';
import { report, reportSkipped } from './step-report.ts';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'posthouse-proxies-'));
const certificate = join(folder, 'cert.pem');
const key = join(folder, 'key.pem');
const posthouse = join(root, 'packages/relay/dist/bin/posthouse.js');
const kit = join(root, 'packages/conformance/dist/bin/posthouse-conformance.js');
/** Milliseconds for which a draining relay goes on: longer than a proxy needs to see it. */
const drainTime = 20_000;

interface Ports {
  readonly proxy: number;
  readonly relay: number;
  readonly operations: number;
}

const isInstalled = (name: string) => spawnSync('which', [name]).status === 0;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** The file of a proxy, with ports and certificates of this run. */
function configOf(file: string, { proxy, relay, operations }: Ports): string {
  return readFileSync(join(root, 'deploy/proxies', file), 'utf8')
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${relay}`)
    .replaceAll('port 9464', `port ${operations}`)
    .replaceAll('/etc/posthouse/cert-and-key.pem', join(folder, 'both.pem'))
    .replaceAll('/etc/posthouse/cert.pem', certificate)
    .replaceAll('/etc/posthouse/key.pem', key)
    .replace(/listen \[::\]:443.*\n/, '\n')
    .replace('listen 443', `listen 127.0.0.1:${proxy}`)
    .replace('bind :443', `bind 127.0.0.1:${proxy}`)
    .replace('*:443', `127.0.0.1:${proxy}`)
    .replace(
      /^relay\.example\.com \{/m,
      `https://127.0.0.1:${proxy} {\n\ttls ${certificate} ${key}`,
    );
}

/** What a POST with a body of 2 MiB is answered. */
async function postLarge(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { 'content-type': 'application/json' };
  const outgoing = request(
    `${url}/auth/challenge`,
    { method: 'POST', ca: readFileSync(certificate), headers },
    (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      incoming.on('end', () => resolve(text));
    },
  );
  outgoing.on('error', reject);
  outgoing.end(JSON.stringify({ account: 'x', filler: 'y'.repeat(2 * 1024 * 1024 - 40) }));
  return await promise;
}

/** The status of the page at the root of an address. */
async function statusOf(url: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  request(new URL('/', url), { ca: readFileSync(certificate) }, (incoming) => {
    incoming.resume().on('end', () => resolve(incoming.statusCode));
  })
    .on('error', reject)
    .end();
  return await promise;
}

/** Asks until the answer is good, or five seconds are over; returns the last answer. */
async function until<T>(
  isGood: (answer: T) => boolean,
  ask: () => Promise<T>,
): Promise<T | undefined> {
  let answer: T | undefined;
  for (let tries = 0; tries < 50; tries += 1) {
    answer = await ask().catch(() => undefined);
    if (answer !== undefined && isGood(answer)) break;
    await pause(100);
  }
  return answer;
}

function runNode(program: string, parameters: readonly string[], env: NodeJS.ProcessEnv) {
  const options = { encoding: 'utf8', timeout: 120_000, env: { ...process.env, ...env } } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...parameters], options);
  return { isGood: status === 0, stdout, output: stdout + stderr };
}

async function checkProxy(name: string, proxy: InstalledProxy): Promise<void> {
  const ports = { proxy: await freePort(), relay: await freePort(), operations: await freePort() };
  const own = join(folder, name);
  const place = proxy.prepare(configOf(proxy.file, ports), { folder, port: ports.proxy });
  const [tool = '', ...parameters] = proxy.check(place);
  const judged = spawnSync(tool, parameters, { encoding: 'utf8', env: proxyEnvironment });
  report(judged.status === 0, [tool, parameters[0]].join(' '), judged.stdout + judged.stderr);

  const url = `https://127.0.0.1:${ports.proxy}/svc/v1`;
  const flags = ['--dev', '--data', own, '--listen', `127.0.0.1:${ports.relay}`];
  const env = {
    ...process.env,
    POSTHOUSE_TLS_MODE: 'off',
    POSTHOUSE_PUBLIC_HTTPS: url,
    POSTHOUSE_PUBLIC_WSS: url.replace('https', 'wss'),
    POSTHOUSE_FEDERATION_LISTEN: '',
    POSTHOUSE_TRUSTED_PROXIES: '127.0.0.1',
    POSTHOUSE_OPERATIONS_LISTEN: `127.0.0.1:${ports.operations}`,
    POSTHOUSE_LIMITS_HTTP_BODY_BYTES: String(4 * 1024 * 1024),
    POSTHOUSE_LIMITS_DRAIN_TIME: String(drainTime),
    NODE_EXTRA_CA_CERTS: certificate,
  };
  const relay = spawn(process.execPath, [posthouse, 'serve', ...flags, '--log', 'error'], {
    ...{ stdio: ['ignore', 'pipe', 'inherit'], env },
  });
  await once(relay.stdout as NodeJS.ReadableStream, 'data');
  const [command = '', ...started] = proxy.start(place);
  const program = spawn(command, started, { stdio: 'ignore', env: proxyEnvironment });
  try {
    const answer = await until(
      (text) => text !== '',
      () => postLarge(url),
    );
    const hasArrived = /"code":"bad_request"/.test(answer ?? '');
    report(hasArrived, `${name}: a body of 2 MiB arrives`, answer);
    const checked = runNode(posthouse, ['check', ...flags], env);
    const isGood = checked.isGood && /^ok +client address/m.test(checked.stdout);
    report(isGood, `${name}: posthouse check`, checked.output);
    const registry = join(own, 'registry.json');
    const target = ['--relay', url, '--registry', registry, '--ca', certificate];
    const quick = runNode(kit, [...target, '--only', ...proxy.checks], env);
    const summary = quick.stdout.trim().split('\n').at(-1);
    report(quick.isGood, `${name}: conformance kit: ${summary}`, quick.output);
    if (proxy.followsReadiness) await checkDraining(name, url, relay);
  } finally {
    program.kill('SIGTERM');
    // Twice: the second signal ends a relay that drains at once.
    relay.kill('SIGTERM');
    relay.kill('SIGTERM');
    await Promise.all([
      relay.exitCode ?? once(relay, 'exit'),
      program.exitCode ?? once(program, 'exit'),
    ]);
  }
}

/** A relay that stops gets no more clients from the proxy, although it still serves. */
async function checkDraining(name: string, url: string, relay: ChildProcess): Promise<void> {
  relay.kill('SIGTERM');
  const status = await until(
    (seen) => seen === 503,
    () => statusOf(url),
  );
  const stillServes = relay.exitCode === null;
  report(
    status === 503 && stillServes,
    `${name}: sends no client to a relay that drains`,
    `${status}`,
  );
}

/** Proxies write nothing outside of this folder. */
const proxyEnvironment = {
  ...process.env,
  ...{ HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
};

const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '90'];
execFileSync(
  'openssl',
  ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate],
  { stdio: 'ignore' },
);
const both = [certificate, key].map((path) => readFileSync(path, 'utf8'));
writeFileSync(join(folder, 'both.pem'), both.join(''));
try {
  const only = process.argv.slice(2);
  for (const [name, proxy] of Object.entries(proxies)) {
    if (only.length > 0 && !only.includes(name)) continue;
    if (isInstalled(proxy.program)) await checkProxy(name, proxy);
    else reportSkipped(name, `${proxy.program} is not installed`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
