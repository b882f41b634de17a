/** 02 §18: the address and headers of a request are bytes of its sender, whatever it asks for. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { codeOf, type HttpMessage } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const burst = 20_000;
const folder = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
const limits = { addressBytes: 1_000, addressBytesBurst: burst };
const relay = servedRelay({ blobs: { folder }, limits });
afterAll(() => rmSync(folder, { recursive: true }));
const ann = relay.person('ann');

const preflight = { 'access-control-request-method': 'POST' };
const json = { accept: 'application/json' };
const html = { accept: 'text/html' };

/** Asks with headers of some bytes. */
function ask(message: HttpMessage, bytes = burst / 2) {
  const headers = { ...message.headers, 'x-filler': 'x'.repeat(bytes) };
  return relay.http().send({ ...message, headers });
}

beforeEach(() => void relay.clock.advance((3 * burst) / 1_000));

test.each([
  ['a path that no method has', { verb: 'GET', path: '/no/method' }],
  ['a path that cannot be decoded', { verb: 'GET', path: '//%' }],
  ['what a page asks first', { verb: 'OPTIONS', path: '/relay/info', headers: preflight }],
  ['a page without HTML', { verb: 'GET', path: '//', headers: json }],
  ['the proof of a check', { verb: 'GET', path: '/relay/check' }],
])('02 §18: who asks for %s waits while its address owes bytes', async (_, message) => {
  const { token } = await relay.logInDevice(ann);
  relay.clock.advance((2 * burst) / 1_000);
  const { status } = await ask(message);
  let isAnswered = false;
  const late = ask(message).finally(() => {
    isAnswered = true;
  });
  // Its bytes have arrived once a call of the address owes.
  const call = () => ask({ verb: 'GET', path: '/relay/info' }, 1).then(codeOf);
  while ((await call()) === 'ok');
  const sync = await relay.http().call('message.timeline.sync', {}, { token });
  expect(codeOf(sync)).toBe('ok');
  expect(isAnswered).toBe(false);
  while (!isAnswered) {
    relay.clock.advance(1);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
  }
  expect((await late).status).toBe(status);
  expect(await call()).toBe('ok');
});

test.each([
  ['a page', { verb: 'GET', path: '//', headers: html }],
  ['a document', { verb: 'GET', path: '//openrpc.json' }],
  ['an attachment', { verb: 'GET', path: `/blobs/${'a'.repeat(43)}` }],
])('02 §18: who asks for %s is refused while its address owes bytes', async (_, message) => {
  expect(codeOf(await ask(message, 10))).not.toBe('rate_limited');
  await ask(message);
  expect(codeOf(await ask(message))).toBe('rate_limited');
});

test.each([
  ['an upload', { verb: 'PUT', path: '/blobs' }],
  ['a deletion', { verb: 'DELETE', path: `/blobs/${'a'.repeat(43)}` }],
])(
  '02 §18: %s that is refused without a session costs its address bytes, once',
  async (_, message) => {
    const call = () => ask({ verb: 'GET', path: '/relay/info' }, 1).then(codeOf);
    expect(codeOf(await ask(message))).toBe('unauthorized');
    expect(await call()).toBe('ok');
    expect(codeOf(await ask(message))).toBe('unauthorized');
    expect(await call()).toBe('rate_limited');
  },
);
