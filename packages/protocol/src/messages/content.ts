/** Reading a decrypted message, and deciding whether it may take effect (04 §7.1, §7.2). */
import {
  type AccountContactSync,
  type AccountGroupHistorySecretSync,
  type AccountGroupPrivateStateRequest,
  type AccountGroupPrivateStateSync,
  type ContactConsent,
  type ContactGrant,
  checkConsent,
  checkContactSync,
  checkGrant,
  checkGroupHistorySecretSync,
  checkGroupStateRequest,
  checkGroupStateSync,
} from '../contacts/index.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import type { Network } from '../identity/index.ts';
import { JsonError } from '../json/json-error.ts';
import { decodeUtf8, parseJson } from '../json/parse.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../json/types.ts';
import { checkNoContext } from '../schema.ts';
import { checkDeviceStateChanged, type DeviceStateChanged } from './device-state-changed.ts';
import { checkDirectMessage, type DirectMessage } from './direct.ts';

/** The business objects of messages, by type name without the service word. */
export interface Contents {
  'message.direct': DirectMessage;
  'contact.consent': ContactConsent;
  'contact.grant': ContactGrant;
  'account.contacts.sync': AccountContactSync;
  'device.state.changed': DeviceStateChanged;
  'account.group.state.request': AccountGroupPrivateStateRequest;
  'account.group.state.sync': AccountGroupPrivateStateSync;
  'account.group.history_secret.sync': AccountGroupHistorySecretSync;
}
export type ContentName = keyof Contents;

/** A plaintext that was read. */
export type ParsedContent =
  | {
      [N in ContentName]: {
        readonly kind: 'known';
        readonly name: N;
        readonly content: Contents[N];
      };
    }[ContentName]
  /** May be kept as an ordinary application message; never changes protocol state. */
  | { readonly kind: 'unknown'; readonly type: string; readonly content: JsonObject }
  | { readonly kind: 'invalid'; readonly reason: ProtocolError };

type Check = (network: Network, value: unknown, own: { readonly account: string }) => void;

const checks: Readonly<Record<ContentName, Check>> = {
  'message.direct': (network, value) => checkDirectMessage(network, value),
  'contact.consent': (network, value) => checkConsent(network, value),
  'contact.grant': (network, value) => checkGrant(network, value),
  'account.contacts.sync': (network, value, own) => checkContactSync(network, value, own),
  'device.state.changed': (network, value) => checkDeviceStateChanged(network, value),
  'account.group.state.request': (network, value) => checkGroupStateRequest(network, value),
  'account.group.state.sync': (network, value) => checkGroupStateSync(network, value),
  'account.group.history_secret.sync': (network, value) =>
    checkGroupHistorySecretSync(network, value),
};

/** Names of all business objects of messages. */
export const contentNames = Object.keys(checks) as ContentName[];

/**
 * Returns the name of a value's business object, by its complete `$type` alone (01 Y1, Y2, Y7);
 * `undefined` for a type that is none of them.
 *
 * @throws ProtocolError `bad_request` for what is no object with a text as `$type`
 */
export function contentName(network: Network, value: JsonValue): ContentName | undefined {
  assertTyped(value);
  return contentNames.find((known) => network.type(known) === value.$type);
}

function assertTyped(value: JsonValue): asserts value is JsonObject & { readonly $type: string } {
  if (!isJsonObject(value) || typeof value.$type !== 'string') {
    throw badRequest('$type', 'expected an object with a $type');
  }
}

/**
 * Reads an authenticated plaintext and checks the format of its object by `$type`. Signatures
 * inside the object, its bindings to the envelope and the state it needs are checked by its own
 * functions.
 *
 * @param own.account the reading account
 * @example
 * const parsed = parseContent(network, plaintext, { account });
 * if (parsed.kind === 'known' && parsed.name === 'message.direct') {
 *   console.log(parsed.content.body?.text);
 * }
 */
export function parseContent(
  network: Network,
  plaintext: Uint8Array,
  own: { readonly account: string },
): ParsedContent {
  try {
    const content = parseJson(decodeUtf8(plaintext));
    assertTyped(content);
    const name = contentName(network, content);
    if (name === undefined) {
      checkNoContext(content);
      return { kind: 'unknown', type: content.$type, content };
    }
    checks[name](network, content, own);
    return { kind: 'known', name, content } as unknown as ParsedContent;
  } catch (error) {
    if (error instanceof ProtocolError) return { kind: 'invalid', reason: error };
    if (error instanceof JsonError) {
      return { kind: 'invalid', reason: new ProtocolError('bad_request', error.message) };
    }
    throw error;
  }
}

/** The direction of a message for the account that reads it. */
export type MessageDirection = 'self' | 'received' | 'sent';

/**
 * Returns the direction of an envelope for an account; `undefined` if it has no part in it.
 *
 * @example
 * messageDirection({ from: account, to: account }, account); // 'self'
 */
export function messageDirection(
  envelope: { readonly from: string; readonly to: string },
  account: string,
): MessageDirection | undefined {
  if (envelope.from === account) return envelope.to === account ? 'self' : 'sent';
  return envelope.to === account ? 'received' : undefined;
}

/** Whether content may be used, and what must be confirmed before it is. */
export type Admission =
  /** Not permitted in this direction. */
  | { readonly admit: 'refuse' }
  | {
      /** `apply` under the object's rules; `store` as a message, without any effect on state. */
      readonly admit: 'apply' | 'store';
      readonly requires: AdmissionCondition;
    };

export type AdmissionCondition =
  /** Envelope signature and authentication, which every message needs, are enough. */
  | 'nothing'
  /** The sending device is still a currently valid device of the own account. */
  | 'current-device'
  /** A valid, unexpired grant that this account issued to the sender is still kept here. */
  | 'issued-grant'
  /** The rules of contact consents, which need no grant (03 §15). */
  | 'consent-rules';

const selfDelivered: ReadonlySet<ContentName> = new Set<ContentName>([
  'message.direct',
  'account.contacts.sync',
  'account.group.state.request',
  'account.group.state.sync',
  'account.group.history_secret.sync',
]);

const fromContacts: ReadonlySet<ContentName> = new Set<ContentName>([
  'message.direct',
  'contact.grant',
  'device.state.changed',
]);

/**
 * Decides whether content may take effect in a direction.
 *
 * A message that this account sent is a record of another own device's action: it is stored, and
 * the client may draw conclusions from it. Objects for the own account alone are refused in a
 * message to another account.
 *
 * @param content.name `undefined` for an unknown type
 * @example
 * admitContent({ direction: 'received', name: 'contact.grant' });
 * // { admit: 'apply', requires: 'issued-grant' }
 */
export function admitContent(content: {
  readonly direction: MessageDirection;
  readonly name: ContentName | undefined;
}): Admission {
  const { direction, name } = content;
  if (direction === 'self') {
    if (name === undefined) return { admit: 'store', requires: 'nothing' };
    if (selfDelivered.has(name)) return { admit: 'apply', requires: 'current-device' };
    return { admit: 'refuse' };
  }
  if (name !== undefined && name !== 'contact.consent' && !fromContacts.has(name)) {
    return { admit: 'refuse' };
  }
  if (direction === 'sent') return { admit: 'store', requires: 'nothing' };
  if (name === undefined) return { admit: 'store', requires: 'issued-grant' };
  if (name === 'contact.consent') return { admit: 'apply', requires: 'consent-rules' };
  return { admit: 'apply', requires: 'issued-grant' };
}
