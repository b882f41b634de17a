import { X509Certificate } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, get } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { devAuthority, devCertificate } from '../../src/tls/dev-ca.ts';
import { temporaryFolder } from '../support/folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const hosts = ['127.0.0.1', '::1', 'localhost'];
const day = 86_400;
const now = () => Math.floor(Date.now() / 1_000);
const ca = () => readFileSync(join(folder.path, 'tls', 'ca.pem'), 'utf8');

/** What a TLS client makes of the certificate: the status, or why it refused. */
async function meet(pair: { cert: string; key: string }, servername: string): Promise<string> {
  const server = createServer(pair, (_request, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const outcome = await new Promise<string>((resolve) => {
    get({ host: '127.0.0.1', port, ca: ca(), servername }, (answer) => {
      answer.resume();
      resolve(String(answer.statusCode));
    }).on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? ''));
  });
  await new Promise((resolve) => server.close(resolve));
  return outcome;
}

describe('the server certificate', () => {
  test('is good for its hosts and no other', async () => {
    const pair = await devCertificate(folder.path, hosts, now());
    expect(await meet(pair, '')).toBe('200');
    expect(await meet(pair, 'localhost')).toBe('200');
    expect(await meet(pair, 'elsewhere.example')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    const certificate = new X509Certificate(pair.cert);
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.ca).toBe(false);
    expect(new X509Certificate(ca()).ca).toBe(true);
  });

  test('stays the same between starts', async () => {
    const first = await devCertificate(folder.path, hosts, now());
    expect((await devCertificate(folder.path, hosts, now() + 59 * day)).cert).toBe(first.cert);
  });

  test('is renewed under the same authority when a month is left', async () => {
    const first = await devCertificate(folder.path, hosts, now());
    const authority = ca();
    const next = await devCertificate(folder.path, hosts, now() + 61 * day);
    expect(next.cert).not.toBe(first.cert);
    expect(ca()).toBe(authority);
    expect(new X509Certificate(next.cert).verify(new X509Certificate(authority).publicKey)).toBe(
      true,
    );
  });

  test('is made anew for another host', async () => {
    await devCertificate(folder.path, hosts, now());
    const next = await devCertificate(folder.path, [...hosts, 'relay.test', '2001:db8::7'], now());
    const certificate = new X509Certificate(next.cert);
    expect(certificate.checkHost('relay.test')).toBe('relay.test');
    expect(certificate.checkIP('2001:db8::7')).toBe('2001:db8::7');
  });

  test('follows a new authority when the old one comes to its end', async () => {
    const first = await devCertificate(folder.path, hosts, now());
    const authority = ca();
    await devCertificate(folder.path, hosts, now() + 3_300 * day);
    expect(ca()).not.toBe(authority);
    expect(first.authorityFile).toBe(join(folder.path, 'tls', 'ca.pem'));
  });
});

test('two relays share an authority in a folder of its own', async () => {
  const authorityFolder = join(folder.path, 'shared');
  const file = await devAuthority(authorityFolder, now());
  expect(await devAuthority(authorityFolder, now())).toBe(file);
  const authority = new X509Certificate(readFileSync(file));
  for (const relay of ['a', 'b']) {
    const data = join(folder.path, relay);
    const pair = await devCertificate(data, hosts, now(), { authorityFolder });
    expect(new X509Certificate(pair.cert).verify(authority.publicKey)).toBe(true);
    expect(pair.authorityFile).toBe(file);
    expect(readdirSync(join(data, 'tls')).sort()).toEqual(['server.key', 'server.pem']);
  }
});

test('private keys are of mode 0600, and refused otherwise', async () => {
  await devCertificate(folder.path, hosts, now());
  for (const file of ['ca.key', 'server.key']) {
    const path = join(folder.path, 'tls', file);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  }
  chmodSync(join(folder.path, 'tls', 'ca.key'), 0o644);
  await expect(devCertificate(folder.path, hosts, now())).rejects.toThrow(/expected mode 0600/);
});

test('certificates beyond 2049 are dated as RFC 5280 says', async () => {
  const late = Date.UTC(2049, 0, 1) / 1_000;
  await devCertificate(folder.path, hosts, late);
  expect(new X509Certificate(ca()).validToDate.getUTCFullYear()).toBe(2058);
});
