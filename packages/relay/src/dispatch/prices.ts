import { factsOf, isJsonObject, type JsonValue } from '@posthouse/protocol/json';
import type { ResultValue } from './json-text.ts';

/** What a call makes the relay do, as far as it is counted. */
export interface Work {
  /** Bytes of the request, or of its answer. */
  readonly bytes?: number;
  /** IDs or rows. */
  readonly items?: number;
  readonly signatures?: number;
  readonly sealedKeys?: number;
}

/**
 * The price table of calls, in units (02 §18). A unit is about a tenth of a millisecond of the
 * process; a call costs one unit by itself.
 */
const prices = { signature: 1, sealedKey: 1, bytesPerUnit: 4_096, itemsPerUnit: 20 };

/** Returns the whole units that work costs, without the one for the call itself. */
export function priceOf({ bytes = 0, items = 0, signatures = 0, sealedKeys = 0 }: Work): number {
  return (
    Math.floor(bytes / prices.bytesPerUnit) +
    Math.floor(items / prices.itemsPerUnit) +
    signatures * prices.signature +
    sealedKeys * prices.sealedKey
  );
}

/** Counts the IDs or rows of parameters, or of a result: what its lists contain. */
export function countItems(value: JsonValue | ResultValue): number {
  if (!isJsonObject(value)) return 0;
  const facts = factsOf(value);
  if (facts !== undefined) return facts.items;
  let count = 0;
  for (const name in value) {
    const member = value[name];
    if (Array.isArray(member)) count += member.length;
  }
  return count;
}
