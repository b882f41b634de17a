/**
 * Makes the Debian package of the relay: the bundle of `npm run build`, the Node that runs it (Debian
 * 12 has an older one), and the systemd unit. Needs `dpkg-deb`.
 *
 * @example
 * npm run build && npx node deploy/debian.ts && ls packed/*.deb
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const relay = join(root, 'packages/relay/dist');
const manifest = JSON.parse(readFileSync(join(relay, 'package.json'), 'utf8')) as Manifest;
const { version } = manifest;

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The native packages that the bundle loads if they are there, with all that they need. */
function nativePackages(): Set<string> {
  const names = new Set<string>();
  const add = (name: string) => {
    const path = join(root, 'node_modules', name, 'package.json');
    if (names.has(name) || !existsSync(path)) return;
    names.add(name);
    const { dependencies = {} } = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
    for (const needed of Object.keys(dependencies)) add(needed);
  };
  for (const name of Object.keys(manifest.optionalDependencies ?? {})) add(name);
  return names;
}

const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();

const control = `Package: posthouse
Version: ${version}
Architecture: ${architecture}
Maintainer: Posthouse contributors <posthouse@localhost>
Section: net
Priority: optional
Depends: adduser, libc6 (>= 2.28), libstdc++6
Description: relay of a network in which people own their accounts
 Receives and stores end-to-end encrypted messages for the devices of its accounts, and hosts groups
 and channels. Contains the Node.js that runs it.
`;

/** The service starts once there is a configuration: \`posthouse init\` needs the operator. */
const postinst = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if ! getent passwd posthouse >/dev/null; then
    adduser --system --group --home /var/lib/posthouse --no-create-home --quiet posthouse
  fi
  install -d -m 0700 -o posthouse -g posthouse /var/lib/posthouse
  install -d -m 0750 -o posthouse -g posthouse /etc/posthouse
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # An upgrade starts no relay that its operator stopped: after a move, or before a restore.
    if [ -z "$2" ]; then
      systemctl enable --quiet posthouse.service
      systemctl restart posthouse.service || true
    else
      systemctl try-restart posthouse.service || true
    fi
  fi
fi
if [ ! -e /etc/posthouse/relay.json ]; then
  echo 'posthouse: make keys and a configuration, then start the relay:'
  echo '  runuser -u posthouse -- posthouse init --config /etc/posthouse/relay.json --data /var/lib/posthouse --network neo:... --url https://...'
  echo '  systemctl start posthouse'
fi
`;

const prerm = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet posthouse.service || true
fi
`;

/** Without its keys a relay is lost for good, so even a purge leaves them unless it is told. */
const postrm = `#!/bin/sh
set -e
if [ "$1" = purge ]; then
  if [ "$POSTHOUSE_PURGE_DATA" = yes ]; then
    rm -rf /var/lib/posthouse /etc/posthouse
  else
    echo 'posthouse: /var/lib/posthouse and /etc/posthouse are kept; POSTHOUSE_PURGE_DATA=yes removes them'
  fi
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`;

const command = `#!/bin/sh
exec /usr/lib/posthouse/node /usr/lib/posthouse/bin/posthouse.js "$@"
`;

const folder = mkdtempSync(join(tmpdir(), 'posthouse-debian-'));

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text, { mode });
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(join(folder, to)), { recursive: true });
  copyFileSync(from, join(folder, to));
}

try {
  write('DEBIAN/control', control);
  for (const [name, text] of Object.entries({ postinst, prerm, postrm })) {
    write(`DEBIAN/${name}`, text, 0o755);
  }
  write('usr/bin/posthouse', command, 0o755);
  copy(process.execPath, 'usr/lib/posthouse/node');
  cpSync(join(relay, 'bin'), join(folder, 'usr/lib/posthouse/bin'), { recursive: true });
  copy(join(relay, 'package.json'), 'usr/lib/posthouse/package.json');
  for (const name of nativePackages()) {
    const target = join(folder, 'usr/lib/posthouse/node_modules', name);
    cpSync(join(root, 'node_modules', name), target, { recursive: true, dereference: true });
  }
  copy(join(root, 'deploy/posthouse.service'), 'usr/lib/systemd/system/posthouse.service');
  copy(join(root, 'docs/operations.md'), 'usr/share/doc/posthouse/operations.md');
  copy(join(root, 'LICENSE'), 'usr/share/doc/posthouse/copyright');
  copy(join(relay, 'THIRD-PARTY-LICENSES'), 'usr/share/doc/posthouse/THIRD-PARTY-LICENSES');
  mkdirSync(join(root, 'packed'), { recursive: true });
  const path = join(root, 'packed', `posthouse_${version}_${architecture}.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z1', '--build', folder, path], {
    stdio: 'inherit',
  });
} finally {
  rmSync(folder, { recursive: true });
}
