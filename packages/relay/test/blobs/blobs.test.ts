/** The relay's store of encrypted attachments, outside of the protocol (decision 0032). */
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BlobFolder } from '../../src/blobs/folder.ts';
import { ArrivalDeadline } from '../../src/transport/arrival-deadline.ts';
import type { Person } from '../fixtures/person.ts';
import { rowsOf } from '../support/engine.ts';
import { codeOf, type HttpAnswer } from '../support/http.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay } from '../support/served-relay.ts';
import { SmallDisk } from '../support/small-disk.ts';

const octets = 'application/octet-stream';
const content = Buffer.from('0123456789'.repeat(10));
/** Of one file of up to a block. */
const block = 4_096;

let folder: string;
let relay: ServedRelay;
let ann: Person;
let token: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
  relay = await ServedRelay.start({
    blobs: {
      ...{ folder, maxBytes: 2 * block, accountBytes: 4 * block, totalBytes: 5 * block },
      retention: 3_600,
    },
    limits: { blobTransfersPerOwner: 2, blobTransfers: 3 },
  });
  ann = await relay.register('ann');
  token = (await relay.logInDevice(ann)).token;
});
afterEach(async () => {
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const session = (of: string) => ({ 'x-svc-session': of });

async function put(body: Uint8Array, headers: object = {}, by = token): Promise<HttpAnswer> {
  return await relay.http().send({
    ...{ verb: 'PUT', path: '/blobs', body },
    headers: {
      'content-type': octets,
      'content-length': String(body.length),
      ...session(by),
      ...headers,
    },
  });
}

async function stored(body: Uint8Array = content, by = token): Promise<string> {
  const answer = await put(body, {}, by);
  expect(answer.status, answer.text).toBe(201);
  return nameOf(answer);
}

const nameOf = ({ text }: HttpAnswer) =>
  (JSON.parse(text) as { uri: string }).uri.replace(/^.*\//, '');
const get = (name: string, headers: Record<string, string> = {}, verb = 'GET') =>
  relay.http().send({ verb, path: `/blobs/${name}`, headers });
const remove = (name: string, by = token) =>
  relay.http().send({ verb: 'DELETE', path: `/blobs/${name}`, headers: session(by) });
const files = () => readdirSync(folder).filter((name) => name !== 'posthouse-blobs');
const rows = () => rowsOf(relay.server.context.storage, 'blobs');
const usage = () => rowsOf(relay.server.context.storage, 'blob_usage');
/** The counted bytes of all blobs, which must be the sum of the rows. */
const total = async () => {
  const [all] = await rowsOf(relay.server.context.storage, 'blob_total');
  const sum = (await rows()).reduce((bytes, row) => bytes + (row.counted as number), 0);
  expect(all?.counted).toBe(sum);
  return sum;
};

/** Sends the headers of an upload and the beginning of its body. */
function beginUpload(sent: number, length: number, by = token, to = relay) {
  const { base } = to.http();
  const { promise, resolve } = Promise.withResolvers<number>();
  const upload = httpsRequest(`${base}/blobs`, {
    ...{ method: 'PUT', ca: to.ca, servername: '', agent: false },
    headers: { 'content-type': octets, 'content-length': length, ...session(by) },
  });
  upload.on('response', (answer) => resolve(answer.resume().statusCode ?? 0));
  upload.on('error', () => resolve(0));
  upload.write(Buffer.alloc(sent));
  return { upload, status: promise };
}

describe('0032: storing an attachment', () => {
  test('answers 201 with its address and end; the file is complete and only the owner reads it', async () => {
    const answer = await put(content);
    const { uri, expires_at } = JSON.parse(answer.text) as { uri: string; expires_at: number };
    expect(answer.status).toBe(201);
    expect(uri).toMatch(/\/blobs\/[A-Za-z0-9_-]{43}$/);
    expect(uri.startsWith(relay.server.https[0] as string)).toBe(true);
    expect(expires_at).toBe(relay.clock.now() + 3_600);
    expect(files()).toEqual([nameOf(answer)]);
    expect(statSync(join(folder, nameOf(answer))).mode & 0o777).toBe(0o600);
    expect((await get(nameOf(answer))).text).toBe(content.toString());
  });

  test('a file of maxBytes is stored, one byte more is request_too_large', async () => {
    const name = await stored(Buffer.alloc(2 * block));
    expect((await get(name)).headers['content-length']).toBe(String(2 * block));
    const answer = await put(Buffer.alloc(2 * block + 1));
    expect([answer.status, codeOf(answer)]).toEqual([413, 'request_too_large']);
    expect(files().length).toBe(1);
  });

  test('above the account’s bytes it is rate_limited until the first blob ends; deleting makes room', async () => {
    const first = await stored(Buffer.alloc(2 * block));
    relay.clock.advance(60);
    const second = await stored(Buffer.alloc(block + 1));
    const answer = await put(content);
    expect([answer.status, codeOf(answer)]).toEqual([429, 'rate_limited']);
    expect(answer.headers['retry-after']).toBe('3540');
    const bob = await relay.register('bob');
    await stored(content, (await relay.logInDevice(bob)).token);
    await remove(second);
    await stored();
    expect(files()).toContain(first);
  });

  test('above the bytes of all accounts it is rate_limited for an hour; deleting makes room', async () => {
    const bob = (await relay.logInDevice(await relay.register('bob'))).token;
    const large = Buffer.alloc(2 * block);
    const first = await stored(large);
    await stored(large);
    // Of two uploads at once, one has the last block.
    const answers = await Promise.all([put(content, {}, bob), put(content, {}, bob)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 429]);
    const refused = answers.find(({ status }) => status === 429) as HttpAnswer;
    expect([codeOf(refused), refused.headers['retry-after']]).toEqual(['rate_limited', '3600']);
    expect(await total()).toBe(5 * block);
    await remove(first);
    expect(await total()).toBe(3 * block);
    await stored(large, bob);
  });

  test('above all that the account may store it is rate_limited until its next one ends', async () => {
    await using other = await ServedRelay.start({
      blobs: { folder: mkdtempSync(join(folder, 'other')) },
      limits: { accountStoredBytes: 2 * block },
    });
    const person = await other.register('ann');
    const own = (await other.logInDevice(person)).token;
    const upload = () =>
      other.http().send({
        ...{ verb: 'PUT', path: '/blobs', body: content },
        headers: { 'content-type': octets, 'content-length': '100', ...session(own) },
      });
    expect([(await upload()).status, (await upload()).status]).toEqual([201, 201]);
    const answer = await upload();
    expect([answer.status, codeOf(answer)]).toEqual([429, 'rate_limited']);
    expect(answer.headers['retry-after']).toBe('2592000');
  });

  test('a blob that just fits is stored, one block more is not', async () => {
    await stored(Buffer.alloc(2 * block));
    await stored(Buffer.alloc(1));
    expect(codeOf(await put(Buffer.alloc(block + 1)))).toBe('rate_limited');
    await stored(Buffer.alloc(block));
  });

  test('uploads at once share the quota: no more is stored than fits', async () => {
    const answers = await Promise.all([1, 2].map(() => put(Buffer.alloc(2 * block))));
    expect(answers.map(({ status }) => status)).toEqual([201, 201]);
    const more = await Promise.all([1, 2].map(() => put(content)));
    expect(more.map(({ status }) => status)).toEqual([429, 429]);
    expect(await usage()).toEqual([{ account: ann.account, counted: 4 * block }]);
  });

  test.each<[string, object, string]>([
    ['another type', { 'content-type': 'text/html' }, 'bad_request'],
    ['an encoding', { 'content-encoding': 'gzip' }, 'bad_request'],
    ['no length', { 'content-length': [], 'transfer-encoding': 'chunked' }, 'bad_request'],
    ['a wrong token', session('A'.repeat(43)), 'unauthorized'],
    ['no token', { 'x-svc-session': [] }, 'unauthorized'],
  ])('%s is refused, and nothing is stored', async (_name, headers, code) => {
    const answer = await put(content, headers);
    expect(codeOf(answer)).toBe(code);
    expect([files(), await rows(), await usage()]).toEqual([[], [], []]);
  });

  test('an account session is forbidden', async () => {
    const answer = await put(content, {}, (await relay.logInAccount(ann)).token);
    expect([answer.status, codeOf(answer)]).toEqual([403, 'forbidden']);
  });
});

describe('0032: downloading without a session', () => {
  test('a browser runs, sniffs and shows nothing of it, and pages of any origin may read it', async () => {
    const name = await stored();
    for (const verb of ['GET', 'HEAD']) {
      const { status, headers, text } = await get(name, {}, verb);
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        'content-type': octets,
        'content-length': '100',
        'content-disposition': 'attachment',
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
        'access-control-allow-origin': '*',
        'accept-ranges': 'bytes',
        'cache-control': 'no-store',
      });
      expect(text).toBe(verb === 'GET' ? content.toString() : '');
    }
  });

  test.each([
    ['bytes=0-9', 206, 'bytes 0-9/100', 10],
    ['bytes=95-', 206, 'bytes 95-99/100', 5],
    ['bytes=95-999', 206, 'bytes 95-99/100', 5],
    ['bytes=-5', 206, 'bytes 95-99/100', 5],
    ['bytes=-500', 206, 'bytes 0-99/100', 100],
    ['bytes=99-99', 206, 'bytes 99-99/100', 1],
    ['bytes=100-', 416, 'bytes */100', 0],
    ['bytes=-0', 416, 'bytes */100', 0],
    ['bytes=5-4', 200, undefined, 100],
    ['bytes=0-1,5-6', 200, undefined, 100],
    ['lines=0-1', 200, undefined, 100],
    ['bytes=-', 200, undefined, 100],
  ])('RFC 9110 §14: a range %s is answered %i', async (range, status, part, length) => {
    const answer = await get(await stored(), { range });
    expect(answer.status).toBe(status);
    expect(answer.headers['content-range']).toBe(part);
    expect(answer.text.length).toBe(length);
  });

  test('RFC 9110 §13.1.5: a range of another version is answered with the whole', async () => {
    const name = await stored();
    const { etag = '' } = (await get(name)).headers;
    expect((await get(name, { range: 'bytes=0-1', 'if-range': etag })).status).toBe(206);
    expect((await get(name, { range: 'bytes=0-1', 'if-range': '"x"' })).status).toBe(200);
  });

  test.each(['A'.repeat(43), 'posthouse-blobs', '..%2F..%2Fetc%2Fpasswd', '%00', 'x.part', ''])(
    'the guessed name %j is not found',
    async (name) => {
      await stored();
      const { status } = await get(name);
      expect([400, 404]).toContain(status);
    },
  );

  test('is not stored for an account of another relay, which is a guest here', async () => {
    const { storage } = relay.server.context;
    const { token: guest } = await relay.logInDevice(ann);
    await storage.write('test', (tx) =>
      tx.run(
        `INSERT INTO remote_devices (account, device_id, relay_id, certificate_id, certificate, status,
            expires_at, confirmed_at, stale, generation, failures, next_check_at)
          VALUES (?, ?, ?, '', '', 'active', ?, ?, 0, 0, 0, ?)`,
        ...[ann.account, ann.device().deviceId, `0x${'7'.repeat(40)}`],
        ...[relay.clock.now() + 600, relay.clock.now(), relay.clock.now() + 600],
      ),
    );
    const answer = await put(content, {}, guest);
    expect([answer.status, codeOf(answer)]).toEqual([403, 'forbidden']);
    expect([await rows(), files()]).toEqual([[], []]);
  });

  test('names cannot be listed', async () => {
    await stored();
    expect((await relay.http().send({ verb: 'GET', path: '/blobs' })).status).toBe(400);
  });
});

describe('0032: deleting', () => {
  test('only its account deletes it; for others there is none', async () => {
    const name = await stored();
    const bob = await relay.register('bob');
    const answer = await remove(name, (await relay.logInDevice(bob)).token);
    expect(codeOf(answer)).toBe('not_found');
    expect((await get(name)).status).toBe(200);
    expect((await remove(name)).status).toBe(204);
    expect((await get(name)).status).toBe(404);
    expect(codeOf(await remove(name))).toBe('not_found');
    expect([files(), await rows(), await usage()]).toEqual([[], [], []]);
  });

  test('it needs a session', async () => {
    const name = await stored();
    const answer = await relay.http().send({ verb: 'DELETE', path: `/blobs/${name}` });
    expect(codeOf(answer)).toBe('unauthorized');
    expect((await get(name)).status).toBe(200);
  });

  test('after the retention it is gone at once, and its file and bytes soon', async () => {
    const name = await stored();
    relay.clock.advance(3_599);
    expect((await get(name)).status).toBe(200);
    relay.clock.advance(1);
    expect((await get(name)).status).toBe(404);
    relay.server.wakeJobs();
    await vi.waitFor(async () => expect(await usage()).toEqual([]), patience);
    expect([files(), await rows()]).toEqual([[], []]);
  });
});

describe('0032: uploads that do not end well', () => {
  test('a body that is cut off leaves nothing', async () => {
    const { upload } = beginUpload(10, 100);
    await vi.waitFor(() => expect(files()).toHaveLength(1), patience);
    upload.destroy();
    await vi.waitFor(async () => expect(await usage()).toEqual([]), patience);
    expect([files(), await rows()]).toEqual([[], []]);
  });

  test('a body that stops arriving is refused when its time is over, and leaves nothing', async () => {
    const started = vi.spyOn(ArrivalDeadline.prototype, 'start');
    const { status } = beginUpload(10, 100);
    // Its time runs again after the piece that arrived was written.
    await vi.waitFor(() => expect(started).toHaveBeenCalledTimes(2), patience);
    started.mockRestore();
    relay.clock.advance(31);
    expect(await status).toBe(503);
    expect([files(), await rows(), await usage()]).toEqual([[], [], []]);
  });

  test('a part of a file cannot be downloaded', async () => {
    const { upload } = beginUpload(10, 100);
    await vi.waitFor(() => expect(files()).toHaveLength(1), patience);
    const [part = ''] = files();
    expect((await get(part.replace('.part', ''))).status).toBe(404);
    expect((await get(part)).status).toBe(404);
    upload.destroy();
  });

  test('uploads of one account at once are limited, those of others have room', async () => {
    const begun = [beginUpload(1, 100), beginUpload(1, 100)];
    await vi.waitFor(() => expect(files()).toHaveLength(2), patience);
    expect(codeOf(await put(content))).toBe('rate_limited');
    const bob = await relay.register('bob');
    await stored(content, (await relay.logInDevice(bob)).token);
    for (const { upload } of begun) upload.destroy();
  });

  test('uploads and downloads of all at once are limited', async () => {
    const bob = await relay.register('bob');
    const carol = (await relay.logInDevice(await relay.register('carol'))).token;
    const bobs = (await relay.logInDevice(bob)).token;
    const begun = [beginUpload(1, 100), beginUpload(1, 100), beginUpload(1, 100, bobs)];
    await vi.waitFor(() => expect(files()).toHaveLength(3), patience);
    expect(codeOf(await put(content, {}, carol))).toBe('rate_limited');
    begun[0]?.upload.destroy();
    await vi.waitFor(() => expect(files()).toHaveLength(2), patience);
    await vi.waitFor(
      async () => expect((await put(content, {}, carol)).status).toBe(201),
      patience,
    );
    for (const { upload } of begun) upload.destroy();
  });

  test('a download that is given up before its file was found gives its place back', async () => {
    const name = await stored();
    const { promise: given, resolve: giveUp } = Promise.withResolvers<void>();
    const read = vi.spyOn(BlobFolder.prototype, 'read').mockImplementation(async (asked) => {
      await given;
      return await open(join(folder, asked), 'r');
    });
    const begun = Array.from({ length: 2 }, () =>
      httpsRequest(`${relay.http().base}/blobs/${name}`, { ca: relay.ca, servername: '' }).end(),
    );
    for (const download of begun) download.on('error', () => {});
    await vi.waitFor(() => expect(read).toHaveBeenCalledTimes(2), patience);
    expect((await get(name)).status).toBe(429);
    for (const download of begun) download.destroy();
    // What arrived before this is answered has been seen, the ends of the two included.
    await relay.http().call('relay.info', {});
    giveUp();
    read.mockRestore();
    await vi.waitFor(async () => expect((await get(name)).status).toBe(200), patience);
    expect([(await get(name)).status, (await get(name)).status]).toEqual([200, 200]);
  });

  test('a file of another length than was stored is not found, and the connection stays in order', async () => {
    const name = await stored();
    writeFileSync(join(folder, name), 'short');
    for (const verb of ['GET', 'HEAD']) expect((await get(name, {}, verb)).status).toBe(404);
  });

  test('a session that ends during the upload stores nothing', async () => {
    const own = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
    const limits = { deviceSessionLifetime: 20 };
    await using other = await ServedRelay.start({ blobs: { folder: own }, limits });
    const by = (await other.logInDevice(await other.register('bob'))).token;
    const { upload, status } = beginUpload(10, 100, by, other);
    await vi.waitFor(() => expect(readdirSync(own)).toHaveLength(2), patience);
    other.clock.advance(20);
    upload.end(Buffer.alloc(90));
    expect(await status).toBe(401);
    expect(readdirSync(own)).toEqual(['posthouse-blobs']);
    rmSync(own, { recursive: true });
  });

  test('what a crash left of an upload is deleted when its time is over', async () => {
    const { upload } = beginUpload(10, 100);
    await vi.waitFor(() => expect(files()).toHaveLength(1), patience);
    const [part = ''] = files();
    const [row] = await rows();
    upload.destroy();
    await vi.waitFor(async () => expect(await usage()).toEqual([]), patience);
    // As it was when the process ended: before the rename, and with a second one after it.
    const name = part.replace('.part', '');
    for (const left of [part, name]) writeFileSync(join(folder, left), 'x');
    await relay.server.context.storage.write('relay', async (tx) => {
      const { account, bytes, counted, keep_until } = row as Record<string, string | number>;
      await tx.run(
        `INSERT INTO blobs (name, account, bytes, counted, keep_until, state)
          VALUES (?, ?, ?, ?, ?, 'receiving')`,
        ...[name, account as string, bytes as number, counted as number, keep_until as number],
      );
      await tx.run(
        'INSERT INTO blob_usage (account, counted) VALUES (?, ?)',
        ...[account as string, counted as number],
      );
    });
    expect((await get(name)).status).toBe(404);
    relay.clock.advance(361);
    relay.server.wakeJobs();
    await vi.waitFor(async () => expect(await usage()).toEqual([]), patience);
    expect([files(), await rows()]).toEqual([[], []]);
  });
});

describe('0032: what is offered', () => {
  test('the descriptor declares the capability', async () => {
    const { text } = await relay.http().call('relay.descriptor', {});
    expect((JSON.parse(text) as { capabilities: string[] }).capabilities).toContain(
      'posthouse.blobs.v1',
    );
  });

  test('a page may ask with the methods of the store', async () => {
    const { headers } = await relay.http().send({
      ...{ verb: 'OPTIONS', path: '/blobs' },
      headers: { 'access-control-request-method': 'PUT', origin: 'https://app.example' },
    });
    expect(headers['access-control-allow-methods']).toContain('PUT');
    expect(headers['access-control-allow-origin']).toBe('*');
  });

  test('a relay without a folder has no such path and no such capability', async () => {
    await using other = await ServedRelay.start();
    const answer = await other.http().send({ verb: 'PUT', path: '/blobs', body: content });
    expect(codeOf(answer)).toBe('method_not_found');
    const { text } = await other.http().call('relay.descriptor', {});
    expect(text).not.toContain('posthouse.blobs');
  });

  test('a start with another folder than that of the stored attachments is refused', async () => {
    const name = await stored();
    const elsewhere = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
    await relay.stop();
    const mark = join(folder, 'posthouse-blobs');
    rmSync(mark);
    await expect(relay.resume()).rejects.toThrow(/blobs\.folder: expected the folder/);
    writeFileSync(mark, 'another\n');
    await expect(relay.resume()).rejects.toThrow(/another relay's/);
    rmSync(mark);
    const said = await relay.resume().catch((error: Error) => error.message);
    const [, bound = ''] = /write (\S+) to the file/.exec(String(said)) ?? [];
    writeFileSync(mark, `${bound}\n`);
    await relay.resume();
    expect((await get(name)).text).toBe(content.toString());
    rmSync(elsewhere, { recursive: true });
  });
});

describe('0032: disks and peers that fail', () => {
  test.skipIf(!SmallDisk.isPossible())(
    'a full disk stores nothing, and the relay goes on',
    async () => {
      using disk = SmallDisk.mount() as SmallDisk;
      await using other = await ServedRelay.start({ blobs: { folder: disk.path } });
      const bob = await other.register('bob');
      const by = (await other.logInDevice(bob)).token;
      const send = () =>
        other.http().send({
          ...{ verb: 'PUT', path: '/blobs', body: Buffer.alloc(1_000_000) },
          headers: { 'content-type': octets, 'content-length': '1000000', ...session(by) },
        });
      disk.fill();
      expect(codeOf(await send())).toBe('temporarily_unavailable');
      expect(readdirSync(disk.path).sort()).toEqual(['filler', 'posthouse-blobs']);
      expect(await rowsOf(other.server.context.storage, 'blob_usage')).toEqual([]);
      disk.free();
      expect((await send()).status).toBe(201);
    },
  );

  test('a peer that does not take a download is ended, and its file closed', async () => {
    const large = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
    await using other = await ServedRelay.start({
      blobs: { folder: large },
      limits: { blobTransfersPerOwner: 1 },
    });
    const by = (await other.logInDevice(await other.register('bob'))).token;
    const body = Buffer.alloc(16_000_000);
    const headers = { 'content-type': octets, 'content-length': `${body.length}`, ...session(by) };
    const name = nameOf(await other.http().send({ verb: 'PUT', path: '/blobs', body, headers }));
    const url = `${other.http().base}/blobs/${name}`;
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const reading = httpsRequest(url, { ca: other.ca, servername: '', agent: false }, (answer) => {
      // Nothing is read: the answer waits in buffers.
      answer.once('readable', () => begin());
      answer.on('error', (error) => resolve(error.message));
    });
    reading.on('error', (error) => resolve(error.message)).end();
    await begun;
    const head = () => other.http().send({ verb: 'HEAD', path: `/blobs/${name}` });
    expect((await head()).status).toBe(429);
    other.clock.advance(60 + body.length / 4_000);
    await vi.waitFor(async () => expect((await head()).status).toBe(200), patience);
    reading.destroy();
    resolve('');
    await ended;
    rmSync(large, { recursive: true });
  });
});
