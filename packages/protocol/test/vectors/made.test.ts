import { createHash, createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { makeVectors } from '../../scripts/vectors/index.ts';
import { operations } from '../../scripts/vectors/operations.ts';
import { ownVectorTexts } from './files.ts';

const texts = ownVectorTexts();
const made = makeVectors();

describe('making our vectors anew', () => {
  test('gives the same files', () => {
    expect([...made.keys()].sort()).toEqual([...texts.keys()].sort());
  });

  test.each([...texts])('gives the same bytes of %s', (name, text) => {
    expect(made.get(name) === text, `run scripts/make-vectors.ts: ${name}.json differs`).toBe(true);
  });
});

describe('the README of the vectors', () => {
  const readme = readFileSync(new URL('../../vectors/README.md', import.meta.url), 'utf8');

  test.each(Object.keys(operations))('describes %s', (name) => {
    expect(
      readme.split('\n').some((line) => line.startsWith('| `') && line.includes(`\`${name}\``)),
    ).toBe(true);
  });
});

interface Signed {
  scheme: 'ed25519' | 'p256';
  public_key: string;
  text: string;
  sha256: string;
  signature: string;
}

/** Every object with a `signed` list or an input `text` with its digest, anywhere in a file. */
function collect(value: unknown, found: { signed: Signed[]; texts: Signed[] }): void {
  if (typeof value !== 'object' || value === null) return;
  const { signed, text, sha256 } = value as { signed?: Signed[] } & Partial<Signed>;
  if (Array.isArray(signed)) found.signed.push(...signed);
  if (text !== undefined && sha256 !== undefined) found.texts.push(value as Signed);
  for (const member of Object.values(value)) collect(member, found);
}

/** The key as a JSON Web Key; P-256 points are given with both coordinates by OpenSSL itself. */
function publicKey({ scheme, public_key: text }: Signed) {
  const bytes = Buffer.from(text, 'base64url');
  if (scheme === 'ed25519') {
    const key = { kty: 'OKP', crv: 'Ed25519', x: text };
    return createPublicKey({ key, format: 'jwk' });
  }
  const head = Buffer.from('3039301306072a8648ce3d020106082a8648ce3d030107032200', 'hex');
  return createPublicKey({ key: Buffer.concat([head, bytes]), format: 'der', type: 'spki' });
}

describe('our vectors held against node:crypto alone', () => {
  const found = { signed: [] as Signed[], texts: [] as Signed[] };
  for (const text of texts.values()) collect(JSON.parse(text), found);

  test('there is something to hold', () => {
    expect(found.signed.length).toBeGreaterThan(40);
    expect(found.texts.length).toBeGreaterThan(found.signed.length);
  });

  test('every digest is that of its text', () => {
    for (const { text, sha256 } of found.texts) {
      expect(createHash('sha256').update(text).digest('hex')).toBe(sha256);
    }
  });

  test('every signature verifies over its text', () => {
    for (const signed of found.signed) {
      const key = publicKey(signed);
      const signature = Buffer.from(signed.signature, 'base64url');
      const valid =
        signed.scheme === 'ed25519'
          ? verify(null, Buffer.from(signed.text), key, signature)
          : verify(
              'sha256',
              Buffer.from(signed.text),
              { key, dsaEncoding: 'ieee-p1363' },
              signature,
            );
      expect(valid).toBe(true);
    }
  });

  test('every signed text is bound to a network, by its first member', () => {
    for (const { text } of found.signed) {
      expect(text.startsWith('{"$context":"neo:')).toBe(true);
    }
  });
});
