/** Requests and notifications between relays, and their JSON-RPC envelopes (07 §C1 to §C3). */
import { errorCodeOfRpc } from '../errors.ts';
import { AccountDeviceState } from '../identity/index.ts';
import { isRpcId } from '../json/diagnose.ts';
import { parseJson, parseJsonInSteps } from '../json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/types.ts';
import { limits } from '../limits.ts';
import { DeliverRequest, DeliveryStatus } from '../messages/index.ts';
import { baseMethods } from '../methods/base.ts';
import { AccountId, DeviceId, type Static, type TSchema, Type, UnixSeconds } from '../schema.ts';

/** Parameters of `device.status` and of `device.status.changed`. */
export const DeviceStatusQuery = Type.Object({
  /** The handler runs `checkAccountId`. */
  account: AccountId,
  device_id: DeviceId,
});
export type DeviceStatusQuery = Static<typeof DeviceStatusQuery>;

/** Result of `device.status` (07 §C5). */
export const DeviceStatus = Type.Union([
  Type.Object({
    status: Type.Literal('active'),
    /** End of the device's latest certificate in the account's current state. */
    expires_at: UnixSeconds,
  }),
  Type.Object({ status: Type.Literal('inactive') }),
]);
export type DeviceStatus = Static<typeof DeviceStatus>;

/** A request of one relay to another. */
export interface RelayMethodDefinition {
  /** Shape of the parameter object. Unknown members are tolerated. */
  readonly params: TSchema;
  readonly result: TSchema;
  /** As in the catalogue of the client API: depth of parts that come back inside an answer. */
  readonly memberDepth?: Readonly<Record<string, number>>;
  /** Chapter and section that define the method. */
  readonly source: string;
}

/** Every request between relays by its name (07 §C1). */
export const relayMethods = {
  'device.status': { params: DeviceStatusQuery, result: DeviceStatus, source: '07 §C5' },
  'device.state.resolve': {
    params: baseMethods['device.state.resolve'].params,
    result: AccountDeviceState,
    source: '07 §C6',
  },
  'profile.resolve': {
    params: baseMethods['profile.resolve'].params,
    result: baseMethods['profile.resolve'].result,
    source: '07 §C7',
  },
  'message.deliver': {
    params: DeliverRequest,
    result: DeliveryStatus,
    /** Come back in `result.items[…]` of the recipient's timeline. */
    memberDepth: {
      envelope: limits.jsonDepth - 4,
      recipient_boxes: limits.jsonDepth - 3,
      signer_certificate: limits.jsonDepth - 4,
    },
    source: '07 §C8',
  },
} as const satisfies Readonly<Record<string, RelayMethodDefinition>>;

/** Every notification between relays by its name (07 §C9). */
export const relayNotifications = {
  'device.status.changed': { params: DeviceStatusQuery, source: '07 §C9' },
} as const;

export type RelayMethodName = keyof typeof relayMethods;
export type RelayNotificationName = keyof typeof relayNotifications;

/** Parameters of a request or notification between relays. */
export type RelayParamsOf<N extends RelayMethodName | RelayNotificationName> =
  N extends RelayMethodName
    ? Static<(typeof relayMethods)[N]['params']>
    : N extends RelayNotificationName
      ? Static<(typeof relayNotifications)[N]['params']>
      : never;

/** Result object of a request between relays. */
export type RelayResultOf<N extends RelayMethodName> = Static<(typeof relayMethods)[N]['result']>;

/**
 * Encodes a request between relays as JSON text; the frame is `encodeFrame` of its UTF-8 bytes.
 *
 * @example
 * const text = encodeRelayRequest({ id: 1, method: 'profile.resolve', params: { account } });
 */
export function encodeRelayRequest(request: {
  readonly id: string | number;
  readonly method: RelayMethodName;
  readonly params: JsonObject;
}): string {
  const { id, method, params } = request;
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

/**
 * Encodes a notification between relays as JSON text.
 *
 * @example
 * encodeRelayNotification('device.status.changed', { account, device_id: deriveDeviceId(network, certificate) });
 */
export function encodeRelayNotification(name: RelayNotificationName, params: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', method: name, params });
}

/** The answer of another relay, or why its text is none. */
export type RelayResponse =
  /** The result is not checked against the method's schema. */
  | { readonly kind: 'result'; readonly value: JsonValue }
  | {
      readonly kind: 'refused';
      /** A code of the catalogue, or the number of an unknown code as text. */
      readonly code: string;
      readonly message: string;
      /** Valid `retry_after`, seconds from receipt. */
      readonly retryAfter?: number;
    }
  | { readonly kind: 'invalid'; readonly why: string };

/**
 * Reads the response to a request (07 §C3, §C9). A malformed `retry_after` makes the whole response
 * invalid. Never throws.
 *
 * @param id the `id` of the request; another one is invalid
 * @example
 * readRelayResponse('{"jsonrpc":"2.0","id":1,"result":{"status":"inactive"}}', 1);
 * // { kind: 'result', value: { status: 'inactive' } }
 */
export function readRelayResponse(text: string, id: string | number): RelayResponse {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    return invalid('not one JSON value');
  }
  return readResponse(value, id);
}

/**
 * Reads a large response as {@link readRelayResponse} does, in steps: after each, the caller may do
 * other work.
 *
 * @example
 * const steps = readRelayResponseInSteps('{"jsonrpc":"2.0","id":1,"result":null}', 1);
 * let step = steps.next();
 * while (step.done !== true) step = steps.next();
 * console.log(step.value); // { kind: 'result', value: null }
 */
export function* readRelayResponseInSteps(
  text: string,
  id: string | number,
): Generator<undefined, RelayResponse, undefined> {
  let value: JsonValue;
  try {
    value = yield* parseJsonInSteps(text);
  } catch {
    return invalid('not one JSON value');
  }
  return readResponse(value, id);
}

function readResponse(value: JsonValue, id: string | number): RelayResponse {
  if (!isJsonObject(value) || value.jsonrpc !== '2.0') return invalid('not a JSON-RPC response');
  if (!isRpcId(value.id) || value.id !== id) return invalid('id of another request');
  const hasResult = Object.hasOwn(value, 'result');
  if (hasResult === Object.hasOwn(value, 'error')) return invalid('not one of result and error');
  return hasResult ? { kind: 'result', value: value.result as JsonValue } : readError(value.error);
}

function readError(error: JsonValue | undefined): RelayResponse {
  if (!isJsonObject(error)) return invalid('error is not an object');
  const { code, message, data } = error;
  if (!Number.isSafeInteger(code) || typeof message !== 'string') {
    return invalid('error has no code or no message');
  }
  if (data !== undefined && !isJsonObject(data)) return invalid('data is not an object');
  const refused = {
    kind: 'refused',
    code: errorCodeOfRpc(code as number) ?? String(code),
    message,
  } as const;
  const retryAfter = data?.retry_after;
  if (refused.code !== 'rate_limited' || retryAfter === undefined) return refused;
  if (!isSafeCount(retryAfter)) return invalid('retry_after is no number of seconds');
  return { ...refused, retryAfter };
}

function isSafeCount(value: JsonValue): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function invalid(why: string): RelayResponse {
  return { kind: 'invalid', why };
}
