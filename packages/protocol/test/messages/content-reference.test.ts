import { describe, expect, test } from 'vitest';
import {
  type ContentReference,
  checkContentReference,
  encodeBase64url,
  hex,
  Network,
  openContent,
  sealContent,
  utf8,
} from '../../src/index.ts';
import {
  checkAttachments,
  checkImageReference,
  contentAad,
  isHttpsUri,
} from '../../src/messages/content-reference.ts';
import { codeOf, drawing, fill, network, tampered, without } from '../contacts/accounts.ts';
import { implementations } from '../crypto/implementations.ts';

const plaintext = utf8('hello attachment');
const encryption = {
  alg: 'AES-256-GCM',
  key: encodeBase64url(fill(0x41)),
  nonce: encodeBase64url(fill(0x42, 12)),
} as const;
/** 04 appendix A, with an address. */
const reference: ContentReference = {
  uri: 'https://example.com/a',
  hash: 'sha256:f6NrldXJiFntcrR4fzwosp6qEDlweGdVyXEcuxm-Yxw',
  content_type: 'text/plain',
  size: 16,
  encryption,
};
const served = '20f79071166db10e94c700e6cc1cca2fb565dd2ee8c325c0b0f875856bfa8124';
const check = (value: unknown) => codeOf(() => checkContentReference(value, 'attachments.0'));

describe.each(implementations)(
  '04 appendix A: the worked attachment, on %s',
  (_name, primitives) => {
    const { context } = network;
    const net = new Network({ context, primitives });

    test('associated data, without any $context', () => {
      expect(new TextDecoder().decode(contentAad(net, reference))).toBe(
        '{"$type":"svc.content.reference.aad","alg":"AES-256-GCM","content_type":"text/plain",' +
          '"hash":"sha256:f6NrldXJiFntcrR4fzwosp6qEDlweGdVyXEcuxm-Yxw","size":16}',
      );
    });

    test('ciphertext, and back', () => {
      const random = drawing(fill(0x41), fill(0x42, 12));
      const sealed = sealContent(net, { plaintext, contentType: 'text/plain', random });
      expect(hex(sealed.body)).toBe(served);
      expect(sealed.body.length).toBe(reference.size + 16);
      expect({ uri: reference.uri, ...sealed.reference }).toEqual(reference);
      expect(openContent(net, reference, sealed.body)).toEqual(plaintext);
    });
  },
);

describe.each(implementations)(
  '04 §9.2: keys and nonces that are none, on %s',
  (_name, primitives) => {
    const { context } = network;
    const net = new Network({ context, primitives });
    test.each([
      { key: 'AA' },
      { key: '?' },
      { nonce: 'AA' },
      { nonce: encodeBase64url(fill(1, 16)) },
    ])('%j opens nothing', (change) => {
      const other = { ...reference, encryption: { ...encryption, ...change } };
      expect(openContent(net, other, fill(0, 32))).toBeUndefined();
    });
  },
);

describe('04 §9.2: content that is not what the reference promises', () => {
  const { body } = sealContent(network, {
    plaintext,
    contentType: 'text/plain',
    random: drawing(fill(0x41), fill(0x42, 12)),
  });
  const open = (changes: object, bytes = body) =>
    openContent(network, { ...reference, ...changes }, bytes);

  test.each([
    ['size', { size: 17 }],
    ['media type', { content_type: 'text/html' }],
    ['hash', { hash: `sha256:${encodeBase64url(fill(1))}` }],
    ['key', { encryption: { ...encryption, key: encodeBase64url(fill(0x40)) } }],
    ['nonce', { encryption: { ...encryption, nonce: encodeBase64url(fill(0x40, 12)) } }],
    ['a key that is none', { encryption: { ...encryption, key: 'AA' } }],
  ])('another %s does not open', (_name, change) => {
    expect(open(change)).toBeUndefined();
  });

  test('changed, cut or prolonged bytes do not open', () => {
    for (const bytes of [
      body.with(0, 0),
      body.with(31, 0),
      body.subarray(1),
      body.subarray(0, 31),
      new Uint8Array(15),
      new Uint8Array(0),
    ]) {
      expect(open({}, bytes)).toBeUndefined();
    }
  });

  test('authenticated under the same data, yet of another length or digest: refused', () => {
    const lie = { ...reference, size: 5 };
    const aad = contentAad(network, lie);
    const data = { key: fill(0x41), nonce: fill(0x42, 12), aad, data: plaintext };
    const sealed = network.primitives.aesGcm.seal(data);
    expect(openContent(network, lie, sealed)).toBeUndefined();
    const wrong = { ...reference, hash: `sha256:${encodeBase64url(fill(1))}` };
    const again = network.primitives.aesGcm.seal({ ...data, aad: contentAad(network, wrong) });
    expect(openContent(network, wrong, again)).toBeUndefined();
  });

  test('plain content is checked the same way', () => {
    const plain = without(reference, 'encryption') as ContentReference;
    expect(openContent(network, plain, plaintext)).toEqual(plaintext);
    expect(openContent(network, plain, utf8('hello attachmenT'))).toBeUndefined();
    expect(openContent(network, { ...plain, size: 15 }, plaintext)).toBeUndefined();
    expect(openContent(network, plain, body)).toBeUndefined();
  });

  test('content of no bytes', () => {
    const random = drawing(fill(1), fill(2, 12));
    const empty = sealContent(network, { plaintext: utf8(''), contentType: 'a/b', random });
    expect(empty.body.length).toBe(16);
    const uri = 'https://example.com/';
    expect(openContent(network, { uri, ...empty.reference }, empty.body)?.length).toBe(0);
  });

  test('sealing under what is no media type is refused', () => {
    const random = drawing();
    const seal = () => sealContent(network, { plaintext, contentType: 'text', random });
    expect(codeOf(seal)).toBe('bad_request');
  });
});

describe('04 §9.1: ContentReference', () => {
  test('with and without encryption, with a custom type and unknown members', () => {
    expect(check(reference)).toBeUndefined();
    expect(check(without(reference, 'encryption'))).toBeUndefined();
    expect(check({ ...reference, content_type: 'application/x-own; v="1"', x: 1 })).toBeUndefined();
  });

  test.each(['uri', 'hash', 'content_type', 'size'])('without %s it is refused', (name) => {
    expect(check(without(reference, name))).toBe('bad_request');
  });

  test.each(['alg', 'key', 'nonce'])('encryption without %s is refused', (name) => {
    expect(check({ ...reference, encryption: without(encryption, name) })).toBe('bad_request');
  });

  test.each([
    ['uri', 'http://example.com/a'],
    ['uri', '/a'],
    ['hash', reference.hash.slice(7)],
    ['hash', tampered(reference.hash.slice(7))],
    ['hash', `${reference.hash.slice(0, -1)}x`],
    ['content_type', 'png'],
    ['size', -1],
    ['size', 2 ** 53],
    ['size', '16'],
    ['encryption', null],
    ['encryption', { ...encryption, alg: 'AES-128-GCM' }],
    ['encryption', { ...encryption, key: encodeBase64url(fill(1, 31)) }],
    ['encryption', { ...encryption, nonce: encodeBase64url(fill(1, 13)) }],
  ])('%s %j is refused', (name, value) => {
    expect(check({ ...reference, [name]: value })).toBe('bad_request');
  });

  test('a size of zero and at the edge of safe integers', () => {
    expect(check({ ...reference, size: 0 })).toBeUndefined();
    expect(check({ ...reference, size: Number.MAX_SAFE_INTEGER })).toBeUndefined();
  });
});

describe('04 §9.1: absolute HTTPS URIs', () => {
  test.each([
    'https://example.com',
    'HTTPS://EXAMPLE.com/',
    'https://example.com:8443/a/b;c?d=e&f#g',
    'https://example.com/%C3%A9',
    'https://[::1]/a',
    'https://192.0.2.1/?a?b',
    'https://example.com//a',
  ])('%s is one', (uri) => {
    expect(isHttpsUri(uri)).toBe(true);
  });

  test.each([
    '',
    'https:',
    'https://',
    'https:///a',
    'https://?a',
    'https://#a',
    'https:example.com',
    'https:/example.com',
    'http://example.com/',
    'ftp://example.com/',
    'javascript:alert(1)//https://example.com/',
    '//example.com/a',
    'https://example.com/ a',
    ' https://example.com/',
    'https://example.com/\n',
    'https://example.com/é',
    'https://example.com/%',
    'https://example.com/%zz',
    'https://example.com\\a',
    'https://example.com/"a',
    'https://example.com/a#b#c',
    'https://example.com:99999/',
    'https://exa[mple.com/',
  ])('%j is none', (uri) => {
    expect(isHttpsUri(uri)).toBe(false);
  });
});

describe('01 §11: images', () => {
  const image = (type: string) =>
    codeOf(() => checkImageReference({ ...reference, content_type: type }, 'avatar'));
  test('image/* of any kind, in any letters', () => {
    expect([image('image/png'), image('Image/SVG+xml; a=b')]).toEqual([undefined, undefined]);
  });
  test('the rest of the reference counts too', () => {
    const value = { ...reference, content_type: 'image/png' };
    expect(codeOf(() => checkImageReference({ ...value, uri: 'x' }))).toBe('bad_request');
    expect(codeOf(() => checkImageReference(without(value, 'hash')))).toBe('bad_request');
  });
  test.each(['text/plain', 'imagex/png', 'image', 'application/image'])('%s is none', (type) => {
    expect(image(type)).toBe('bad_request');
  });
});

describe('04 §10: attachments', () => {
  const attachments = (value: readonly unknown[]) => codeOf(() => checkAttachments(value));
  const other = { ...reference, hash: `sha256:${encodeBase64url(fill(1))}` };

  test('none, one and several with different hashes', () => {
    expect([attachments([]), attachments([reference]), attachments([reference, other])]).toEqual(
      Array(3).fill(undefined),
    );
  });

  test('a hash twice is refused, whatever else differs', () => {
    const elsewhere = { ...without(reference, 'encryption'), uri: 'https://other.example/' };
    expect(attachments([reference, other, elsewhere])).toBe('bad_request');
    expect(attachments([reference, { ...reference, content_type: 'a/b' }])).toBe('bad_request');
    expect(attachments([reference, { ...reference, size: 1 }])).toBe('bad_request');
  });

  test('one malformed reference spoils the list', () => {
    expect(attachments([other, { ...reference, uri: 'x' }])).toBe('bad_request');
    expect(attachments([null])).toBe('bad_request');
  });
});
