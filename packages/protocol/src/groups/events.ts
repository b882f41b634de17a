/** Events of a group's timeline: what the host wraps around each body (05 §4.3). */
import { badRequest } from '../errors.ts';
import type { Network } from '../identity/network.ts';
import {
  Counter,
  checkPart,
  checkSchema,
  DeviceId,
  memberPath,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import {
  checkGroupBody,
  type GroupChainBody,
  type GroupChainKind,
  isGroupChainKind,
} from './bodies.ts';
import { checkGroupMessageEnvelope, type GroupMessageEnvelope } from './message.ts';

/** One position of the timeline. Only the payload is signed and hashed. */
export const GroupEvent = Type.Object({
  /** Position given by the host; creation is 0, gaps are allowed. */
  sequence: Counter,
  /** Key epoch after the event. */
  epoch: Counter,
  payload: Type.Object({ $type: TypeName }),
  /** Host's Unix seconds; for retention only, never for order. */
  accepted_at: UnixSeconds,
  /** Absent on rotations the relay makes itself. */
  signer_device_id: Type.Optional(DeviceId),
});
export type GroupEvent = Static<typeof GroupEvent>;

/** The content of an event, by kind. */
export type GroupEventContent =
  | GroupChainBody
  /** A relay secret was replaced by the host; no chain role (05 §7.3). */
  | { readonly kind: 'group.key.rotated' }
  | { readonly kind: 'group.message'; readonly body: GroupMessageEnvelope }
  /** A type of the future: pauses the projection, it cannot be stepped over (05 §5.5). */
  | { readonly kind: 'unknown'; readonly type: string };

/**
 * Returns the kind of a `$type`: the part after the service word, or `undefined` for another
 * service word.
 */
function groupKind(network: Network, type: string): string | undefined {
  const prefix = network.type('');
  return type.startsWith(prefix) ? type.slice(prefix.length) : undefined;
}

/**
 * Checks an event: outer members, and the body by its `$type`. Signatures, neighbouring events and
 * rights are not checked.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` for a message over its limit
 * @example
 * const { event, content } = checkGroupEvent(network, value);
 * if (content.kind === 'group.message') console.log(event.sequence, content.body.message_id);
 */
export function checkGroupEvent(
  network: Network,
  value: unknown,
  path = '',
): { readonly event: GroupEvent; readonly content: GroupEventContent } {
  checkSchema(GroupEvent, value, path);
  checkPart(value, path);
  return { event: value, content: readGroupPayload(network, value, path) };
}

/**
 * Checks the body of an event whose outer members were checked, and that it has a signer if its
 * kind asks for one.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` for a message over its limit
 */
export function readGroupPayload(
  network: Network,
  event: GroupEvent,
  path = '',
): GroupEventContent {
  const content = readBody(network, event.payload, memberPath(path, 'payload'));
  const relayMade = content.kind === 'group.key.rotated';
  const signed = event.signer_device_id !== undefined;
  if (content.kind !== 'unknown' && signed === relayMade) {
    const expected = relayMade ? 'not allowed on a rotation of the relay' : 'missing';
    throw badRequest(memberPath(path, 'signer_device_id'), expected);
  }
  return content;
}

/**
 * Returns the payload of a rotation the relay makes itself.
 *
 * @example
 * const payload = createKeyRotated(network); // { $type: 'svc.group.key.rotated' }
 */
export function createKeyRotated(network: Network): GroupEvent['payload'] {
  return { $type: network.type('group.key.rotated') };
}

function readBody(
  network: Network,
  payload: GroupEvent['payload'],
  path: string,
): GroupEventContent {
  const kind = groupKind(network, payload.$type);
  if (kind === 'group.message') {
    checkGroupMessageEnvelope(network, payload, path);
    return { kind, body: payload };
  }
  if (kind === 'group.key.rotated') {
    // This body is not signed, so it can have no further members (05 §4.3).
    if (Object.keys(payload).length !== 1) throw badRequest(path, 'has members besides $type');
    return { kind };
  }
  if (kind !== undefined && isGroupChainKind(kind)) {
    return checkGroupBody<GroupChainKind>(network, kind, payload, path);
  }
  checkPart(payload, path);
  return { kind: 'unknown', type: payload.$type };
}
