/** A configuration that changes while the relay runs. */
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { PartialConfig } from '../../src/config/index.ts';
import { liveLimits, needsRestart } from '../../src/config/index.ts';
import { Relay } from '../../src/index.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { ManualClock } from '../support/clock.ts';
import { RelayData } from '../support/engine.ts';
import { HttpClient } from '../support/http.ts';
import { patience } from '../support/patience.ts';

let data: RelayData;
let clock: ManualClock;
let relay: Relay;
let values: PartialConfig;
let lines: { msg: string; problems?: string[]; needRestart?: string[] }[];

beforeEach(async () => {
  data = await RelayData.withSchema();
  clock = new ManualClock();
  lines = [];
  await devCertificate(join(data.path, 'first'), ['127.0.0.1'], Math.floor(Date.now() / 1_000));
  await devCertificate(join(data.path, 'second'), ['127.0.0.1'], Math.floor(Date.now() / 1_000));
  values = {
    ...data.config,
    ...{ dev: true, listen: '127.0.0.1:0', operations: { listen: '127.0.0.1:0' } },
    tls: { mode: 'files', ...files('first') },
  };
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  relay = await Relay.start(values, { log, clock });
});
afterEach(async () => {
  await relay[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
});

function files(folder: string) {
  return {
    certificate: join(data.path, folder, 'tls/server.pem'),
    key: join(data.path, folder, 'tls/server.key'),
  };
}

async function trusts(folder: string): Promise<boolean> {
  const ca = readFileSync(join(data.path, folder, 'tls/ca.pem'), 'utf8');
  using client = new HttpClient(relay.https[0] as string, ca);
  return await client.call('relay.info', {}).then(
    () => true,
    () => false,
  );
}

async function ask(path: string): Promise<{ readonly status: number; readonly text: string }> {
  const answer = await fetch(`${relay.operations}${path}`);
  return { status: answer.status, text: await answer.text() };
}
const health = async () => JSON.parse((await ask('/health')).text) as Record<string, unknown>;

/** How many calls pass until one is refused: a payer that owes much has to wait. */
async function passing(
  most: number,
  headersOf: (call: number) => Record<string, string> = () => ({}),
) {
  const ca = readFileSync(join(data.path, 'first/tls/ca.pem'), 'utf8');
  using client = new HttpClient(relay.https[0] as string, ca);
  for (let call = 0; call < most; call += 1) {
    const headers = headersOf(call);
    const { status } = await client.send({ verb: 'GET', path: '/relay/info', headers });
    if (status === 429) return call;
    expect(status).toBe(200);
  }
  return most;
}

test('limits, proxies and log level are in force at once; other settings are named', async () => {
  expect(await passing(20)).toBe(20);
  const result = await relay.reload({
    ...values,
    ...{ name: 'Another name', trustedProxies: ['127.0.0.1'], log: 'warn' },
    limits: { addressRate: 1, addressBurst: 10, pageSize: 7 },
  });
  expect(result).toEqual({
    applied: ['trustedProxies', 'log', 'limits.addressRate', 'limits.addressBurst'],
    needRestart: ['name', 'limits.pageSize'],
  });
  expect(await passing(20)).toBeLessThanOrEqual(10);
  expect(relay.context.limits.pageSize).not.toBe(7);
  expect(relay.context.log.level).toBe('warn');
  expect(lines.at(-1)).toMatchObject({
    msg: 'configuration reloaded; some settings need a restart',
    needRestart: ['name', 'limits.pageSize'],
  });
  // What needs a restart is named again until it was restarted, what is in force is not.
  const again = await relay.reload({ ...values, name: 'Another name' });
  expect(again.needRestart).toEqual(['name']);
  expect(again.applied).toContain('limits.addressRate');
});

test('another mode of TLS waits for the restart: certificate and address stay, the rest is in force', async () => {
  const tls = { mode: 'dev' } as const;
  expect(await relay.reload({ ...values, tls, limits: { addressRate: 7 } })).toEqual({
    applied: ['limits.addressRate'],
    needRestart: ['tls.mode', 'tls.certificate', 'tls.key'],
  });
  expect([await trusts('first'), relay.context.limits.addressRate]).toEqual([true, 7]);
  const off = { ...values, tls: { mode: 'off' }, limits: { addressRate: 8 } } as const;
  await relay.reload({ ...off, public: { https: ['https://relay.example.com/svc/v1'] } });
  expect([await trusts('first'), relay.context.limits.addressRate]).toEqual([true, 8]);
  expect(await relay.reload(values)).toMatchObject({ needRestart: [] });
});

test('the page names the limits in force', async () => {
  const ca = readFileSync(join(data.path, 'first/tls/ca.pem'), 'utf8');
  using client = new HttpClient(new URL(relay.https[0] as string).origin, ca);
  const headers = { accept: 'text/html' };
  const page = async () => (await client.send({ verb: 'GET', path: '/', headers })).text;
  expect(await page()).toContain('stored for 30 days');
  await relay.reload({ ...values, limits: { messageRetention: 7 * 86_400 } });
  expect(await page()).toContain('stored for 7 days');
  await relay.reload(values);
});

test('02 §8: the header of a proxy that is trusted now counts, that of one before does not', async () => {
  const addressOf = (call: number) => ({ 'x-forwarded-for': `203.0.113.${call}` });
  const strict = { limits: { addressRate: 1, addressBurst: 2 } };
  await relay.reload({ ...values, ...strict, trustedProxies: ['127.0.0.1'] });
  expect(await passing(6, addressOf)).toBe(6);
  await relay.reload({ ...values, ...strict });
  expect(await passing(6, addressOf)).toBeLessThan(6);
});

test('other certificate files are used; unusable ones change nothing, and the reason is logged', async () => {
  const other = { ...values, tls: { mode: 'files', ...files('second') } } as const;
  await relay.reload(other);
  expect([await trusts('first'), await trusts('second')]).toEqual([false, true]);
  const limits = { addressRate: 1, addressBurst: 3 };
  const wrong = { ...values, limits, tls: { mode: 'files', ...files('none') } } as const;
  await relay.reloadOr(() => wrong);
  expect(await trusts('second')).toBe(true);
  expect(relay.context.limits.addressBurst).not.toBe(3);
  expect(lines.at(-1)?.problems).toEqual([expect.stringContaining('tls.key names it')]);
  await relay.reloadOr(() => ({ ...values, public: { peer: 'nonsense' } }));
  expect(lines.at(-1)).toMatchObject({
    msg: 'configuration not reloaded: the one before stays in force',
    problems: [expect.stringContaining('public.peer: expected an address')],
  });
  expect(await trusts('second')).toBe(true);
  expect(relay.context.metrics.value('configuration_reloads', { outcome: 'failed' })).toBe(2);
});

test.each(['certificate', 'key'] as const)(
  'a %s that is empty for now, because it is being written, changes nothing',
  async (which) => {
    const path = files('first')[which];
    const whole = readFileSync(path, 'utf8');
    writeFileSync(path, '');
    await relay.reloadOr(() => values);
    expect(lines.at(-1)?.problems).toEqual([expect.stringContaining(`${path}: expected a PEM`)]);
    expect(await trusts('first')).toBe(true);
    clock.advance(60);
    const failed = () => relay.context.metrics.value('certificate_reloads_failed');
    await vi.waitFor(() => expect(failed()).toBe(1), patience);
    expect(await trusts('first')).toBe(true);
    writeFileSync(path, whole);
    await relay.reload(values);
    expect([await trusts('first'), (await health()).certificate]).toEqual([true, 'ok']);
  },
);

test('new certificate files are noticed within a minute; unusable ones degrade health, once', async () => {
  expect(await health()).toMatchObject({ status: 'ok', certificate: 'ok' });
  for (const file of ['server.pem', 'server.key']) {
    copyFileSync(join(data.path, 'second/tls', file), join(data.path, 'first/tls', file));
  }
  clock.advance(60);
  await vi.waitFor(async () => expect(await trusts('second')).toBe(true), patience);
  writeFileSync(files('first').certificate, 'half a certificate');
  clock.advance(60);
  const unusable = { status: 'degraded', certificate: 'unusable' };
  await vi.waitFor(async () => expect(await health()).toMatchObject(unusable), patience);
  clock.advance(60);
  clock.advance(60);
  expect(await trusts('second')).toBe(true);
  copyFileSync(files('second').certificate, files('first').certificate);
  // A mode that others can read is as bad, and is noticed too.
  chmodSync(files('first').key, 0o644);
  const failed = () => relay.context.metrics.value('certificate_reloads_failed');
  // The look before may be under way yet.
  await vi.waitFor(() => {
    clock.advance(60);
    expect(failed()).toBe(2);
  }, patience);
  chmodSync(files('first').key, 0o600);
  await vi.waitFor(async () => {
    clock.advance(60);
    expect(await health()).toMatchObject({ status: 'ok', certificate: 'ok' });
  }, patience);
});

test('07 §B5: a registry file that breaks is one warning and degrades health until it is mended', async () => {
  const registry = join(data.path, 'registry.json');
  const good = readFileSync(registry, 'utf8');
  const becomes = async (expected: object) =>
    await vi.waitFor(async () => {
      clock.advance(2);
      expect(await health()).toMatchObject(expected);
    }, patience);
  await becomes({ status: 'ok', registry: 'ok' });
  writeFileSync(registry, good.slice(0, -10));
  await becomes({ status: 'degraded', registry: 'lost' });
  expect((await ask('/metrics')).text).toContain('posthouse_registry_lost_now 1');
  writeFileSync(registry, good);
  await becomes({ status: 'ok', registry: 'ok' });
  expect(lines.filter(({ msg }) => msg === 'registry cannot be read')).toHaveLength(1);
});

test('/readyz is 503 while the relay drains, and clients are served until its time is over', async () => {
  await relay.reload(values);
  (relay.context.limits as { drainTime: number }).drainTime = 5_000;
  expect([(await ask('/healthz')).status, (await ask('/readyz')).status]).toEqual([200, 200]);
  const { port } = new URL(relay.https[0] as string);
  const idle = connect({ port: Number(port), rejectUnauthorized: false });
  const stopped = relay[Symbol.asyncDispose]();
  expect(await ask('/readyz')).toEqual({ status: 503, text: 'not ready\n' });
  expect((await ask('/healthz')).status).toBe(200);
  expect((await ask('/metrics')).text).toContain('posthouse_ready 0');
  expect(await trusts('first')).toBe(true);
  clock.advance(5);
  await stopped;
  idle.destroy();
  await expect(ask('/readyz')).rejects.toThrow();
});

test('what needs a restart is known for each setting', () => {
  expect(needsRestart('listen')).toBe(true);
  expect(needsRestart('limits.cachedSessions')).toBe(true);
  expect(needsRestart('trustedProxies')).toBe(false);
  for (const name of liveLimits) expect(needsRestart(`limits.${name}`)).toBe(false);
});
