/** Valid and invalid bodies and attachments, for posts and edits alike (06 §6; 04 §8 to §10). */

import { encodeBase64url } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { attachment, textBody } from './channel-objects.ts';

type Contents = Readonly<Record<string, JsonObject>>;

const encryption = (overrides: JsonObject = {}): JsonObject => ({
  encryption: {
    alg: 'AES-256-GCM',
    key: encodeBase64url(nodeRandom(32)),
    nonce: encodeBase64url(nodeRandom(12)),
    ...overrides,
  },
});

/** Makes valid contents of a post, by what they test. */
export function validContents(): Contents {
  const one = attachment();
  return {
    'a body alone': { body: textBody('text') },
    'a body and an empty list': { body: textBody('text'), attachments: [] },
    'attachments alone': { body: undefined, attachments: [attachment(), attachment()] },
    'a body and attachments': { body: textBody('text'), attachments: [attachment()] },
    'one address for two hashes': { attachments: [one, attachment({ uri: one.uri as string })] },
    'an encrypted attachment': { attachments: [attachment(encryption())] },
    'an attachment of no bytes': { attachments: [attachment({ size: 0 })] },
    'a reference without its attachment': {
      body: textBody('![](ni:///sha-256;AAAA)', 'text/markdown; variant=CommonMark'),
    },
    'an unknown media type': { body: textBody('x', 'application/x-unheard-of; a="b c"') },
    'active content': { body: textBody('<script>alert(1)</script>', 'text/html') },
    'the charset that is meant': { body: textBody('é', 'text/plain; charset=UTF-8') },
    'white space around the text': { body: textBody('\u3000 x\n') },
    'members it does not know': {
      body: { ...textBody('x'), lang: 'en' },
      attachments: [attachment({ alt: { de: 'Bild' } })],
      tags: ['a', { of: [1] }],
      ...(JSON.parse('{"__proto__": {"body": 1}, "constructor": true}') as JsonObject),
    },
  };
}

/** Makes invalid parts of a post or an edit, by what is wrong. */
export function invalidParts(): Contents {
  const one = attachment();
  const hash = one.hash as string;
  const listed = (overrides: JsonObject): JsonObject => ({ attachments: [attachment(overrides)] });
  return {
    'an empty text': { body: textBody('') },
    'a text of white space': { body: textBody(' \t\u0085\u2028\u3000') },
    'a body without a type': { body: { text: 'x' } },
    'a body without a text': { body: { content_type: 'text/plain' } },
    'an invalid media type': { body: textBody('x', 'plain') },
    'another charset': { body: textBody('x', 'text/plain; charset=iso-8859-1') },
    'a body that is a text': { body: 'text' },
    'null within a body': { body: { ...textBody('x'), lang: null } },
    'null within an attachment': listed({ alt: null }),
    'null within an unknown member': { tags: [{ of: null }] },
    'attachments that are no array': { attachments: one },
    'an attachment that is a text': { attachments: ['https://files.example/x'] },
    'a hash twice': { attachments: [one, one] },
    'a hash twice, otherwise different': {
      attachments: [one, attachment({ hash, content_type: 'text/plain', ...encryption() })],
    },
    'a hash of another kind': listed({ hash: hash.replace('sha256:', 'sha512:') }),
    'a hash without its kind': listed({ hash: hash.replace('sha256:', '') }),
    'a hash that is padded': listed({ hash: `${hash}=` }),
    'an address without TLS': listed({ uri: 'http://files.example/x' }),
    'an address that is relative': listed({ uri: '/x' }),
    'an address that is no URI': listed({ uri: 'https://files.example/a b' }),
    'an active address': listed({ uri: 'javascript:alert(1)' }),
    'an attachment with an invalid media type': listed({ content_type: 'image' }),
    'a negative size': listed({ size: -1 }),
    'a size that is a text': listed({ size: '17' }),
    'another algorithm': listed(encryption({ alg: 'AES-128-GCM' })),
    'a short key': listed(encryption({ key: encodeBase64url(nodeRandom(16)) })),
    'a long nonce': listed(encryption({ nonce: encodeBase64url(nodeRandom(16)) })),
  };
}
