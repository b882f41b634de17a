/** Checks responses of a relay: envelopes, errors and results (02 §3 to §5). */
import {
  checkNoNull,
  checkSchema,
  errorCodeOfRpc,
  isErrorCode,
  type MethodName,
  methods,
  parseMediaType,
  type ResultOf,
} from '@posthouse/protocol';
import {
  decodeUtf8,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '@posthouse/protocol/json';
import { checkRelayAnswer, RelayMisbehaviour, RelayRefused, RelayUnreachable } from '../errors.ts';
import type { HttpResponse } from './transport.ts';

/** Statuses that a reverse proxy of a relay sends by itself, without a protocol body. */
const gatewayStatuses = new Set([429, 502, 503, 504]);

/**
 * Returns the response object of an HTTP answer.
 *
 * @throws RelayRefused for an error of the protocol
 * @throws RelayUnreachable if a proxy answered instead of the relay
 * @throws RelayMisbehaviour
 */
export function httpResult(method: MethodName, response: HttpResponse): JsonValue {
  const { status, body, coding = 'identity' } = response;
  if (coding !== 'identity') {
    // It was not asked for, and a small body could become one of any size.
    const cure = "ask the relay's operator to turn compression off";
    throw malformed(method, `the answer is compressed (${coding}): ${cure}`);
  }
  if (status === 204) {
    if (body.length > 0) throw malformed(method, '204 with a body');
    return null;
  }
  if (status !== 200 && !isJson(response.contentType) && gatewayStatuses.has(status)) {
    throw new RelayUnreachable(`${method}: answered with status ${status}`, {
      outcomeUnknown: true,
    });
  }
  if (!isJson(response.contentType)) throw malformed(method, 'the body is not declared as JSON');
  const value = parsed(method, body);
  if (status === 200) {
    if (value === null) throw malformed(method, 'null instead of a response object');
    return value;
  }
  if (status < 400) throw malformed(method, `unexpected status ${status}`);
  throw refusalOfHttp(method, value);
}

function parsed(method: MethodName, body: Uint8Array): JsonValue {
  return checkRelayAnswer('malformed_response', method, () => parseJson(decodeUtf8(body)));
}

function isJson(contentType: string | undefined): boolean {
  const type = contentType === undefined ? undefined : parseMediaType(contentType);
  if (type?.essence !== 'application/json') return false;
  return type.parameters.every(
    ({ name, value }) => name !== 'charset' || value.toLowerCase() === 'utf-8',
  );
}

function refusalOfHttp(method: MethodName, value: JsonValue): RelayRefused | RelayMisbehaviour {
  if (!isJsonObject(value)) return malformed(method, 'an error is an object');
  const { code, message, data } = value;
  if (typeof code !== 'string' || typeof message !== 'string') {
    return malformed(method, 'an error has a code and a message');
  }
  if (!isErrorCode(code)) {
    return new RelayMisbehaviour('unknown_error_code', 'code is not in the catalogue', { method });
  }
  return refusal(method, code, { message, data });
}

/** Returns the result of a JSON-RPC response whose `id` was matched, or throws its error. */
export function rpcResult(method: MethodName, response: JsonObject): JsonValue {
  const { error } = response;
  const hasResult = Object.hasOwn(response, 'result');
  if (hasResult === Object.hasOwn(response, 'error')) {
    throw malformed(method, 'expected either result or error');
  }
  if (hasResult) return response.result as JsonValue;
  if (!isJsonObject(error)) throw malformed(method, 'an error is an object');
  const { code, message, data } = error;
  if (!Number.isSafeInteger(code) || typeof message !== 'string') {
    throw malformed(method, 'an error has an integer code and a message');
  }
  const name = errorCodeOfRpc(code as number);
  if (name === undefined) {
    throw new RelayMisbehaviour('unknown_error_code', `code ${code}`, { method });
  }
  throw refusal(method, name, { message, data });
}

function refusal(
  method: MethodName,
  code: string,
  { message, data }: { message: string; data: JsonValue | undefined },
): RelayRefused | RelayMisbehaviour {
  if (data !== undefined && !isJsonObject(data)) {
    return malformed(method, 'data of an error is an object');
  }
  const hint = data?.retry_after;
  // An invalid hint makes the whole answer invalid (02 §5).
  if (code === 'rate_limited' && hint !== undefined && !isDelay(hint)) {
    return new RelayMisbehaviour('invalid_retry_after', 'not a nonnegative integer', { method });
  }
  return new RelayRefused(method, code, { message, data });
}

function isDelay(value: JsonValue): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/**
 * Checks a response object against the catalogue's schema of the method, and for `null`.
 * @throws RelayMisbehaviour `malformed_result`
 */
export function checkResult<M extends MethodName>(method: M, value: JsonValue): ResultOf<M> {
  const { result } = methods[method];
  if (result === null) {
    if (value !== null) throw new RelayMisbehaviour('malformed_result', 'expected no result');
    return null as ResultOf<M>;
  }
  checkRelayAnswer('malformed_result', method, () => {
    checkSchema(result, value);
    // Only edits of channel posts may contain `null` (01 J9); the channel checks decide that.
    if (!('capability' in methods[method])) checkNoNull(value);
  });
  return value as ResultOf<M>;
}

function malformed(method: MethodName, message: string): RelayMisbehaviour {
  return new RelayMisbehaviour('malformed_response', message, { method });
}
