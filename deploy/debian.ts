/**
 * Makes the Debian package of the relay: the bundle of `npm run build`, the Node that runs it (Debian
 * 12 has an older one), and the systemd unit. Needs `dpkg-deb` and `strip`. `DEBFULLNAME` and `DEBEMAIL`
 * name the maintainer, `SOURCE_DATE_EPOCH` is the date.
 *
 * @example
 * npm run build && npx node deploy/debian.ts && ls packed/*.deb
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

const root = join(import.meta.dirname, '..');
const relay = join(root, 'packages/relay/dist');
const manifest = JSON.parse(readFileSync(join(relay, 'package.json'), 'utf8')) as Manifest;
const { version } = manifest;
const platform = `${process.platform}-${process.arch}`;

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

/** Whether a file of a native package is of use here: not what is built for another system. */
function isForThisPlatform(path: string): boolean {
  const [, built] = path.split('/prebuilds/');
  return !path.endsWith('.bare') && (built === undefined || built.startsWith(platform));
}

const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
const {
  DEBFULLNAME: maintainer = 'Posthouse contributors',
  // RFC 2606: no address. Who builds a package for others is its maintainer, and names one.
  DEBEMAIL: email = 'contributors@posthouse.invalid',
  SOURCE_DATE_EPOCH: seconds = String(Math.floor(Date.now() / 1000)),
} = process.env;

const control = `Package: posthouse
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer} <${email}>
Section: net
Priority: optional
Depends: adduser, libatomic1, libc6 (>= 2.28), libgcc-s1, libstdc++6
Recommends: libjemalloc2
Description: relay of a network in which people own their accounts
 Receives and stores end-to-end encrypted messages for the devices of its
 accounts, and hosts groups and channels. Contains the Node.js that runs it.
`;

/** `+0000` in the form of RFC 5322, as Debian's tools read it. */
const date = new Date(Number(seconds) * 1000).toUTCString().replace('GMT', '+0000');

const changelog = `posthouse (${version}) unstable; urgency=medium

  * What changed is in /usr/share/doc/posthouse/NEWS.gz.

 -- ${maintainer} <${email}>  ${date}
`;

const command = `#!/bin/sh
exec /usr/lib/posthouse/node /usr/lib/posthouse/bin/posthouse.js "$@"
`;

/** The manual page: what `posthouse --help` prints. */
function manualPage(): string {
  const help = execFileSync(process.execPath, [join(relay, 'bin/posthouse.js'), '--help'], {
    encoding: 'utf8',
  });
  const text = help
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
  return `.TH POSTHOUSE 1 "" "posthouse ${version}" "User Commands"
.SH NAME
posthouse \\- relay of a network in which people own their accounts
.SH SYNOPSIS
.B posthouse
.I command
.RI [ options ]
.SH DESCRIPTION
.nf
${text.trimEnd()}
.fi
.SH FILES
.TP
.I /etc/posthouse/relay.json
configuration of the service
.TP
.I /var/lib/posthouse
keys and database; back the keys up
.SH SEE ALSO
.IR /usr/share/doc/posthouse/operations.md ,
.B posthouse
.I command
.B \\-\\-help
`;
}

const folder = mkdtempSync(join(tmpdir(), 'posthouse-debian-'));
const parts = join(import.meta.dirname, 'debian');

function write(path: string, text: string | Uint8Array, mode = 0o644): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text, { mode });
}

const writeCompressed = (path: string, text: string) => write(path, gzipSync(text, { level: 9 }));

function copy(from: string, to: string): void {
  mkdirSync(dirname(join(folder, to)), { recursive: true });
  copyFileSync(from, join(folder, to));
}

function copyPrograms(): void {
  const target = join(folder, 'usr/lib/posthouse');
  copy(process.execPath, 'usr/lib/posthouse/node');
  cpSync(join(relay, 'bin'), join(target, 'bin'), { recursive: true });
  copy(join(relay, 'package.json'), 'usr/lib/posthouse/package.json');
  for (const name of nativePackages()) {
    const source = join(root, 'node_modules', name);
    const options = { recursive: true, dereference: true, filter: isForThisPlatform };
    cpSync(source, join(target, 'node_modules', name), options);
  }
  // They are run by the package's own Node: /usr/bin/posthouse names it.
  for (const path of globSync('**/*.{js,cjs,mjs}', { cwd: target })) {
    const file = join(target, path);
    const text = readFileSync(file, 'utf8');
    if (text.startsWith('#!')) writeFileSync(file, text.slice(text.indexOf('\n') + 1));
    chmodSync(file, 0o644);
  }
  for (const path of ['node', ...globSync('**/*.node', { cwd: target })]) {
    execFileSync('strip', ['--strip-unneeded', '--remove-section=.comment', join(target, path)]);
  }
}

function copyDocuments(): void {
  const documents = 'usr/share/doc/posthouse';
  copy(join(root, 'docs/operations.md'), `${documents}/operations.md`);
  copy(join(parts, 'copyright'), `${documents}/copyright`);
  copy(join(relay, 'THIRD-PARTY-LICENSES'), `${documents}/THIRD-PARTY-LICENSES`);
  const node = join(root, `node_modules/node/node_modules/node-${platform}`);
  copy(join(node, 'LICENSE'), `${documents}/NODE-LICENSE`);
  writeCompressed(`${documents}/changelog.gz`, changelog);
  writeCompressed(`${documents}/NEWS.gz`, readFileSync(join(root, 'CHANGELOG.md'), 'utf8'));
  writeCompressed('usr/share/man/man1/posthouse.1.gz', manualPage());
  copy(join(parts, 'lintian-overrides'), 'usr/share/lintian/overrides/posthouse');
}

try {
  // mkdtemp makes a folder for its user alone; it becomes the package's root folder.
  chmodSync(folder, 0o755);
  write('DEBIAN/control', control);
  for (const name of ['postinst', 'prerm', 'postrm']) {
    write(`DEBIAN/${name}`, readFileSync(join(parts, name)), 0o755);
  }
  write('usr/bin/posthouse', command, 0o755);
  copyPrograms();
  copyDocuments();
  copy(join(root, 'deploy/posthouse.service'), 'usr/lib/systemd/system/posthouse.service');
  mkdirSync(join(root, 'packed'), { recursive: true });
  const path = join(root, 'packed', `posthouse_${version}_${architecture}.deb`);
  execFileSync('dpkg-deb', ['--root-owner-group', '-Zxz', '-z1', '--build', folder, path], {
    ...{ stdio: 'inherit', env: { ...process.env, SOURCE_DATE_EPOCH: seconds } },
  });
} finally {
  rmSync(folder, { recursive: true });
}
