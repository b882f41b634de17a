import { badRequest } from '../errors.ts';
import { limits } from '../limits.ts';
import {
  Counter,
  checkNoNull,
  checkSchema,
  checkText,
  RelayId,
  type Static,
  Type,
  UnixSeconds,
} from '../schema.ts';
import { descriptorAddresses, hasCapability, type RelayDescriptor } from './descriptor.ts';
import type { Network } from './network.ts';

/** 1 to 256 characters of visible ASCII: a nonce or a token. */
export const OpaqueToken = Type.String({ pattern: `^[!-~]{1,${limits.tokenCharacters}}$` });

/** Answer of `auth.challenge` (chapter 02, section 9.2). */
export const Challenge = Type.Object({
  nonce: OpaqueToken,
  created_at: UnixSeconds,
  expires_at: UnixSeconds,
});
export type Challenge = Static<typeof Challenge>;

export const SessionMode = Type.Union([Type.Literal('device'), Type.Literal('account')]);
export type SessionMode = Static<typeof SessionMode>;

/** Answer of `auth.device.verify` and `auth.account.verify` (chapter 02, section 10.1). */
export const SessionCredentials = Type.Object({
  token: OpaqueToken,
  mode: SessionMode,
  expires_at: UnixSeconds,
});
export type SessionCredentials = Static<typeof SessionCredentials>;

/** The members a device signs to authenticate (chapter 02, section 9.3). */
export interface DeviceAuthFields {
  /** The relay talked to, from trusted knowledge: its verified descriptor, or its own identity. */
  readonly relay_id: string;
  /** `relayOrigin` of the address talked to. */
  readonly origin: string;
  readonly account: string;
  readonly device_id: string;
  readonly nonce: string;
  /** Client Unix seconds. */
  readonly timestamp: number;
}

/**
 * Returns the bytes that the device signs to authenticate (02 §9.3). Members beyond the six do not
 * enter them.
 *
 * @example
 * const origin = relayOrigin('https://relay.example.com/svc/v1');
 * const fields = { relay_id, origin, account, device_id: device.deviceId, nonce, timestamp: now };
 * const signature = device.sign(deviceAuthInput(network, fields));
 */
export function deviceAuthInput(network: Network, fields: DeviceAuthFields): Uint8Array {
  const { relay_id, origin, account, device_id, nonce, timestamp } = fields;
  const $type = network.type('relay.auth');
  return network.bytes({ $type, relay_id, origin, account, device_id, nonce, timestamp });
}

/** The members an account signs to authenticate (chapter 02, section 9.4). */
export interface AccountAuthFields {
  readonly relay_id: string;
  readonly origin: string;
  readonly account: string;
  readonly account_public_key: string;
  readonly nonce: string;
}

/**
 * Returns the bytes that the account signs to authenticate (02 §9.4); members beyond the five do
 * not enter them.
 *
 * @example
 * const origin = relayOrigin('https://relay.example.com/svc/v1');
 * const fields = { relay_id, origin, account, account_public_key: signer.publicKey, nonce };
 * const signature = await signer.sign(accountAuthInput(network, fields));
 */
export function accountAuthInput(network: Network, fields: AccountAuthFields): Uint8Array {
  const { relay_id, origin, account, account_public_key, nonce } = fields;
  const $type = network.type('relay.account_auth');
  return network.bytes({ $type, relay_id, origin, account, account_public_key, nonce });
}

/**
 * Checks a challenge as a client receives it.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkChallenge(value);
 * console.log(value.nonce);
 */
export function checkChallenge(value: unknown): asserts value is Challenge {
  checkSchema(Challenge, value);
  checkNoNull(value);
  if (value.expires_at <= value.created_at) {
    throw badRequest('expires_at', 'is not later than created_at');
  }
}

/**
 * Checks credentials as a client receives them: a client neither uses nor stores credentials whose
 * mode is not that of the called method.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkSessionCredentials(value, 'device');
 * console.log(value.token);
 */
export function checkSessionCredentials(
  value: unknown,
  mode: SessionMode,
): asserts value is SessionCredentials {
  checkSchema(SessionCredentials, value);
  checkNoNull(value);
  if (value.mode !== mode) throw badRequest('mode', `is not ${mode}`);
}

const Positive = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** A relay's name, clock and limits (chapter 02, section 11.2). */
export const RelayInfo = Type.Object({
  relay_id: RelayId,
  /** Shown to users; identifies nothing. */
  name: Type.String(),
  /** Relay Unix seconds. */
  server_time: UnixSeconds,
  // Beyond the chapter, as the last members of `limits` (DECISION at 02 section 11.2).
  /** When the relay was last put back to an earlier state, Unix seconds. */
  restored_at: Type.Optional(UnixSeconds),
  limits: Type.Object({
    message_retention: Positive,
    channel_timeline_retention: Type.Optional(Positive),
    max_channel_subscriptions: Type.Optional(Counter),
    group_message_retention: Type.Optional(Positive),
    max_group_members: Type.Optional(Positive),
    max_group_subscriptions: Type.Optional(Counter),
    max_group_invite_ttl: Type.Optional(Positive),
    // Beyond the chapter; stated by relays that help their clients (DECISION at 02 section 11.2).
    /** Banned accounts of one group. */
    max_group_bans: Type.Optional(Positive),
    /** Seconds a device's clock may differ in authentication. */
    clock_tolerance: Type.Optional(Counter),
    /** Seconds a signed time may lie ahead. */
    future_tolerance: Type.Optional(Counter),
    /** Seconds an envelope may be old when it is taken for delivery. */
    max_delivery_age: Type.Optional(Positive),
  }),
});
export type RelayInfo = Static<typeof RelayInfo>;

/** Limits a relay must state by the module it declares, and those it must state with WSS. */
const requiredLimits = {
  'channel.host.v1': {
    always: ['channel_timeline_retention'],
    withWss: ['max_channel_subscriptions'],
  },
  'group.host.v1': {
    always: ['group_message_retention', 'max_group_members', 'max_group_invite_ttl'],
    withWss: ['max_group_subscriptions'],
  },
} as const;

/**
 * Checks a `relay.info` answer; with the verified descriptor of the connection also that it is the
 * same relay and states the limits of what it declares.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkRelayInfo(value, descriptor);
 */
export function checkRelayInfo(
  value: unknown,
  descriptor?: RelayDescriptor,
): asserts value is RelayInfo {
  checkSchema(RelayInfo, value);
  checkNoNull(value);
  checkText(value.name, { maxBytes: limits.relayNameBytes, allowEmpty: false }, 'name');
  if (descriptor === undefined) return;
  if (value.relay_id !== descriptor.relay_id) {
    throw badRequest('relay_id', 'is not the relay of the descriptor');
  }
  const wss = descriptorAddresses(descriptor).wss.length > 0;
  for (const [capability, { always, withWss }] of Object.entries(requiredLimits)) {
    if (!hasCapability(descriptor, capability)) continue;
    for (const name of wss ? [...always, ...withWss] : always) {
      if (value.limits[name] === undefined) throw badRequest(`limits.${name}`, 'is missing');
    }
  }
}
