/** Decodes and encodes JSON-RPC envelopes: of WebSockets (02 §3.3 to §3.8) and of relay RPC (07 §C3). */
import {
  errorCatalogue,
  limits,
  type ProtocolError,
  rpcErrors,
  utf8Length,
} from '@posthouse/protocol';
import type { RelayMethodName } from '@posthouse/protocol/federation';
import {
  decodeUtf8,
  diagnoseEnvelope,
  diagnoseEnvelopeInSteps,
  isJsonObject,
  isRpcId,
  type JsonObject,
  type JsonValue,
  parseJson,
  parseJsonInSteps,
} from '@posthouse/protocol/json';
import { encodeResult } from './encode.ts';
import type { ResultValue } from './json-text.ts';
import type { Steps } from './slices.ts';

export type RpcId = string | number;

/** A decoded request. */
export interface RpcRequest {
  readonly kind: 'request';
  readonly id: RpcId;
  readonly method: string;
  /** Any JSON value; if omitted, the empty object (02 §2.5). */
  readonly params: JsonValue;
}

/** A decoded notification: a request without `id`, which gets no answer. */
export interface RpcNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonValue;
}

/** The error answer to an invalid request. */
export interface RefusedRequest {
  readonly kind: 'refused';
  readonly answer: string;
  /** Whether the text is no JSON at all. */
  readonly isSyntax?: boolean;
}

/** Decodes one WebSocket message; an invalid one, or one without `id`, yields exactly one error answer. */
export function readEnvelope(bytes: Uint8Array): RpcRequest | RefusedRequest {
  const text = textOf(bytes);
  return typeof text === 'string' ? requireId(readRelayEnvelope(text)) : text;
}

/** Decodes a large WebSocket message as {@link readEnvelope} does, in steps. */
export function* readEnvelopeInSteps(bytes: Uint8Array): Steps<RpcRequest | RefusedRequest> {
  const text = textOf(bytes);
  return typeof text === 'string' ? requireId(yield* readRelayEnvelopeInSteps(text)) : text;
}

function textOf(bytes: Uint8Array): string | RefusedRequest {
  try {
    return decodeUtf8(bytes);
  } catch {
    return refused(rpcErrors.parse_error, null);
  }
}

/** Clients send no notifications. */
function requireId(
  envelope: RpcRequest | RpcNotification | RefusedRequest,
): RpcRequest | RefusedRequest {
  return envelope.kind === 'notification' ? refused(rpcErrors.invalid_request, null) : envelope;
}

/** The `id` of an ordinary request, as the first members of its text name it. */
const leadingId =
  /^\{(?:"(?:jsonrpc|method)":"[^"\\]{0,64}",)*"id":(-?[0-9]{1,15}|"[^"\\]{0,64}")[,}]/;

/** Returns the `id` of a request that is not read: as far as its first bytes tell. */
export function guessId(bytes: Uint8Array): RpcId | null {
  const [, id] = leadingId.exec(Buffer.from(bytes.subarray(0, 512)).toString('latin1')) ?? [];
  if (id === undefined) return null;
  return id.startsWith('"') ? id.slice(1, -1) : Number(id);
}

/** Decodes the text of one frame of relay RPC; an invalid one yields exactly one error answer. */
export function readRelayEnvelope(text: string): RpcRequest | RpcNotification | RefusedRequest {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    const { rpc, id } = diagnoseEnvelope(text);
    return refused(rpc, id);
  }
  return isJsonObject(value) ? readRequest(value) : notObject();
}

/** Decodes a large text as {@link readRelayEnvelope} does, in steps. */
export function* readRelayEnvelopeInSteps(
  text: string,
): Steps<RpcRequest | RpcNotification | RefusedRequest> {
  let value: JsonValue;
  try {
    value = yield* parseJsonInSteps(text);
  } catch {
    const { rpc, id } = yield* diagnoseEnvelopeInSteps(text);
    return refused(rpc, id);
  }
  return isJsonObject(value) ? readRequest(value) : notObject();
}

function readRequest(value: JsonObject): RpcRequest | RpcNotification | RefusedRequest {
  const { jsonrpc, id, method, params = {} } = value;
  if (id !== undefined && !isRpcId(id)) return refused(rpcErrors.invalid_request, null);
  if (jsonrpc !== '2.0' || typeof method !== 'string') {
    return refused(rpcErrors.invalid_request, id ?? null);
  }
  if (id === undefined) return { kind: 'notification', method, params };
  return { kind: 'request', id, method, params };
}

function notObject(): RefusedRequest {
  return refused(rpcErrors.invalid_request, null);
}

const reasons: Readonly<Record<number, string>> = {
  [rpcErrors.parse_error]: 'not one JSON value',
  [rpcErrors.invalid_request]: 'not one request object',
  [errorCatalogue.bad_request.rpc]: 'params break the rules for JSON',
};

function refused(code: number, id: RpcId | null): RefusedRequest {
  const answer = encodeRefusal(id, code, reasons[code] ?? 'refused');
  return { kind: 'refused', answer, isSyntax: code === rpcErrors.parse_error };
}

/** Encodes an error answer of the JSON-RPC level (02 §4.2). */
export function encodeRefusal(id: RpcId | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
}

/** Encodes a request to another relay. */
export function encodeRequest(id: RpcId, method: RelayMethodName, params: ResultValue): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":${encodeResult(params)}}`;
}

/** Encodes a successful answer. */
export function encodeSuccess(id: RpcId, result: ResultValue): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${encodeResult(result)}}`;
}

/** Encodes the answer to a call that failed. */
export function encodeFailure(id: RpcId | null, { code, message, data }: ProtocolError): string {
  const error = { code: errorCatalogue[code].rpc, message, data };
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}

/** Returns whether a text fits in one message (02 §3.3). */
export function fitsMessage(text: string): boolean {
  return utf8Length(text) <= limits.webSocketMessageBytes;
}
