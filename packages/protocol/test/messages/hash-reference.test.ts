import { describe, expect, test } from 'vitest';
import {
  encodeBase64url,
  hashReferenceResolver,
  hashReferenceUri,
  isHashReference,
  mayReferToAttachments,
} from '../../src/index.ts';
import { bodyTargets, checkBodyReferences, postReferences } from '../../src/markdown/index.ts';
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

test('04 §8.1: a body with a reference is one that may have references, in every spelling', () => {
  const digest = 'A'.repeat(43);
  const spellings = ['ni:', 'NI:', 'ni\\:', '&#110;i:', 'n&#x69;:', 'ni&colon;'];
  for (const scheme of spellings) {
    const spelled = body([`${scheme}///sha-256;${digest}`]);
    expect(bodyTargets(spelled).map(({ uri }) => isHashReference(uri))).toEqual([true]);
    expect(mayReferToAttachments(spelled)).toBe(true);
  }
  expect(mayReferToAttachments(body(['https://example.com/']))).toBe(false);
  expect(mayReferToAttachments({ content_type: 'text/plain', text: 'ni:' })).toBe(false);
});
