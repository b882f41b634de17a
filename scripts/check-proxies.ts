/**
 * Runs a relay with each proxy of `deploy/proxies` that is installed: nginx and Caddy with the quick
 * part of the conformance kit and a body of 2 MiB; of HAProxy and Apache the syntax alone.
 *
 * @example
 * npm run build && npx node scripts/check-proxies.ts
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'posthouse-proxies-'));
const certificate = join(folder, 'cert.pem');
const key = join(folder, 'key.pem');
let failures = 0;

function report(isGood: boolean, what: string, output = ''): void {
  console.log(`${isGood ? 'ok    ' : 'FAILED'} ${what}`);
  if (isGood) return;
  failures += 1;
  console.log(output);
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
function configOf(file: string, { proxy, relay }: { proxy: number; relay: number }): string {
  return readFileSync(join(root, 'deploy/proxies', file), 'utf8')
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${relay}`)
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

type Start = (config: string) => ChildProcess;

const proxies: Readonly<Record<string, { file: string; start: Start }>> = {
  nginx: {
    file: 'nginx.conf',
    start: (config) => {
      const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
      const paths = names.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
      const path = join(folder, 'nginx.conf');
      const http = `http { access_log off; ${paths}\n${config}\n}`;
      writeFileSync(path, `daemon off; pid ${folder}/nginx.pid; events {}\n${http}`);
      return spawn('nginx', ['-c', path, '-e', 'stderr'], { stdio: 'inherit' });
    },
  },
  caddy: {
    file: 'Caddyfile',
    start: (config) => {
      const path = join(folder, 'Caddyfile');
      writeFileSync(path, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${config}`);
      return spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', path], {
        stdio: 'ignore',
        env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      });
    },
  },
};

/** The status of a POST with a body of 2 MiB, if the relay itself has answered; or the answer. */
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

async function checkProxy(name: string, { file, start }: { file: string; start: Start }) {
  const ports = { proxy: await freePort(), relay: await freePort() };
  const url = `https://127.0.0.1:${ports.proxy}/svc/v1`;
  const data = join(folder, name);
  const flags = ['--dev', '--data', data, '--listen', `127.0.0.1:${ports.relay}`];
  const relay = spawn(
    process.execPath,
    [join(root, 'packages/relay/dist/bin/posthouse.js'), 'serve', ...flags, '--log', 'error'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        ...process.env,
        POSTHOUSE_TLS_MODE: 'off',
        POSTHOUSE_PUBLIC_HTTPS: url,
        POSTHOUSE_TRUSTED_PROXIES: '127.0.0.1',
        POSTHOUSE_LIMITS_HTTP_BODY_BYTES: String(4 * 1024 * 1024),
      },
    },
  );
  await once(relay.stdout, 'data');
  const proxy = start(configOf(file, ports));
  try {
    let answer = '';
    for (let tries = 0; answer === '' && tries < 50; tries += 1) {
      await pause(100);
      answer = await postLarge(url).catch(() => '');
    }
    report(/"code":"bad_request"/.test(answer), `${name}: a body of 2 MiB arrives`, answer);
    const target = ['--relay', url, '--registry', join(data, 'registry.json'), '--ca', certificate];
    const quick = [
      '--only',
      'transport.',
      'session/',
      'relay.info/',
      'message.send/',
      'group.sync/',
    ];
    const kit = spawnSync(
      process.execPath,
      [join(root, 'packages/conformance/dist/bin/posthouse-conformance.js'), ...target, ...quick],
      { encoding: 'utf8', timeout: 120_000 },
    );
    const summary = kit.stdout.trim().split('\n').at(-1);
    report(kit.status === 0, `${name}: conformance kit: ${summary}`, kit.stdout + kit.stderr);
  } finally {
    proxy.kill('SIGTERM');
    relay.kill('SIGTERM');
    await Promise.all([once(relay, 'exit'), proxy.exitCode ?? once(proxy, 'exit')]);
  }
}

const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
execFileSync(
  'openssl',
  ['req', '-x509', ...curve, ...subject, '-keyout', key, '-out', certificate],
  {
    stdio: 'ignore',
  },
);
writeFileSync(
  join(folder, 'both.pem'),
  readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'),
);
try {
  for (const [name, proxy] of Object.entries(proxies)) {
    if (isInstalled(name)) await checkProxy(name, proxy);
    else console.log(`      ${name} is not installed: not checked`);
  }
  if (isInstalled('haproxy')) {
    const path = join(folder, 'haproxy.cfg');
    writeFileSync(path, configOf('haproxy.cfg', { proxy: 1, relay: 2 }));
    const { status, stderr } = spawnSync('haproxy', ['-c', '-f', path], { encoding: 'utf8' });
    report(status === 0, 'haproxy -c', stderr);
  } else console.log('      haproxy is not installed: not checked');
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;
