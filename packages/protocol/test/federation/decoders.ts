/** What every decoder of bytes from other relays must do, as checks that tests share. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { ProtocolError } from '../../src/index.ts';

type Decode = (bytes: Uint8Array) => unknown;

/** Returns what a decoder refused with; any error but `bad_request` fails the test. */
export function refusal(decode: () => unknown): string | undefined {
  try {
    decode();
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError && error.code === 'bad_request') return error.message;
    throw error;
  }
}

/** Expects that no proper prefix of an encoding decodes. */
export function refusesEveryCut(decode: Decode, encoded: Uint8Array): void {
  const accepted: number[] = [];
  for (let end = 0; end < encoded.length; end += 1) {
    if (refusal(() => decode(encoded.subarray(0, end))) === undefined) accepted.push(end);
  }
  expect(accepted).toEqual([]);
}

/**
 * Expects that a decoder returns or refuses with `bad_request`, for random bytes and for encodings
 * with a few changed bytes.
 */
export function survivesRandomBytes(decode: Decode, encodings: readonly Uint8Array[]): void {
  const change = fc.tuple(fc.nat(), fc.nat(255));
  const changed = fc
    .tuple(fc.constantFrom(...encodings), fc.array(change, { minLength: 1, maxLength: 4 }))
    .map(([encoding, changes]) => {
      const bytes = encoding.slice();
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
      return bytes;
    });
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 64 }), changed), (bytes) => {
      if (refusal(() => decode(bytes)) !== undefined) refused += 1;
    }),
    { numRuns: 2_000 },
  );
  expect(refused).toBeGreaterThan(500);
}
