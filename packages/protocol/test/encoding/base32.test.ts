import { base32nopad } from '@scure/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeBase32 } from '../../src/encoding/base32.ts';

/** What a library decodes; it throws for what is not canonical. */
function expected(text: string): Uint8Array | undefined {
  try {
    return /^[a-z2-7]*$/.test(text) ? base32nopad.decode(text.toUpperCase()) : undefined;
  } catch {
    return undefined;
  }
}

test('01 §13.2: base32 of CIDs decodes as by a library, and only in its canonical form', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      expect(decodeBase32(base32nopad.encode(bytes).toLowerCase())).toEqual(bytes);
    }),
    { seed: 1, numRuns: 200 },
  );
  const texts = fc.string({ unit: fc.constantFrom(...'aBbm27801=é'), maxLength: 9 });
  fc.assert(
    fc.property(texts, (text) => {
      expect(decodeBase32(text)).toEqual(expected(text));
    }),
    { seed: 1, numRuns: 500 },
  );
});
