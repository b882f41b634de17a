import type { ProtocolError } from '@posthouse/protocol';
import { JsonText, type ResultValue } from './json-text.ts';

/**
 * Encodes a response object as JSON. Stored canonical text is inserted as it is; members that are
 * `undefined` are omitted.
 *
 * @example
 * encodeResult({ entry: new JsonText('{"a":1}'), next: undefined }); // '{"entry":{"a":1}}'
 */
export function encodeResult(value: ResultValue): string {
  if (value instanceof JsonText) return value.text;
  if (isArray(value)) return `[${value.map(encodeResult).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of Object.keys(value)) {
    const member = value[name];
    if (member !== undefined) members.push(`${JSON.stringify(name)}:${encodeResult(member)}`);
  }
  return `{${members.join(',')}}`;
}

function isArray(value: ResultValue): value is readonly ResultValue[] {
  return Array.isArray(value);
}

/** Encodes an error for HTTP (02 §3.2). */
export function encodeRelayError({ code, message, data }: ProtocolError): string {
  return JSON.stringify({ code, message, data });
}
