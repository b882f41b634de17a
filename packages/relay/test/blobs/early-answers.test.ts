/** 0032, 02 §18: bytes that are no HTTP after the headers of an upload or a download are no fault of the disk. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BlobFolder } from '../../src/blobs/folder.ts';
import { rowsOf } from '../support/engine.ts';
import { turn } from '../support/full-turns.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay } from '../support/served-relay.ts';

let folder: string;
let relay: ServedRelay;
let token: string;
let errors: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'posthouse-blobs-'));
  relay = new ServedRelay({ blobs: { folder }, limits: { blobTransfersPerOwner: 1 } });
  errors = [];
  relay.log = pino({ level: 'error' }, { write: (line: string) => void errors.push(line) });
  await relay.start();
  token = (await relay.logInDevice(await relay.register('ann'))).token;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Opens a connection and sends a text; all that is received comes at its end. */
function exchange(text: string) {
  const { hostname, port } = new URL(relay.server.https[0] as string);
  const socket = connect({ host: hostname, port: Number(port), ca: relay.ca });
  let received = '';
  const answer = new Promise<string>((resolve) => {
    socket.on('close', () => resolve(received)).on('error', () => {});
    socket.on('data', (data) => {
      received += data;
    });
  });
  socket.write(text);
  return { socket, answer };
}

const files = () => readdirSync(folder).filter((name) => name !== 'posthouse-blobs');
const counter = (name: 'blobs_not_stored') => relay.server.context.metrics.value(name);
/** More of the body than was announced, and it begins no request. */
const noHttp = `${'x'.repeat(10)}\0\r\n\r\n`;

test.each([
  ['an expectation', 'Expect: 100-continue\r\n'],
  ['no expectation', ''],
])(
  '0032: an upload with %s that was answered with 400 before its file was made stores nothing, and no error is logged',
  async (_, expectation) => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { write } = BlobFolder.prototype;
    const writes = vi.spyOn(BlobFolder.prototype, 'write').mockImplementation(async function (
      this: BlobFolder,
      ...args
    ) {
      await held;
      return await write.apply(this, args);
    });
    const { socket, answer } = exchange(
      `PUT /svc/v1/blobs HTTP/1.1\r\nHost: x\r\nx-svc-session: ${token}\r\n${expectation}` +
        'Content-Type: application/octet-stream\r\nContent-Length: 10\r\n\r\n',
    );
    await vi.waitFor(() => expect(writes).toHaveBeenCalledOnce(), patience);
    socket.write(noHttp);
    expect(await answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*"bad_request"/);
    release();
    const usage = () => rowsOf(relay.server.context.storage, 'blob_usage');
    await vi.waitFor(async () => expect(await usage()).toEqual([]), patience);
    expect([files(), await rowsOf(relay.server.context.storage, 'blobs')]).toEqual([[], []]);
    expect(counter('blobs_not_stored')).toBe(0);
    expect(errors).toEqual([]);
    // Its place is free again.
    await store();
  },
);

/** Stores an attachment; returns its name. */
async function store(): Promise<string> {
  const body = Buffer.alloc(100_000, 'b');
  const { text } = await relay.http().send({
    ...{ verb: 'PUT', path: '/blobs', body },
    headers: {
      'content-type': 'application/octet-stream',
      'content-length': String(body.length),
      'x-svc-session': token,
    },
  });
  return (JSON.parse(text) as { uri: string }).uri.replace(/^.*\//, '');
}

test('0032: a download that was answered with 400 before its first piece was written logs no error, and its file is closed', async () => {
  const name = await store();
  const content = new Readable({ read: () => {} });
  let file: FileHandle | undefined;
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  vi.spyOn(BlobFolder.prototype, 'read').mockImplementation(async (asked) => {
    file = await open(join(folder, asked), 'r');
    vi.spyOn(file, 'createReadStream').mockImplementation(() => {
      begin();
      return content as ReturnType<FileHandle['createReadStream']>;
    });
    return file;
  });
  const { socket, answer } = exchange(`GET /svc/v1/blobs/${name} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await begun;
  // The first piece is there when the answer was written, and before the connection has it.
  const { end } = ServerResponse.prototype;
  vi.spyOn(ServerResponse.prototype, 'end').mockImplementationOnce(function (
    this: ServerResponse,
    ...args
  ) {
    end.apply(this, args);
    content.push(Buffer.alloc(65_536, 'b'));
    return this;
  });
  const closed = vi.spyOn(file as FileHandle, 'close');
  while (!content.readableFlowing) await turn();
  socket.write(noHttp);
  expect(await answer).toMatch(/^HTTP\/1\.1 400 [\s\S]*"bad_request"/);
  await vi.waitFor(() => expect(closed).toHaveBeenCalled(), patience);
  await vi.waitFor(() => expect(file?.fd).toBe(-1), patience);
  // What follows on another connection is answered after the call that failed.
  const { status } = await relay.http().send({ verb: 'HEAD', path: `/blobs/${name}` });
  expect(status).toBe(200);
  expect(errors).toEqual([]);
  expect(relay.server.context.metrics.value('internal_errors', { method: 'blobs' })).toBe(0);
});
