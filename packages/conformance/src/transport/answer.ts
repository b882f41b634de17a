/**
 * What comes back from a call, and the checks every answer must pass, whatever the method: the
 * envelope, the code and status that belong together, strict JSON, the response object of the
 * catalogue (chapter 02, sections 3 and 4).
 */
import {
  checkSchema,
  type ErrorCode,
  errorCatalogue,
  errorCodeOfRpc,
  isErrorCode,
  type MethodDefinition,
  methods,
} from '@posthouse/protocol';
import { isJsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { assertConforms } from '../assert.ts';
import type { HttpAnswer } from './plain-http.ts';

/** Outcome of a call, the same on both transports. */
export type Answer =
  | { readonly ok: true; readonly result: JsonValue }
  | {
      readonly ok: false;
      readonly code: ErrorCode;
      readonly message: string;
      readonly data: JsonValue | undefined;
    };

/** Finds a method in the catalogue; `undefined` if the name is no method. */
export function definitionOf(method: string): MethodDefinition | undefined {
  return Object.values(methods as Readonly<Record<string, MethodDefinition>>).find(
    ({ name }) => name === method,
  );
}

function checkResult(method: string, result: JsonValue): void {
  const definition = definitionOf(method);
  if (definition === undefined) return;
  if (definition.result === null)
    assertConforms(result === null, `${method} defines no response object`);
  else checkSchema(definition.result, result, `${method} result`);
}

/** Checks an HTTP answer's form (02 §3.1, §3.2, §5) and reduces it to its outcome. */
export function readHttpAnswer(answer: HttpAnswer, method: string): Answer {
  if (answer.status === 204) {
    assertConforms(answer.body === '', 'a 204 answer has no body');
    checkResult(method, null);
    return { ok: true, result: null };
  }
  assertConforms(
    /^application\/json(;\s*charset="?utf-8"?)?$/i.test(String(answer.headers['content-type'])),
    `${method} answers JSON, not ${answer.headers['content-type']}`,
  );
  const body = parseJson(answer.body);
  if (answer.status === 200) {
    checkResult(method, body);
    return { ok: true, result: body };
  }
  assertConforms(isJsonObject(body), 'an HTTP failure carries a RelayError object');
  const { code, message, data } = body;
  assertConforms(
    typeof code === 'string' && isErrorCode(code),
    `an error code of the catalogue, not ${code}`,
  );
  assertConforms(typeof message === 'string', 'RelayError.message is a text');
  assertConforms(
    answer.status === errorCatalogue[code].http,
    `${code} goes with HTTP ${errorCatalogue[code].http}, not ${answer.status}`,
  );
  assertConforms(data === undefined || isJsonObject(data), 'RelayError.data is an object');
  if (code === 'rate_limited' && isJsonObject(data) && data.retry_after !== undefined) {
    assertConforms(
      answer.headers['retry-after'] === String(data.retry_after),
      'Retry-After repeats data.retry_after',
    );
  }
  return { ok: false, code, message, data };
}

/** Checks a JSON-RPC response's form (02 §3.5, §3.6) and reduces it to its outcome. */
export function readRpcAnswer(text: string, method: string): Answer {
  const message = parseJson(text);
  assertConforms(isJsonObject(message) && message.jsonrpc === '2.0', 'a response says jsonrpc 2.0');
  if (message.error === undefined) {
    assertConforms(message.result !== undefined, 'a response has result or error');
    checkResult(method, message.result);
    return { ok: true, result: message.result };
  }
  assertConforms(message.result === undefined, 'an error response has no result');
  const { error } = message;
  assertConforms(isJsonObject(error) && typeof error.code === 'number', 'error.code is an integer');
  assertConforms(typeof error.message === 'string', 'error.message is a text');
  const code = errorCodeOfRpc(error.code);
  assertConforms(code !== undefined, `a JSON-RPC code of the catalogue, not ${error.code}`);
  return { ok: false, code, message: error.message, data: error.data };
}
