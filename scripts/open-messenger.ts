/**
 * `npm run web`: opens the messenger of the relay that `npm start` runs, in Chromium with an empty
 * profile that takes the relay's certificate for a trusted one. The profile is removed at the end.
 *
 * @example
 * npm run web -- https://127.0.0.1:8443
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';

const [origin = 'https://127.0.0.1:8443'] = process.argv.slice(2);
const { hostname, port } = new URL(origin);

const executable = [
  ...['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
].find((path) => existsSync(path));
if (executable === undefined) {
  throw new Error(`Chromium is not installed: open ${origin}/app/ in your browser instead`);
}

const key = await new Promise<Buffer>((resolve, reject) => {
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false });
  socket.once('error', (cause) => {
    reject(new Error(`no relay answers at ${origin}: run npm start first`, { cause }));
  });
  socket.once('secureConnect', () => {
    resolve(
      socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' }) as Buffer,
    );
    socket.end();
  });
});
const profile = mkdtempSync(join(tmpdir(), 'messenger-'));
const browser = spawn(
  executable,
  [
    ...[`--user-data-dir=${profile}`, '--no-first-run', '--no-default-browser-check'],
    `--ignore-certificate-errors-spki-list=${createHash('sha256').update(key).digest('base64')}`,
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    `${origin}/app/`,
  ],
  { stdio: 'ignore' },
);
browser.once('exit', () => rmSync(profile, { recursive: true, force: true }));
