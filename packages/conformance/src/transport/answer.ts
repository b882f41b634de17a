/**
 * Reads the answers of all methods and checks what every answer must satisfy: the envelope, matching
 * code and status, strict JSON, and the response object of the catalogue (02 §3, §4).
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
import { assertConforms, assertEqual } from '../assert.ts';
import type { HttpAnswer } from './plain-http.ts';

/** The answer to a call, in one form for both transports. */
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
  if (definition.result === null) assertEqual(result, null, `${method} defines no response object`);
  else checkSchema(definition.result, result, `${method} result`);
}

/** Checks the form of an HTTP answer (02 §3.1, §3.2, §5) and returns its result or error. */
export function readHttpAnswer(answer: HttpAnswer, method: string): Answer {
  if (answer.status === 204) {
    assertEqual(answer.body, '', 'a 204 answer has no body');
    checkResult(method, null);
    return { ok: true, result: null };
  }
  assertConforms(
    /^application\/json(;\s*charset="?utf-8"?)?$/i.test(String(answer.headers['content-type'])),
    `${method} answers with JSON, not ${answer.headers['content-type']}`,
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
  assertConforms(typeof message === 'string', 'RelayError.message is a string');
  assertConforms(
    answer.status === errorCatalogue[code].http,
    `HTTP status ${errorCatalogue[code].http} with ${code}, not ${answer.status}`,
  );
  assertConforms(data === undefined || isJsonObject(data), 'RelayError.data is an object');
  if (code === 'rate_limited' && isJsonObject(data) && data.retry_after !== undefined) {
    assertEqual(
      answer.headers['retry-after'],
      String(data.retry_after),
      'Retry-After repeats data.retry_after',
    );
  }
  return { ok: false, code, message, data };
}

/** Checks the form of a JSON-RPC response (02 §3.5, §3.6) and returns its result or error. */
export function readRpcAnswer(text: string, method: string): Answer {
  const message = parseJson(text);
  assertConforms(isJsonObject(message) && message.jsonrpc === '2.0', 'a response with jsonrpc 2.0');
  if (message.error === undefined) {
    assertConforms(message.result !== undefined, 'a response has result or error');
    checkResult(method, message.result);
    return { ok: true, result: message.result };
  }
  assertEqual(message.result, undefined, 'an error response has no result');
  const { error } = message;
  assertConforms(isJsonObject(error) && typeof error.code === 'number', 'error.code is an integer');
  assertConforms(typeof error.message === 'string', 'error.message is a string');
  const code = errorCodeOfRpc(error.code);
  assertConforms(code !== undefined, `a JSON-RPC code of the catalogue, not ${error.code}`);
  return { ok: false, code, message: error.message, data: error.data };
}
