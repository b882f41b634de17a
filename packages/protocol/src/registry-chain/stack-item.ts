/** Stack items of a Neo virtual machine as nodes write them in JSON (07 §A6). */
import { decodeBase64url } from '../encoding/base64url.ts';
import { hex } from '../encoding/bytes.ts';
import { checkRelayEntry, type RelayEntry } from '../identity/registry.ts';
import { isJsonObject, type JsonValue } from '../json/types.ts';
import { RegistryError } from './errors.ts';

const utf8Decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Characters of the longest text of a record, an endpoint of 512 bytes, in base64. */
const maxText = 684;

const invalid = (reason: string, cause?: unknown) =>
  new RegistryError('invalid_answer', reason, { cause });

/** Returns whether an item is null: the type `Any` without a value. */
export function isNullItem(item: JsonValue | undefined): boolean {
  return isJsonObject(item) && item.type === 'Any' && (item.value ?? null) === null;
}

/**
 * Reads an integer.
 *
 * @returns a safe integer from 0
 * @throws RegistryError `invalid_answer`
 */
export function readIntegerItem(item: JsonValue | undefined): number {
  const value = fieldOf(item, ['Integer']);
  if (typeof value !== 'string' || !/^(?:0|[1-9][0-9]{0,15})$/.test(value)) {
    throw invalid('an integer is not a decimal text');
  }
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw invalid('an integer is over 2^53 - 1');
  return number;
}

/**
 * Reads a record of the registry: four items, in the order of 07 §A3.
 *
 * @throws RegistryError `invalid_answer` for another shape, `invalid_record` if a value breaks §A3
 */
export function readRelayItem(item: JsonValue | undefined): RelayEntry {
  const fields = fieldOf(item, ['Array', 'Struct']);
  if (!Array.isArray(fields) || fields.length !== 4) throw invalid('a record has not four items');
  const [relayId, endpoint, status, updatedAt] = fields as JsonValue[];
  const entry = {
    relay_id: readRelayId(relayId),
    endpoint: readText(endpoint),
    status: readText(status),
    updated_at: readIntegerItem(updatedAt),
  };
  try {
    checkRelayEntry(entry);
  } catch (cause) {
    throw new RegistryError('invalid_record', `the record of ${entry.relay_id} is malformed`, {
      cause,
    });
  }
  return entry;
}

/** A script hash is written in the opposite order of its bytes (07 §A2). */
function readRelayId(item: JsonValue | undefined): string {
  const bytes = readBytes(item);
  if (bytes.length !== 20) throw invalid('a relay ID has not 20 bytes');
  return `0x${hex(bytes.slice().reverse())}`;
}

function readText(item: JsonValue | undefined): string {
  const bytes = readBytes(item);
  try {
    return utf8Decoder.decode(bytes);
  } catch (cause) {
    // The contract stores any bytes that begin with https:// (07 §A3).
    throw new RegistryError('invalid_record', 'a text of a record is not UTF-8', { cause });
  }
}

function readBytes(item: JsonValue | undefined): Uint8Array {
  const value = fieldOf(item, ['ByteString', 'Buffer']);
  if (typeof value !== 'string' || value.length > maxText) throw invalid('bytes are no short text');
  // Base64 with padding (RFC 4648 §4), in the letters of base64url.
  const isPadded = value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value);
  const letters = value.replaceAll('=', '').replaceAll('+', '-').replaceAll('/', '_');
  const bytes = isPadded ? decodeBase64url(letters) : undefined;
  if (bytes === undefined) throw invalid('bytes are not base64');
  return bytes;
}

function fieldOf(item: JsonValue | undefined, types: readonly string[]): JsonValue | undefined {
  if (!isJsonObject(item) || typeof item.type !== 'string' || !types.includes(item.type)) {
    throw invalid(`an item is not of type ${types.join(' or ')}`);
  }
  return item.value;
}
