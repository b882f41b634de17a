/** Attachments are encrypted with a key of their own and uploaded by a part of the app (04 §9, §10). */
import { openContent, utf8 } from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import {
  ClientError,
  previewKind,
  sealAttachment,
  type Uploader,
  type UploadProgress,
} from '../../src/index.ts';
import { network } from '../support/relay-with-clients.ts';

const plaintext = utf8('the picture');
const uri = 'https://files.example/1';

/** Stores in memory. */
class Host implements Uploader {
  readonly stored: Uint8Array[] = [];
  answer: () => string = () => uri;

  async put(bytes: Uint8Array): Promise<string> {
    this.stored.push(bytes);
    return this.answer();
  }
}

const seal = (uploader: Uploader, changes: object = {}) =>
  sealAttachment(network, plaintext, {
    ...{ contentType: 'image/png', uploader, signal: AbortSignal.timeout(60_000) },
    ...changes,
  });

describe('04 §9.2, §10: sealing', () => {
  test('the host gets ciphertext, and the reference opens it', async () => {
    const host = new Host();
    const reference = await seal(host);
    const [stored = new Uint8Array()] = host.stored;
    expect(reference).toMatchObject({ uri, content_type: 'image/png', size: plaintext.length });
    expect(stored.length).toBe(plaintext.length + 16);
    expect(Buffer.from(stored).includes(plaintext)).toBe(false);
    expect(openContent(network, reference, stored)).toEqual(plaintext);
  });

  test('each attachment has a key and nonce of its own, also the same content', async () => {
    const [one, two] = [await seal(new Host()), await seal(new Host())];
    expect(one.hash).toBe(two.hash);
    expect(one.encryption?.key).not.toBe(two.encryption?.key);
    expect(one.encryption?.nonce).not.toBe(two.encryption?.nonce);
  });

  test('content of the limit is sealed; above it nothing is uploaded', async () => {
    const host = new Host();
    await seal(host, { maxBytes: plaintext.length });
    const failing = seal(host, { maxBytes: plaintext.length - 1 });
    await expect(failing).rejects.toMatchObject({ code: 'invalid_input' });
    expect(host.stored.length).toBe(1);
  });

  test('progress is told of more bytes each time, whatever the uploader reports', async () => {
    const uploader: Uploader = {
      async put(bytes, { progress }) {
        const of = bytes.length;
        // An upload that is made again begins at its start.
        for (const sent of [0, 10, 20, 20, 5, 20, of]) progress?.({ sent, of });
        return uri;
      },
    };
    const told: number[] = [];
    await seal(uploader, { progress: ({ sent }: UploadProgress) => told.push(sent) });
    expect(told).toEqual([10, 20, plaintext.length + 16]);
  });

  test('a text that is no media type is refused before the upload', async () => {
    const host = new Host();
    await expect(seal(host, { contentType: 'png' })).rejects.toMatchObject({
      code: 'invalid_input',
    });
    expect(host.stored).toEqual([]);
  });

  test.each(['http://files.example/1', '/1', 'https://a b/', '', 'javascript:x'])(
    '04 §9.1: an uploader that returns %j is named as the cause',
    async (returned) => {
      const host = new Host();
      host.answer = () => returned;
      await expect(seal(host)).rejects.toThrow(/correct the uploader/);
    },
  );

  test('a failing upload is a ClientError with its cause; one of the uploader stays as it is', async () => {
    const host = new Host();
    const cause = new Error('disk full');
    host.answer = () => {
      throw cause;
    };
    await expect(seal(host)).rejects.toMatchObject({ code: 'relay_unreachable', cause });
    const own = new ClientError('not_permitted', 'log in first');
    host.answer = () => {
      throw own;
    };
    await expect(seal(host)).rejects.toBe(own);
  });

  test('an aborted signal uploads nothing', async () => {
    const host = new Host();
    const reason = new Error('stop');
    await expect(seal(host, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(host.stored).toEqual([]);
  });
});

describe('04 §10: which attachments may be previewed', () => {
  test.each([
    ['image/png', { kind: 'image', type: 'image/png' }],
    ['Image/PNG; name="<script>"', { kind: 'image', type: 'image/png' }],
    ['video/mp4', { kind: 'video', type: 'video/mp4' }],
    ['audio/ogg; codecs=opus', { kind: 'audio', type: 'audio/ogg' }],
  ] as const)('%s by its kind', (contentType, shown) => {
    expect(previewKind(contentType)).toEqual(shown);
  });

  test.each([
    ...['image/svg+xml', 'text/html', 'application/pdf', 'application/xhtml+xml', 'image/x-png'],
    ...['text/javascript', 'constructor/__proto__', 'image/constructor', 'png', ''],
  ])('%j as a file only', (contentType) => {
    expect(previewKind(contentType)).toEqual({ kind: 'file', type: 'application/octet-stream' });
  });
});
