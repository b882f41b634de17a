/** Every way an operation of the client can fail, by `code`. Compare codes, not classes. */

export type ClientErrorCode =
  /** The relay could not be reached, or its answer was lost. */
  | 'relay_unreachable'
  /** The relay answered with an error of the protocol's catalogue. */
  | 'relay_refused'
  /** The relay answered something the protocol forbids, or that does not verify. */
  | 'relay_misbehaviour'
  /** No relay of the registry could be used. */
  | 'no_relay'
  /** The store holds no account with a device yet. */
  | 'not_set_up'
  /** The store already holds an account. */
  | 'already_set_up'
  /** The store belongs to another network, or was written by a newer version. */
  | 'store_mismatch'
  /** The operation needs the account key, which is neither stored nor given. */
  | 'account_key_required'
  /** Something a person handed over (an invite, a device request, a key) does not verify. */
  | 'verification_failed'
  /** The recipient has no device that is valid now. */
  | 'no_recipient_device'
  /** There is no relationship with that account, or no usable grant from it. */
  | 'not_a_contact'
  /** The account is no member of the group, as far as this device knows. */
  | 'not_a_member'
  /** The own role in the group or channel does not permit it, or it is closed. */
  | 'not_permitted'
  /** The group's history does not verify; nothing behind that place is used (05 §5.5). */
  | 'group_blocked'
  /** There is more of the group at its host than is read in one go: synchronize it first. */
  | 'group_behind'
  /** This device has no verified secret of the group's present epoch. */
  | 'group_key_missing'
  /** This device follows no such channel, and made none. */
  | 'unknown_channel'
  /** A counter has no next value (01 I2, I3). */
  | 'counter_exhausted'
  /** The input cannot be sent: too large, empty, malformed. */
  | 'invalid_input';

/**
 * A failure with a code. `message` is for people and logs.
 *
 * @example
 * try { await account.messages.send(to, 'hello'); }
 * catch (error) { if (isClientError(error, 'not_a_contact')) askForAnInvite(); }
 */
export class ClientError extends Error {
  override readonly name: string = 'ClientError';
  readonly code: ClientErrorCode;

  constructor(code: ClientErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}

/** Whether a value is a {@link ClientError}, of that code where one is given. */
export function isClientError(value: unknown, code?: ClientErrorCode): value is ClientError {
  return value instanceof ClientError && (code === undefined || value.code === code);
}

/** No answer came. */
export class RelayUnreachable extends ClientError {
  override readonly name = 'RelayUnreachable';
  /** Whether the request may have been carried out: it left, and no answer came back (02 §7). */
  readonly outcomeUnknown: boolean;

  constructor(message: string, options: { readonly outcomeUnknown: boolean; cause?: unknown }) {
    super('relay_unreachable', message, options);
    this.outcomeUnknown = options.outcomeUnknown;
  }
}

/** The relay's own "no", with the code of the catalogue (02 §4.1). */
export class RelayRefused extends ClientError {
  override readonly name = 'RelayRefused';
  readonly method: string;
  /** String code of the catalogue, on both transports. */
  readonly error: string;
  /** Machine-readable details where a rule defines them. */
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(
    method: string,
    error: string,
    details: { readonly message: string; readonly data?: Record<string, unknown> | undefined },
  ) {
    super('relay_refused', `${method}: ${error}: ${details.message}`);
    this.method = method;
    this.error = error;
    this.data = details.data;
  }

  /** Least seconds to wait before trying again, from `rate_limited` (02 §5). */
  get retryAfter(): number | undefined {
    return this.error === 'rate_limited' ? (this.data?.retry_after as number) : undefined;
  }
}

/** Whether a value is the relay's refusal with one of these codes. */
export function isRefusal(value: unknown, ...errors: readonly string[]): value is RelayRefused {
  return value instanceof RelayRefused && (errors.length === 0 || errors.includes(value.error));
}

/** What a relay did that it must not do. Nothing of such an answer is used or stored. */
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
 * The relay is wrong: its answer breaks the protocol or does not verify. `reason` names the rule.
 *
 * @example
 * catch (error) { if (error instanceof RelayMisbehaviour) report(error.relayId, error.reason); }
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

/** Runs a check of what a relay answered; what the check throws becomes a misbehaviour. */
export function checkRelayAnswer<T>(reason: MisbehaviourReason, method: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    if (cause instanceof ClientError) throw cause;
    throw new RelayMisbehaviour(reason, cause instanceof Error ? cause.message : 'invalid', {
      method,
      cause,
    });
  }
}
