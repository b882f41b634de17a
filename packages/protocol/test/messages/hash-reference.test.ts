import { describe, expect, test } from 'vitest';
import {
  checkBodyReferences,
  encodeBase64url,
  hashReferenceResolver,
  hashReferenceUri,
  postReferences,
} from '../../src/index.ts';
import { fill } from '../contacts/accounts.ts';

const hash = (byte: number) => `sha256:${encodeBase64url(fill(byte))}`;
const attachment = (byte: number) => ({
  uri: 'https://example.com/a',
  hash: hash(byte),
  content_type: 'image/png',
  size: 1,
});
const body = (uris: readonly string[]) => ({
  content_type: 'text/markdown',
  text: uris.map((uri) => `[a](${uri})`).join(' '),
});

describe('04 §8.1: references of one body to its attachments', () => {
  test('each is found by its digest, at any index', () => {
    const resolve = hashReferenceResolver([attachment(1), attachment(2)]);
    expect(resolve(hashReferenceUri(hash(2)))).toEqual({ status: 'resolved', index: 1 });
    expect(resolve(hashReferenceUri(hash(1)))).toEqual({ status: 'resolved', index: 0 });
    expect(resolve(hashReferenceUri(hash(3)))).toEqual({ status: 'unresolved' });
    expect(resolve('ni:')).toEqual({ status: 'invalid_reference' });
  });

  test.each([
    ['checkBodyReferences', checkBodyReferences],
    [
      'postReferences',
      (text: ReturnType<typeof body>, attachments: ReturnType<typeof attachment>[]) =>
        postReferences({ body: text, attachments }),
    ],
  ])('%s looks at the attachments once, however many references there are', (_name, run) => {
    const reads = (references: number) => {
      let count = 0;
      const counted = {
        ...attachment(1),
        get hash() {
          count += 1;
          return hash(1);
        },
      };
      run(body(Array.from({ length: references }, () => hashReferenceUri(hash(1)))), [counted]);
      return count;
    };
    expect(reads(1)).toBeGreaterThan(0);
    expect(reads(100)).toBe(reads(1));
  });
});
