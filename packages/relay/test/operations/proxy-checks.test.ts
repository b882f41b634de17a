/** What `posthouse check` finds of a proxy before the relay: WebSockets, and addresses of clients. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { PartialConfig } from '../../src/config/index.ts';
import { Relay } from '../../src/index.ts';
import { clientAddressFinding } from '../../src/operations/checks/client-address.ts';
import { proxyLines } from '../../src/operations/checks/proxy-lines.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { RelayData } from '../support/engine.ts';
import { freePort } from '../support/ports.ts';
import { checksOf, withOutcome } from './checked-network.ts';
import { HttpProxy } from './http-proxy.ts';

let open: AsyncDisposableStack;
let proxy: HttpProxy;
let relay: Relay;
let settings: PartialConfig;
beforeAll(async () => {
  await using parts = new AsyncDisposableStack();
  const data = parts.use(await RelayData.withSchema());
  const now = Math.floor(Date.now() / 1_000);
  const made = await devCertificate(join(data.path, 'proxy'), ['127.0.0.1'], now);
  const [cert, key] = ['cert', 'key'].map((name) => join(data.path, `${name}.pem`)) as [
    string,
    string,
  ];
  writeFileSync(cert, made.cert);
  writeFileSync(key, made.key, { mode: 0o600 });
  const port = await freePort();
  proxy = parts.use(await HttpProxy.start(port, { cert, key }));
  settings = {
    ...data.config,
    ...{ dev: true, log: 'silent' as const, listen: `127.0.0.1:${port}`, tls: { mode: 'off' } },
    public: { https: [`https://127.0.0.1:${proxy.port}/svc/v1`] },
    trustedProxies: ['127.0.0.1'],
    federation: { listen: '', ca: made.authorityFile, allowPrivate: true },
  };
  relay = parts.use(await Relay.start(settings, { log: pino({ level: 'silent' }) }));
  open = parts.move();
});
afterAll(() => open[Symbol.asyncDispose]());
afterEach(async () => {
  vi.restoreAllMocks();
  proxy.upgrade = undefined;
  proxy.forwarded = (_, client) => client;
  await relay.reload(settings);
});

const found = () => checksOf(settings, 'network');

test('with a proxy that does its part, no check fails, and nothing is told of it', async () => {
  const results = await found();
  expect(withOutcome(results, 'failed')).toEqual([]);
  expect(results['public websocket']?.seen).toContain('and messages pass');
  expect(results['client address']).toMatchObject({
    ...{ outcome: 'ok', seen: 'the proxy at 127.0.0.1 says the addresses of clients: 127.0.0.1' },
  });
});

describe('a WebSocket', () => {
  const answer = (lines: string) => (socket: Duplex) =>
    void socket.end(`HTTP/1.1 ${lines}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);

  test.each([
    [
      'answered with 400',
      answer('400 Bad Request\r\nserver: nginx'),
      'answers with status 400',
      /^[^:]*: nginx: .*Upgrade \$http_upgrade/,
    ],
    [
      'answered with 200',
      answer('200 OK\r\nserver: Apache/2.4'),
      'answers with status 200',
      /Apache: .*upgrade=websocket/,
    ],
    [
      'answered with 502',
      answer('502 Bad Gateway'),
      'answers with status 502',
      /nginx: .*; Caddy: .*; Apache: .*; HAProxy: /,
    ],
    ['held', () => {}, 'no answer to a request for a WebSocket', /nginx: .*; Caddy: /],
    [
      'opened, and held then',
      (_: Duplex, agree: () => void) => agree(),
      'no message comes back',
      /nginx: .*; Caddy: /,
    ],
  ])('that is %s fails with the line to add', async (_, upgrade, seen, cure) => {
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((most) => timeout(most / 10));
    proxy.upgrade = upgrade;
    const results = await found();
    expect(withOutcome(results, 'failed')).toEqual(['public websocket']);
    expect(results['public websocket']?.seen).toContain(seen);
    expect(results['public websocket']?.cure?.replace(/^.*?public\.wss\. /, 'x: ')).toMatch(cure);
  });
});

describe('the address of a client', () => {
  test('that the proxy does not say fails with the line to add', async () => {
    proxy.forwarded = () => undefined;
    expect((await found())['client address']).toMatchObject({
      outcome: 'failed',
      seen: expect.stringContaining('does not say the addresses of clients'),
      cure: expect.stringContaining('proxy_set_header X-Forwarded-For $remote_addr'),
    });
  });

  test('that clients can choose fails', async () => {
    proxy.forwarded = (said) => said;
    const results = await found();
    expect(withOutcome(results, 'failed')).toEqual(['client address']);
    expect(results['client address']?.seen).toContain('clients choose the address');
  });

  test('that a proxy says which is not trusted fails, and the proxy is named', async () => {
    await relay.reload({ ...settings, trustedProxies: ['10.0.0.1'] });
    expect((await found())['client address']).toMatchObject({
      outcome: 'failed',
      cure: expect.stringContaining('add "127.0.0.1" to trustedProxies'),
    });
  });

  const own = new Set(['198.51.100.7']);
  const direct = { isBehindProxy: false, headers: {}, own };
  const withoutTls = { ...direct, isBehindProxy: true };
  const proxied = { peer: '10.0.0.1', is_trusted: true };
  test.each([
    [
      { peer: '198.51.100.7', is_trusted: false, client: '198.51.100.7', forwarded: '192.0.2.1' },
      direct,
      'ok',
    ],
    [{ peer: '10.0.0.1', is_trusted: false, client: '10.0.0.1' }, direct, 'failed'],
    [
      { peer: '10.0.0.1', is_trusted: false, client: '10.0.0.1', forwarded: '192.0.2.1' },
      withoutTls,
      'failed',
    ],
    [{ ...proxied, client: '203.0.113.9', forwarded: '192.0.2.1, 203.0.113.9' }, withoutTls, 'ok'],
    // The machine that asks is a trusted proxy itself, and clients elsewhere are not.
    [{ ...proxied, client: '192.0.2.1', forwarded: '192.0.2.1, 198.51.100.7' }, withoutTls, 'ok'],
    [{ ...proxied, client: '192.0.2.1', forwarded: '192.0.2.1, 10.0.0.2' }, withoutTls, 'failed'],
    [{ ...proxied, client: '192.0.2.1', forwarded: '192.0.2.1' }, withoutTls, 'failed'],
    [{ ...proxied, client: '10.0.0.1', forwarded: 'unknown' }, withoutTls, 'failed'],
  ])('%j with %j is %s', (seen, how, outcome) => {
    expect(clientAddressFinding(seen, how).outcome).toBe(outcome);
  });
});

test('the lines are of the proxy that the answer shows, or of each', () => {
  expect(proxyLines('address', { server: 'Caddy' })).toMatch(/^Caddy: `header_up/);
  expect(proxyLines('upgrade', { via: '1.1 haproxy' })).toMatch(/^HAProxy: /);
  expect(proxyLines('upgrade').match(/\w+: /g)).toHaveLength(4);
});

test('only a command with the keys of the relay is told what the relay sees', async () => {
  const url = `http://${settings.listen}/svc/v1/posthouse-check`;
  const unknown = await fetch(`http://${settings.listen}/svc/v1/posthouse-nothing`);
  const text = await unknown.text();
  for (const proof of [undefined, '', 'x'.repeat(200), `1.${'0'.repeat(32)}.${'0'.repeat(64)}`]) {
    const headers = proof === undefined ? {} : { 'x-posthouse-check': proof };
    const refused = await fetch(url, { headers });
    expect([refused.status, await refused.text()]).toEqual([unknown.status, text]);
  }
});
