/** 0032: attachments whose folder, or whose uploader, is gone in the middle. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { BlobFolder } from '../../src/blobs/folder.ts';
import { rowsOf } from '../support/engine.ts';
import { codeOf } from '../support/http.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay } from '../support/served-relay.ts';

let disk: string;
let folder: string;
let relay: ServedRelay;
let token: string;
beforeEach(async () => {
  disk = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
  folder = join(disk, 'mounted');
  relay = await ServedRelay.start({ blobs: { folder, retention: 3_600 } });
  token = (await relay.logInDevice(await relay.register('ann'))).token;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await relay[Symbol.asyncDispose]();
  rmSync(disk, { recursive: true });
});

const body = Buffer.from('0123456789');
const headers = () => ({
  'content-type': 'application/octet-stream',
  'content-length': String(body.length),
  'x-svc-session': token,
});
const put = () => relay.http().send({ verb: 'PUT', path: '/blobs', body, headers: headers() });
const ask = (verb: string, name: string) =>
  relay.http().send({ verb, path: `/blobs/${name}`, headers: { 'x-svc-session': token } });
const rows = () => rowsOf(relay.server.context.storage, 'blobs');
const files = () => readdirSync(folder).filter((name) => name !== 'posthouse-blobs');

async function stored(): Promise<string> {
  const { text } = await put();
  return (JSON.parse(text) as { uri: string }).uri.replace(/^.*\//, '');
}

/** As if the file system of the folder were not mounted, with what is left of the path then. */
function unmount({ left }: { readonly left: 'nothing' | 'an empty folder' | 'a file' }): void {
  renameSync(folder, join(disk, 'away'));
  if (left === 'an empty folder') mkdirSync(folder);
  // Another error than that of a missing file, as of a network file system that is not connected.
  if (left === 'a file') writeFileSync(folder, '');
}

function mount(): void {
  rmSync(folder, { recursive: true, force: true });
  renameSync(join(disk, 'away'), folder);
}

test.each(['an empty folder', 'nothing', 'a file'] as const)(
  'while %s is in place of the folder, nothing is stored, found missing or forgotten; then all is there again',
  async (left) => {
    const [kept, deleted] = [await stored(), await stored()];
    unmount({ left });
    for (const refused of [put(), ask('GET', kept), ask('DELETE', deleted)]) {
      expect(codeOf(await refused)).toBe('temporarily_unavailable');
    }
    if (left === 'an empty folder') expect(files()).toEqual([]);
    mount();
    expect((await ask('GET', kept)).text).toBe(String(body));
    expect((await ask('GET', deleted)).status).toBe(404);
    await vi.waitFor(async () => {
      relay.server.wakeJobs();
      expect([files(), (await rows()).length]).toEqual([[kept], 1]);
    }, patience);
  },
);

test('what expires while the folder is away is deleted when it is back', async () => {
  await stored();
  unmount({ left: 'an empty folder' });
  relay.clock.advance(3_600);
  relay.server.wakeJobs();
  const failed = () =>
    relay.server.context.metrics.value('jobs_failed', { job: 'blobs.retention' });
  await vi.waitFor(() => expect(failed()).toBeGreaterThan(0), patience);
  expect(await rows()).toHaveLength(1);
  mount();
  await vi.waitFor(async () => {
    relay.clock.advance(60);
    relay.server.wakeJobs();
    expect([files(), await rows()]).toEqual([[], []]);
  }, patience);
});

/** Has something happen just before the folder is checked the next time, or just after it. */
function atNextCheck(when: 'before' | 'after', happen: () => void): void {
  const { check } = BlobFolder.prototype;
  vi.spyOn(BlobFolder.prototype, 'check').mockImplementationOnce(async function (this: BlobFolder) {
    if (when === 'before') happen();
    await check.apply(this);
    if (when === 'after') happen();
  });
}

test('an upload stores nothing in a folder that went away after it was checked', async () => {
  atNextCheck('after', () => unmount({ left: 'an empty folder' }));
  expect(codeOf(await put())).toBe('temporarily_unavailable');
  expect(files()).toEqual([]);
});

test('a folder that comes back while it is read or deleted from has all that it had', async () => {
  const [kept, deleted] = [await stored(), await stored()];
  unmount({ left: 'an empty folder' });
  atNextCheck('before', mount);
  expect((await ask('GET', kept)).text).toBe(String(body));
  unmount({ left: 'an empty folder' });
  atNextCheck('before', mount);
  expect((await ask('DELETE', deleted)).status).toBe(204);
  expect(files()).toEqual([kept]);
});

test('an upload whose client is gone when all of it is there is not stored: it comes again', async () => {
  const { write } = BlobFolder.prototype;
  const written = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  vi.spyOn(BlobFolder.prototype, 'write').mockImplementationOnce(async function (
    this: BlobFolder,
    ...args
  ) {
    await write.apply(this, args);
    written.resolve();
    await gone.promise;
  });
  const begun = Promise.withResolvers<ServerResponse>();
  const begins = (message: unknown) =>
    begun.resolve((message as { readonly response: ServerResponse }).response);
  subscribe('http.server.request.start', begins);
  onTestFinished(() => void unsubscribe('http.server.request.start', begins));
  const upload = request(`${relay.http().base}/blobs`, {
    ...{ method: 'PUT', ca: relay.ca, servername: '', agent: false, headers: headers() },
  });
  upload.on('error', () => {}).end(body);
  await written.promise;
  expect(files()).toHaveLength(1);
  upload.destroy();
  await once(await begun.promise, 'close');
  gone.resolve();
  await vi.waitFor(async () => expect([files(), await rows()]).toEqual([[], []]), patience);
});
