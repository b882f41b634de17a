/** The delivery of an accepted message: its status, deadline and retries (04 §14, §16). */
import { badRequest, type ErrorCode, isErrorCode } from '../errors.ts';
import type { JsonObject } from '../json/types.ts';
import { checkNoNull, checkSchema, MessageId, type Static, Type, UnixSeconds } from '../schema.ts';

/** An error as it travels inside results and over HTTP (02 §4). */
export const RelayError = Type.Object({
  code: Type.String(),
  message: Type.String(),
  data: Type.Optional(Type.Unsafe<JsonObject>(Type.Object({}))),
});
export type RelayError = Static<typeof RelayError>;

/** Result of `message.send`, `message.deliver` and `message.delivery.status`. */
export const DeliveryStatus = Type.Object({
  status: Type.Union([
    Type.Literal('delivering'),
    Type.Literal('target_accepted'),
    Type.Literal('failed'),
  ]),
  /** With `failed`, and only then. */
  error: Type.Optional(RelayError),
  /** When the relay that answers accepted the message. */
  accepted_at: UnixSeconds,
});
export type DeliveryStatus = Static<typeof DeliveryStatus>;

/** Parameters of `message.delivery.status`. */
export const DeliveryStatusQuery = Type.Object({ message_id: MessageId });
export type DeliveryStatusQuery = Static<typeof DeliveryStatusQuery>;

/**
 * Checks a delivery status that another side answered.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkDeliveryStatus(value);
 * console.log(value.status);
 */
export function checkDeliveryStatus(value: unknown, path = ''): asserts value is DeliveryStatus {
  checkSchema(DeliveryStatus, value, path);
  checkNoNull(value, path);
  if ((value.status === 'failed') !== Object.hasOwn(value, 'error')) {
    throw badRequest(path, 'error goes with status failed, and only with it');
  }
}

/**
 * Returns the instant at which a source relay ends an unfinished delivery; fixed at acceptance (04
 * §16.1). All in Unix seconds; limits and retention as they are at acceptance.
 *
 * @example
 * const deadline = deliveryDeadline({
 *   createdAt: now, acceptedAt: now, deliveryAgeLimit: 604_800, messageRetention: 2_592_000,
 * });
 */
export function deliveryDeadline(fields: {
  readonly createdAt: number;
  readonly acceptedAt: number;
  readonly deliveryAgeLimit: number;
  readonly messageRetention: number;
}): number {
  const { createdAt, acceptedAt, deliveryAgeLimit, messageRetention } = fields;
  return Math.min(createdAt + deliveryAgeLimit, acceptedAt + messageRetention);
}

/**
 * The reaction of a source relay to a failed attempt: try again, resolve the route again bypassing
 * caches and then try again, or end the delivery.
 */
export type DeliveryErrorAction = 'retry' | 'reroute' | 'end';

const actions: Readonly<Record<string, DeliveryErrorAction>> = {
  internal_error: 'retry',
  bad_gateway: 'retry',
  rate_limited: 'retry',
  temporarily_unavailable: 'retry',
  route_stale: 'reroute',
  target_not_local: 'reroute',
  route_not_found: 'reroute',
  not_found: 'reroute',
  invalid_state: 'reroute',
};

/**
 * Returns the reaction to the error of one attempt, before the deadline (04 §16.2).
 *
 * @param code the remote error's string code, recognised or not
 * @example
 * deliveryErrorAction('route_stale'); // 'reroute'
 * deliveryErrorAction('device_unknown'); // 'end'
 */
export function deliveryErrorAction(code: string): DeliveryErrorAction {
  return (Object.hasOwn(actions, code) ? actions[code] : undefined) ?? 'end';
}

/**
 * Returns the `error.code` of a delivery that a remote error ended: an unrecognised one is a bad
 * gateway.
 *
 * @example
 * deliveryEndCode('forbidden'); // 'forbidden'
 * deliveryEndCode('unheard_of'); // 'bad_gateway'
 */
export function deliveryEndCode(code: string): ErrorCode {
  return isErrorCode(code) ? code : 'bad_gateway';
}
