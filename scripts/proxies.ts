/** The proxies that `check-proxies.ts` runs: how each is started with its file of `deploy/proxies`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Place {
  /** A folder that the proxy may write in. */
  readonly folder: string;
  readonly port: number;
}

export interface InstalledProxy {
  readonly program: string;
  /** Name in `deploy/proxies`. */
  readonly file: string;
  /** Checks of the conformance kit, by the start of their id. */
  readonly checks: readonly string[];
  /** Whether its file asks `/readyz`. */
  readonly followsReadiness?: boolean;
  /** Writes the configuration around the file's text; returns its path. */
  prepare(text: string, place: Place): string;
  /** The command that judges a configuration. */
  check(path: string): readonly string[];
  /** The command that runs the proxy in the foreground. */
  start(path: string): readonly string[];
}

/** Everything about transports, and one thing of each kind that passes one. */
const quick = ['transport.', 'session/', 'relay.info/', 'message.send/', 'group.sync/'];
const transports = ['transport.', 'relay.info/'];

function written(name: string, folder: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const apacheModules = 'mpm_event authz_core socache_shmcb ssl headers proxy proxy_http'.split(' ');

export const proxies: Readonly<Record<string, InstalledProxy>> = {
  nginx: {
    ...{ program: 'nginx', file: 'nginx.conf', checks: quick },
    prepare(text, { folder }) {
      const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
      const paths = names.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ');
      const http = `http { access_log off; ${paths}\n${text}\n}`;
      const global = `daemon off; error_log stderr; pid ${folder}/nginx.pid; events {}`;
      return written('nginx.conf', folder, `${global}\n${http}`);
    },
    check: (path) => ['nginx', '-t', '-c', path, '-e', 'stderr'],
    start: (path) => ['nginx', '-c', path, '-e', 'stderr'],
  },
  caddy: {
    ...{ program: 'caddy', file: 'Caddyfile', checks: quick },
    prepare: (text, { folder }) =>
      written('Caddyfile', folder, `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${text}`),
    check: (path) => ['caddy', 'validate', '--adapter', 'caddyfile', '--config', path],
    start: (path) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', path],
  },
  haproxy: {
    ...{ program: 'haproxy', file: 'haproxy.cfg', checks: transports, followsReadiness: true },
    prepare: (text, { folder }) => written('haproxy.cfg', folder, text),
    check: (path) => ['haproxy', '-c', '-f', path],
    start: (path) => ['haproxy', '-db', '-f', path],
  },
  apache: {
    ...{ program: 'apache2', file: 'apache.conf', checks: transports },
    prepare(text, { folder, port }) {
      const modules = apacheModules.map(
        (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
      );
      const global = [
        `ServerRoot ${folder}`,
        `DefaultRuntimeDir ${folder}`,
        'ErrorLog /dev/stderr',
      ];
      const own = [`PidFile ${folder}/apache.pid`, `Listen 127.0.0.1:${port}`];
      // Apache gives root's rights up for a user that it must be told.
      const user = process.getuid?.() === 0 ? ['User www-data', 'Group www-data'] : [];
      const lines = [...modules, ...global, ...own, ...user, 'ServerName 127.0.0.1', text];
      return written('apache.conf', folder, lines.join('\n'));
    },
    check: (path) => ['apache2', '-t', '-f', path],
    start: (path) => ['apache2', '-DFOREGROUND', '-f', path],
  },
};
