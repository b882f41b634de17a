/** Every way an operation of the client can fail, by `code`. Compare codes, not classes. */
import { ProtocolError } from '@posthouse/protocol';
import { JsonError } from '@posthouse/protocol/json';

export type ClientErrorCode =
  /** The relay could not be reached, or its answer was lost. */
  | 'relay_unreachable'
  /** The relay answered with an error of the protocol's catalogue. */
  | 'relay_refused'
  /** The relay's answer breaks the protocol or does not verify. */
  | 'relay_misbehaviour'
  /** No relay of the registry could be used. */
  | 'no_relay'
  /** The store holds no account with a device yet. */
  | 'not_set_up'
  /** The store already holds an account. */
  | 'already_set_up'
  /** The store belongs to another network, or was written by a newer version. */
  | 'store_mismatch'
  /** The device has no more space for the store. */
  | 'store_full'
  /** The store cannot be opened, or was closed. */
  | 'store_unavailable'
  /** The store's file or a row of it is damaged. */
  | 'store_damaged'
  /** A part of the app could not be loaded: the device is offline, or a new version took its place. */
  | 'part_unavailable'
  /** The operation needs the account key, which is neither stored nor passed in. */
  | 'account_key_required'
  /** An invite, device request, approval or key passed in by a person does not verify. */
  | 'verification_failed'
  /** The approval is of another device, or of another account. */
  | 'wrong_device'
  /** The account does not have this device: it was removed after it was approved. */
  | 'device_removed'
  /** A contact would lose the way to the account with the device: no grant of another one was received. */
  | 'contacts_unreached'
  /** The content was deleted at its host. */
  | 'content_gone'
  /** The recipient has no device that is valid now. */
  | 'no_recipient_device'
  /** There is no relationship with that account, or no usable grant from it. */
  | 'not_a_contact'
  /** The account is not a member of the group, as far as this device knows. */
  | 'not_a_member'
  /** The own role does not permit it, or the group or channel is closed. */
  | 'not_permitted'
  /** The group's history does not verify; no later event is used (05 §5.5). */
  | 'group_blocked'
  /** The host has more events than one read may fetch: synchronize the group first. */
  | 'group_behind'
  /** This device has no verified secret of the group's current epoch. */
  | 'group_key_missing'
  /** This device neither follows nor created such a channel. */
  | 'unknown_channel'
  /** The relay does not take the account: it has no invite code, or one that is used up. */
  | 'registration_refused'
  /** Another move of the account is not finished, or another device moved it meanwhile. */
  | 'move_conflict'
  /** A counter has no next value (01 I2, I3). */
  | 'counter_exhausted'
  /** The message is sealed or sent: it cannot be cancelled any more. */
  | 'already_sent'
  /** The message was cancelled before it was sent. */
  | 'cancelled'
  /** This page, browser or worker has no passkeys: use the password. */
  | 'passkey_unavailable'
  /** The authenticator has no PRF, cannot verify the person, or stores no passkeys. */
  | 'passkey_unsuitable'
  /** The person declined or was too late, or no authenticator here has the passkey. */
  | 'passkey_refused'
  /** The authenticator has a passkey of the key already. */
  | 'passkey_exists'
  /** The passkey is bound to another domain, or a page of another site contains this one. */
  | 'passkey_wrong_site'
  /** The document of a passkey was altered, or belongs to another passkey. */
  | 'passkey_mismatch'
  /** The input cannot be sent: too large, empty, malformed. */
  | 'invalid_input';

const source = '@posthouse/client';

/**
 * An error as plain data: what `toJSON` of each error returns, what a message to another thread, tab
 * or program carries, and what {@link isClientError} and {@link isRefusal} understand like the error
 * itself. Members after `message` are those of its class.
 */
export interface PlainError {
  /** Tells errors of this package from other objects. */
  readonly source: typeof source;
  /** Name of the class. */
  readonly name: string;
  readonly code: ClientErrorCode;
  readonly message: string;
  readonly outcomeUnknown?: boolean;
  readonly kept?: boolean;
  readonly method?: string | undefined;
  readonly error?: string;
  readonly data?: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfter?: number | undefined;
  readonly reason?: MisbehaviourReason;
}

/** Returns the same error for one of its receivers, with `kept`: others may share the object. */
export function withKept(error: ClientError, kept: boolean): ClientError {
  const { code, message, cause, stack } = error;
  const copy = new ClientError(code, message, { cause });
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error));
  return Object.assign(copy, error, { kept, stack });
}

/** An error answer of the relay, as plain data. */
export interface PlainRefusal extends PlainError {
  readonly method: string;
  readonly error: string;
}

/**
 * A failure with a code. `message` is for people and logs.
 *
 * @example
 * import { isClientError } from '@posthouse/client';
 * try {
 *   await account.messages.send(peer, { text: 'hello' });
 * } catch (error) {
 *   if (!isClientError(error, 'not_a_contact')) throw error;
 *   await account.contacts.request(peer);
 * }
 */
export class ClientError extends Error implements PlainError {
  readonly source = source;
  override readonly name: string = 'ClientError';
  readonly code: ClientErrorCode;
  /** Whether what was to be sent is stored, and is sent later; absent if nothing was stored. */
  declare readonly kept?: boolean;

  constructor(code: ClientErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }

  /**
   * Returns the error as plain data, without stack and cause. `postMessage` of an error itself loses
   * its code.
   *
   * @example
   * import { ClientError, isClientError } from '@posthouse/client';
   * const error = new ClientError('no_relay', 'no relay can be used');
   * isClientError(structuredClone(error.toJSON()), 'no_relay'); // true
   */
  toJSON(): PlainError {
    return { ...this, message: this.message };
  }
}

/**
 * Whether a value is a {@link ClientError}, or one as plain data, and has the code if one is given.
 *
 * @example
 * import { isClientError } from '@posthouse/client';
 * await account.sync().catch((error: unknown) => {
 *   if (!isClientError(error, 'relay_unreachable')) throw error;
 * });
 */
export function isClientError(value: unknown, code?: ClientErrorCode): value is PlainError {
  const error = value as Partial<PlainError> | null | undefined;
  return error?.source === source && (code === undefined || error.code === code);
}

/**
 * No answer was received.
 *
 * @example
 * import { RelayUnreachable } from '@posthouse/client';
 * await account.sync().catch((error: unknown) => {
 *   if (error instanceof RelayUnreachable) console.log('outcome unknown:', error.outcomeUnknown);
 * });
 */
export class RelayUnreachable extends ClientError {
  override readonly name = 'RelayUnreachable';
  /** Whether the request may have taken effect: it was sent and no answer came back (02 §7). */
  readonly outcomeUnknown: boolean;
  /** Whether what was to be sent is stored, and is sent later in its place. */
  declare readonly kept: boolean;

  constructor(
    message: string,
    options: { readonly outcomeUnknown: boolean; readonly kept?: boolean; cause?: unknown },
  ) {
    super('relay_unreachable', message, options);
    this.outcomeUnknown = options.outcomeUnknown;
    this.kept = options.kept ?? false;
  }
}

/** UTF-16 units of a relay's text in an error: errors are stored, some with each message. */
const longestText = 1_000;

/** Returns the beginning of a text that a relay wrote for logs and people. */
export function shortened(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText).toWellFormed()}…` : text;
}

/**
 * An error answer of the relay, with a code of the catalogue (02 §4.1).
 *
 * @example
 * import { RelayRefused } from '@posthouse/client';
 * await account.sync().catch((error: unknown) => {
 *   if (error instanceof RelayRefused) console.log(error.method, error.error, error.retryAfter);
 * });
 */
export class RelayRefused extends ClientError {
  override readonly name = 'RelayRefused';
  readonly method: string;
  /** String code of the catalogue, on both transports. */
  readonly error: string;
  /** Machine-readable details, if the method defines them. */
  readonly data: Readonly<Record<string, unknown>> | undefined;
  /** Minimum seconds to wait before a retry, from `rate_limited` (02 §5). */
  readonly retryAfter: number | undefined;

  constructor(
    method: string,
    error: string,
    details: { readonly message: string; readonly data?: Record<string, unknown> | undefined },
  ) {
    super('relay_refused', `${method}: ${error}: ${shortened(details.message)}`);
    this.method = method;
    this.error = error;
    this.data = details.data;
    this.retryAfter = error === 'rate_limited' ? (details.data?.retry_after as number) : undefined;
  }
}

/**
 * Whether a value is an error answer of the relay, or one as plain data, with one of the given codes if there are any.
 *
 * @example
 * import { isRefusal } from '@posthouse/client';
 * await account.profiles.resolve(account.id).catch((error: unknown) => {
 *   if (!isRefusal(error, 'rate_limited')) throw error;
 * });
 */
export function isRefusal(value: unknown, ...errors: readonly string[]): value is PlainRefusal {
  if (!isClientError(value, 'relay_refused')) return false;
  return errors.length === 0 || errors.includes(value.error ?? '');
}

/** The rule a relay's answer broke. Nothing of such an answer is used or stored. */
export type MisbehaviourReason =
  // Envelopes and transport (02 §3)
  | 'malformed_response'
  | 'malformed_result'
  | 'malformed_notification'
  | 'unknown_response_id'
  | 'oversized_response'
  | 'binary_message'
  | 'invalid_retry_after'
  | 'unknown_error_code'
  // Discovery (01 §13, 02 §11)
  | 'invalid_descriptor'
  | 'wrong_relay_id'
  // Sessions (02 §9, §10)
  | 'invalid_challenge'
  | 'wrong_session_mode'
  | 'invalid_session'
  // Device states (01 §10.2, 03 §4, §5.7)
  | 'wrong_publish_status'
  | 'invalid_staged_until'
  | 'invalid_device_state'
  | 'wrong_account'
  | 'lower_revision'
  | 'conflicting_revision'
  | 'invite_signer_missing'
  // Profiles (03 §8)
  | 'invalid_certificate'
  | 'invalid_profile'
  // Routes (03 §9, §10)
  | 'route_altered'
  | 'invalid_route'
  | 'route_rollback'
  | 'route_conflict'
  // Delivery status (04 §14)
  | 'invalid_delivery_status'
  // Timeline pages (04 §18)
  | 'page_order'
  | 'page_too_long'
  | 'page_without_end'
  | 'page_certificates'
  | 'altered_envelope'
  | 'foreign_envelope'
  | 'foreign_key_box'
  | 'sequence_jump'
  | 'timeline_rollback'
  // Groups (05 §13)
  | 'invalid_group_page'
  | 'invalid_group_keys'
  | 'invalid_group_state'
  | 'invalid_group_record'
  | 'invalid_group_answer'
  | 'group_rollback'
  // Channels (06 §8)
  | 'invalid_channel_page'
  | 'invalid_channel_descriptor'
  | 'channel_conflict'
  | 'channel_rollback';

/**
 * The relay's answer breaks the protocol or does not verify. `reason` names the rule.
 *
 * @example
 * import { RelayMisbehaviour } from '@posthouse/client';
 * await account.sync().catch((error: unknown) => {
 *   if (error instanceof RelayMisbehaviour) console.log(error.reason, error.method);
 * });
 */
export class RelayMisbehaviour extends ClientError {
  override readonly name = 'RelayMisbehaviour';
  readonly reason: MisbehaviourReason;
  readonly method: string | undefined;

  constructor(
    reason: MisbehaviourReason,
    message: string,
    options: { readonly method?: string | undefined; readonly cause?: unknown } = {},
  ) {
    super('relay_misbehaviour', `${reason}: ${message}`, options);
    this.reason = reason;
    this.method = options.method;
  }
}

/** Runs a check of a caller's input; an error of the check becomes `invalid_input`. */
export function checkInput<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', `${what}: ${cause.message}`, { cause });
  }
}

/**
 * Runs a check of a relay's answer; what a check fails with becomes a {@link RelayMisbehaviour}. All
 * else is a fault of this program, and thrown as it is.
 */
export function checkRelayAnswer<T>(reason: MisbehaviourReason, method: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (!(cause instanceof ProtocolError || cause instanceof JsonError)) throw cause;
    throw new RelayMisbehaviour(reason, cause.message, { method, cause });
  }
}
