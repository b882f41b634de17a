/** The operator's page as the operations listener serves it (decision 0041). */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Relay } from '../../src/index.ts';
import { temporaryFolder } from '../support/folder.ts';
import { AdminRelay, right } from './admin-relay.ts';

const folder = mkdtempSync(join(tmpdir(), 'admin-page-'));
const contents: Readonly<Record<string, readonly [type: string, content: string]>> = {
  'index.html': ['text/html; charset=utf-8', '<!doctype html><title>page</title>'],
  'main-ABCDEFGH.js': ['text/javascript; charset=utf-8', 'console.log("page");'.repeat(50)],
};
const script = '/admin/main-ABCDEFGH.js';

let admin: AdminRelay;
beforeAll(async () => {
  const files = Object.entries(contents).map(([name, [type, content]]) => {
    writeFileSync(join(folder, name), content);
    writeFileSync(join(folder, `${name}.gz`), gzipSync(content));
    writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content));
    const sha256 = createHash('sha256').update(content).digest('base64');
    return { name, type, bytes: content.length, sha256, immutable: name !== 'index.html' };
  });
  writeFileSync(join(folder, 'files.json'), JSON.stringify({ version: '1', files }));
  admin = await AdminRelay.start({}, folder);
});
afterAll(async () => {
  await admin[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  admin.send(path, { method, headers });

test('0041: the page needs no token, and has a policy that lets its own files run, and nothing else', async () => {
  const { status, headers, text } = await get('/admin/');
  expect([status, headers['content-type'], text]).toEqual([
    200,
    ...(contents['index.html'] as [string, string]),
  ]);
  const policy = String(headers['content-security-policy']).split('; ');
  expect(policy.toSorted()).toEqual([
    "base-uri 'none'",
    "connect-src 'self'",
    "default-src 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "img-src 'self'",
    "require-trusted-types-for 'script'",
    "script-src 'self'",
    "style-src 'self'",
    "trusted-types 'none'",
  ]);
  expect(headers).toMatchObject({
    'cache-control': 'no-cache',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
  expect(admin.takeLines()).toEqual([]);
});

test('0041: files come compressed, are kept by their names, and are asked for again by their digests', async () => {
  const { headers } = await get(script, { 'accept-encoding': 'gzip, br' }, 'HEAD');
  const [, content = ''] = contents['main-ABCDEFGH.js'] ?? [];
  expect(headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-encoding': 'br',
    'content-length': String(brotliCompressSync(content).length),
    vary: 'accept-encoding',
    'x-content-type-options': 'nosniff',
  });
  const plain = await get(script);
  expect([plain.text, plain.headers['content-encoding']]).toEqual([content, undefined]);
  const again = await get(script, { 'if-none-match': String(plain.headers.etag) });
  expect([again.status, again.text]).toEqual([304, '']);
});

test.each([
  '/admin/THIRD-PARTY-LICENSES',
  '/admin/main-ABCDEFGH.js.br',
  '/admin/other.js',
  '/admin//',
  '/admin/./index.html',
  '/admin/../admin.token',
  '/admin/..%2fadmin.token',
  '/admin/%2e%2e/admin.token',
  '/admin/__proto__',
  '/admin/v1',
])('0041: %s is no name of it', async (path) => {
  // Written as it is: a library would tidy it.
  const { hostname, port } = new URL(admin.address);
  const { promise, resolve, reject } = Promise.withResolvers<[number | undefined, unknown]>();
  request({ hostname, port, path }, async (answer) => {
    const text = Buffer.concat(await answer.toArray()).toString();
    resolve([answer.statusCode, (JSON.parse(text) as { code: unknown }).code]);
  })
    .on('error', reject)
    .end();
  expect(await promise).toEqual([404, 'method_not_found']);
});

test('0041: /admin leads to the page; other methods are refused; verbs still need the token', async () => {
  const { status, headers } = await get('/admin');
  expect([status, headers.location]).toEqual([308, '/admin/']);
  expect((await get('/admin/?a=b')).status).toBe(200);
  expect((await get('/administration')).status).toBe(404);
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const refused = await admin.send('/admin/', { method, headers: right, body: '{}' });
    expect([method, refused.status, refused.headers.allow]).toEqual([method, 405, 'GET, HEAD']);
  }
  expect((await get('/admin/v1/verbs')).status).toBe(401);
});

test('0041: a page of another site gets nothing of it, whatever its name leads to', async () => {
  const refused: Record<string, string>[] = [
    { host: 'evil.example' },
    { host: `evil.example:${new URL(admin.address).port}` },
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ];
  for (const headers of refused) {
    for (const path of ['/admin', '/admin/', script]) {
      const answer = await get(path, headers);
      expect([headers, answer.status, answer.value.code]).toEqual([headers, 403, 'forbidden']);
    }
  }
  for (const headers of [{ host: 'localhost:9999' }, { 'sec-fetch-site': 'none' }]) {
    expect((await get('/admin/', headers)).status).toBe(200);
  }
});

test('0041: without a token there is no page; one that is not what was built ends the start', async () => {
  using data = temporaryFolder();
  await using off = await Relay.start(
    {
      ...{ data: data.path, dev: true, listen: '127.0.0.1:0', federation: { listen: '' } },
      operations: { listen: '127.0.0.1:0' },
    },
    { adminPage: folder, log: pino({ level: 'silent' }) },
  );
  for (const path of ['/admin', '/admin/', script]) {
    expect((await fetch(`${off.operations}${path}`)).status).toBe(404);
  }
  using page = temporaryFolder();
  const file = { name: 'index.html', type: 'text/html', bytes: 1, sha256: 'x', immutable: false };
  writeFileSync(join(page.path, 'index.html'), 'not what was built');
  writeFileSync(join(page.path, 'files.json'), JSON.stringify({ version: '1', files: [file] }));
  await expect(AdminRelay.start({}, page.path)).rejects.toThrow(/not the file that was built/);
});
