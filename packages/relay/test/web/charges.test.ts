/** What the messenger's answers cost the caller's address (decision 0045): the bytes of each body that is sent. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fastify from 'fastify';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { addWebRoutes } from '../../src/transport/web-routes.ts';
import { readWebFiles } from '../../src/web/files.ts';
import { writeMessenger } from '../support/built-messenger.ts';

const folder = mkdtempSync(join(tmpdir(), 'messenger-'));
writeMessenger(folder);
const config = JSON.stringify({ name: 'Post office ü', registry: 'r'.repeat(5_000) });
const charged: number[] = [];
let isUsedUp = false;
const app = fastify();
addWebRoutes(
  app,
  { files: readWebFiles(folder), config: async () => config },
  (_request, bytes) => {
    charged.push(bytes);
    if (isUsedUp) throw new Error('the allowance is used up');
  },
);
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  charged.length = 0;
  isUsedUp = false;
});

test.each(['/app/', '/app/main-ABCDEFGH.js', '/app/config.json'])(
  'the body of %s costs its bytes, HEAD of it nothing',
  async (url) => {
    const answer = await app.inject({ url, headers: { 'accept-encoding': 'br' } });
    expect(answer.statusCode).toBe(200);
    expect(charged).toEqual([answer.rawPayload.length]);
    expect((await app.inject({ method: 'HEAD', url })).statusCode).toBe(200);
    expect(charged[1]).toBe(0);
  },
);

test('an answer without a body costs no bytes: a redirect, a file that the caller has', async () => {
  const { headers } = await app.inject('/app/main-ABCDEFGH.js');
  const again = { url: '/app/main-ABCDEFGH.js', headers: { 'if-none-match': `${headers.etag}` } };
  expect((await app.inject(again)).statusCode).toBe(304);
  expect((await app.inject('/app')).statusCode).toBe(308);
  expect(charged.slice(1)).toEqual([0, 0]);
});

test('without an allowance nothing is answered, also no config.json', async () => {
  isUsedUp = true;
  for (const url of ['/app', '/app/', '/app/main-ABCDEFGH.js', '/app/config.json']) {
    expect((await app.inject(url)).statusCode).toBe(500);
  }
});
