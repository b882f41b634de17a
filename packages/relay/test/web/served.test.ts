/** The messenger as a relay serves it (decision 0045): known names only, from memory. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { readWebFiles } from '../../src/web/files.ts';
import { openWeb } from '../../src/web/open.ts';
import { builtContents, writeMessenger } from '../support/built-messenger.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
afterAll(() => rmSync(folder, { recursive: true }));

writeMessenger(folder);

const relay = servedRelay({ web: { folder }, registration: 'invite' });
const script = '/app/main-ABCDEFGH.js';

async function fetched(path: string, headers: Record<string, string> = {}, verb = 'GET') {
  // Two slashes: of the host, not after the base address.
  return await relay.http().send({ verb, path: `/${path}`, headers });
}

describe('the messenger under /app/', () => {
  test('is a page under a policy that lets its own files run, and nothing else', async () => {
    const { status, headers, text } = await fetched('/app/');
    expect([status, headers['content-type'], text]).toEqual([
      200,
      ...(builtContents['index.html'] ?? []),
    ]);
    const policy = String(headers['content-security-policy']).split('; ');
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
      'trusted-types posthouse',
    ]) {
      expect(policy).toContain(rule);
    }
    expect(policy.join()).not.toMatch(/unsafe|data:|\*/);
    expect(headers).toMatchObject({
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
  });

  test('files whose names change with their content may be kept for ever; others are asked for again', async () => {
    const { headers } = await fetched(script);
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    const tag = String(headers.etag);
    const again = await fetched(script, { 'if-none-match': tag });
    expect([again.status, again.text]).toEqual([304, '']);
    for (const list of [`W/${tag}`, `"other", ${tag}`, `"other",W/${tag}`, '*']) {
      expect((await fetched(script, { 'if-none-match': list })).status, list).toBe(304);
    }
    for (const list of ['"other"', tag.slice(1, -1), `${tag}x`, '']) {
      expect((await fetched(script, { 'if-none-match': list })).status, list).toBe(200);
    }
  });

  test.each([
    ['', undefined],
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['br;q=0.0, gzip;q=0', undefined],
    ['zstd', undefined],
  ])('a client that takes "%s" gets a file as %s', async (accepted, encoding) => {
    const { headers } = await fetched(script, { 'accept-encoding': accepted }, 'HEAD');
    expect(headers['content-encoding']).toBe(encoding);
    expect(headers.vary).toContain('accept-encoding');
    const [, content = ''] = builtContents['main-ABCDEFGH.js'] ?? [];
    const length = { br: brotliCompressSync(content).length, gzip: gzipSync(content).length };
    const expected = length[encoding as keyof typeof length] ?? content.length;
    expect(Number(headers['content-length'])).toBe(expected);
  });

  test('a compressed file is the one that was built', async () => {
    const { port, ca } = relay;
    const { get } = await import('node:https');
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      get(
        { host: '127.0.0.1', port, ca, path: script, headers: { 'accept-encoding': 'br' } },
        async (answer) => resolve(Buffer.concat(await answer.toArray())),
      ).on('error', reject);
    });
    expect(brotliDecompressSync(bytes).toString()).toBe(builtContents['main-ABCDEFGH.js']?.[1]);
  });

  test.each([
    '/app/files.json.br',
    '/app/main-ABCDEFGH.js.br',
    '/app/other.js',
    '/app/../relay.sqlite',
    '/app/%2e%2e/relay.sqlite',
    '/app/..%2frelay.sqlite',
    '/app/a/main-ABCDEFGH.js',
    '/app/__proto__',
    '/app/constructor',
    '/app//main-ABCDEFGH.js',
    '/app/main-ABCDEFGH.js/',
    '/app/main-ABCDEFGH.js%00',
    '/app/%00',
    '/app/%',
    '/app/%ff',
    '/app/MAIN-ABCDEFGH.js',
    '/app/..\\relay.sqlite',
    `/app/${'a'.repeat(8_000)}`,
    '/svc/v1/app/',
  ])('%s is no name of it', async (path) => {
    const { status, text } = await fetched(path);
    expect([status, JSON.parse(text).code]).toEqual([400, 'method_not_found']);
  });

  test('files.json is the list of what is served, as it was built', async () => {
    const { status, headers, text } = await fetched('/app/files.json');
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      ...[200, 'application/json', 'no-cache'],
    ]);
    expect(text).toBe(readFileSync(join(folder, 'files.json'), 'utf8'));
  });

  test.each(['POST', 'PUT', 'DELETE'])('%s is refused', async (verb) => {
    expect((await fetched('/app/', {}, verb)).status).toBe(400);
  });

  test('/app leads to /app/, and / links to it', async () => {
    const { status, headers } = await fetched('/app');
    expect([status, headers.location]).toEqual([308, '/app/']);
    expect((await fetched('/', { accept: 'text/html' })).text).toContain('<a href="/app/">');
  });

  test('config.json names the relay, the network, its relays, and whether an invite is needed', async () => {
    const { headers, text } = await fetched('/app/config.json');
    expect(headers['content-type']).toContain('application/json');
    const config = JSON.parse(text);
    expect(config).toMatchObject({ relayId: relay.relayId, needsInvite: true });
    expect(config.registry.relays.map((each: { relay_id: string }) => each.relay_id)).toEqual([
      relay.relayId,
    ]);
    expect(Object.keys(config).sort()).toEqual(
      ['attachmentBytes', 'context', 'name', 'needsInvite', 'registry', 'relayId', 'word'].sort(),
    );
  });
});

test('a relay serves no messenger unless it is told to', async () => {
  await using other = await ServedRelay.start({ web: false });
  const { status } = await other.http().send({ verb: 'GET', path: '//app/' });
  expect(status).toBe(400);
  const page = await other
    .http()
    .send({ verb: 'GET', path: '//', headers: { accept: 'text/html' } });
  expect(page.text).not.toContain('/app/');
});

describe('a folder that is not a built messenger is refused by name', () => {
  const broken = mkdtempSync(join(tmpdir(), 'messenger-'));
  afterAll(() => rmSync(broken, { recursive: true }));

  test.each([
    [
      'a file that was changed',
      () => writeFileSync(join(broken, 'index.html'), 'other'),
      /index\.html: not the file/,
    ],
    [
      'a list that is none',
      () => writeFileSync(join(broken, 'files.json'), '[]'),
      /files\.json: not the list/,
    ],
    [
      'a name that leads out of it',
      () => writeMessenger(broken, { change: (file) => ({ ...file, name: '../a.js' }) }),
      /files\.json/,
    ],
    [
      'no page',
      () => writeFileSync(join(broken, 'files.json'), '{"version":"1","files":[]}'),
      /index\.html is missing/,
    ],
  ])('%s', (_what, damage, message) => {
    writeMessenger(broken);
    damage();
    expect(() => readWebFiles(broken)).toThrow(message);
  });

  test.each(['.br', '.gz'])('a compressed form (%s) of another content', (extension) => {
    writeMessenger(broken);
    const other = extension === '.br' ? brotliCompressSync('other') : gzipSync('other');
    writeFileSync(join(broken, `index.html${extension}`), other);
    expect(() => readWebFiles(broken)).toThrow(`index.html${extension}: not the file`);
    writeFileSync(join(broken, `index.html${extension}`), 'no compressed bytes');
    expect(() => readWebFiles(broken)).toThrow(`index.html${extension}: not the file`);
  });

  test('the relay does not start with it', async () => {
    writeFileSync(join(broken, 'files.json'), '[]');
    await expect(ServedRelay.start({ web: { folder: broken } })).rejects.toThrow(/files\.json/);
  });
});

describe('the nodes of the chain are told to everyone', () => {
  const common = {
    ...{ data: folder, dev: false, name: 'x', network: 'neo:1:0x00', service: 'svc' },
    blobs: { folder: '', maxBytes: 4_096 },
  };
  const opened = (nodes: string[], web: { folder: string; nodes?: string[] } = { folder }) =>
    openWeb(
      { ...common, registration: 'open', registry: { nodes, agree: 1 }, web },
      { relayId: '0x00', now: () => 0 },
    );

  test.each([
    'https://node.example/v1/KEY',
    'https://node.example/?key=KEY',
    'https://user:KEY@node.example/',
    'http://127.0.0.1:10332',
  ])('%s is not: the start names the setting for public ones', async (node) => {
    expect(() => opened([node])).toThrow(/web\.nodes/);
    const public_ = 'https://public.example:10331';
    const config = await opened([node], { folder, nodes: [public_] })?.config();
    expect(config).toContain(public_);
    expect(config).not.toContain(new URL(node).host);
  });

  test('public ones are', async () => {
    const config = JSON.parse((await opened(['https://node.example:10331'])?.config()) ?? '');
    expect(config.registry).toEqual({ nodes: ['https://node.example:10331'], agree: 1 });
  });
});
