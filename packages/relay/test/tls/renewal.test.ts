/** Certificates that replace the one in force: certificates of the wrong time, and files that cannot be read for now. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';
import type { TlsFiles } from '../../src/tls/configured-files.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { readCertificate } from '../../src/tls/files.ts';
import { CertificateRenewal } from '../../src/tls/renewal.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';

const day = 86_400;
let folder: ReturnType<typeof temporaryFolder>;
let clock: ManualClock;
let used: TlsFiles[];
let problems: string[];
let renewal: CertificateRenewal;
let metrics: Metrics;

beforeEach(() => {
  folder = temporaryFolder();
  clock = new ManualClock();
  metrics = new Metrics();
  used = [];
  problems = [];
  const hear = (line: string) => {
    const { err } = JSON.parse(line) as { err?: { message: string } };
    if (err !== undefined) problems.push(err.message);
  };
  const context = { clock, metrics, log: pino({ level: 'info' }, { write: hear }) };
  renewal = new CertificateRenewal({ context, use: (files) => void used.push(files) });
});
afterEach(() => {
  renewal[Symbol.dispose]();
  folder[Symbol.dispose]();
});

/** A source whose certificate was issued so many days ago, for 90 days. */
async function issued(name: string, daysAgo: number) {
  const now = Math.floor(Date.now() / 1_000) - daysAgo * day;
  await devCertificate(join(folder.path, name), ['127.0.0.1'], now);
  const path = join(folder.path, name, 'tls/server');
  const paths = [`${path}.pem`, `${path}.key`] as const;
  const cert = readFileSync(paths[0], 'utf8');
  return { paths, cert, read: () => readCertificate(...paths) };
}

test.each([
  ['has expired', 200, 'expired at '],
  ['is not valid yet', -200, 'is not valid before '],
])('a certificate that %s does not replace one that is valid', async (_, daysAgo, why) => {
  const [good, wrong] = [await issued('good', 1), await issued('wrong', daysAgo)];
  await renewal.start(good, await good.read());
  await expect(renewal.change(wrong)).rejects.toThrow(`${wrong.paths[0]}: ${why}`);
  expect(used).toEqual([]);
});

test('it replaces one that is not valid either, and a valid one replaces it', async () => {
  const [old, older] = [await issued('old', 100), await issued('older', 200)];
  await renewal.start(old, await old.read());
  await renewal.change(older);
  const good = await issued('good', 1);
  await renewal.change(good);
  expect(used.map(({ cert }) => cert)).toEqual([older.cert, good.cert]);
});

test('files that could not be read, because too many files were open, are read again a minute later', async () => {
  const [good, next] = [await issued('good', 1), await issued('next', 0)];
  let isFull = true;
  let paths: readonly string[] = good.paths;
  let reads = 0;
  const source = {
    get paths() {
      return paths;
    },
    read: async () => {
      reads += 1;
      if (isFull) throw new Error('EMFILE: too many open files');
      return await next.read();
    },
  };
  await renewal.start(source, await good.read());
  paths = next.paths;
  for (const count of [1, 2, 3]) {
    await vi.waitFor(() => {
      if (reads < count) clock.advance(60);
      expect(reads).toBe(count);
    }, patience);
  }
  // One line for one reason.
  expect(problems).toEqual(['EMFILE: too many open files']);
  expect(metrics.value('certificate_unusable')).toBe(1);
  isFull = false;
  await vi.waitFor(() => {
    if (used.length === 0) clock.advance(60);
    expect(used.map(({ cert }) => cert)).toEqual([next.cert]);
  }, patience);
  expect(metrics.value('certificate_unusable')).toBe(0);
});

/** Advances the clock until the files of a source were looked at. */
async function untilLookedAt(source: { readonly looks: () => number }): Promise<void> {
  const before = source.looks();
  await vi.waitFor(() => {
    if (source.looks() === before) clock.advance(60);
    expect(source.looks()).toBeGreaterThan(before);
  }, patience);
}

/** A source that counts the looks at its files, and whose reading ends when the test says so. */
function slow(paths: readonly string[]) {
  const [begun, read] = [Promise.withResolvers<void>(), Promise.withResolvers<TlsFiles>()];
  let looks = 0;
  return {
    looks: () => looks,
    get paths() {
      looks += 1;
      return paths;
    },
    read: async () => {
      begun.resolve();
      return await read.promise;
    },
    begun: begun.promise,
    end: read,
  };
}

test('files that were replaced while the relay started are found a minute later', async () => {
  const [old, good] = [await issued('old', 2), await issued('good', 1)];
  await renewal.start(good, await old.read());
  await vi.waitFor(() => {
    if (used.length === 0) clock.advance(60);
    expect(used.map(({ cert }) => cert)).toEqual([good.cert]);
  }, patience);
});

test('a look that began before other files were taken over does not bring those of before back', async () => {
  const [old, good] = [await issued('old', 2), await issued('good', 1)];
  await renewal.start(old, await old.read());
  const next = slow(good.paths);
  const changed = renewal.change(next);
  await next.begun;
  const files = await good.read();
  clock.advance(60);
  next.end.resolve(files);
  await changed;
  await untilLookedAt(next);
  expect(used.map(({ cert }) => cert)).toEqual([good.cert]);
});

test('a reading that fails after other files were taken over is no failure of those', async () => {
  const [old, good] = [await issued('old', 2), await issued('good', 1)];
  const before = slow([]);
  let { read } = old;
  await renewal.start({ paths: [], read: () => read() }, await old.read());
  read = before.read;
  clock.advance(12 * 3_600);
  await before.begun;
  const next = slow(good.paths);
  next.end.resolve(await good.read());
  await renewal.change(next);
  before.end.reject(new Error('EMFILE: too many open files'));
  await untilLookedAt(next);
  expect([problems, metrics.value('certificate_unusable')]).toEqual([[], 0]);
});
