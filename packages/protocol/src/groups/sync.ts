/** Pages of `group.sync` as a client verifies and applies them (05 §5.4, §5.5, §13.4). */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import { deviceSignatures } from '../identity/device-signed.ts';
import {
  checkDeviceCertificate,
  DeviceCertificate,
  deriveDeviceId,
  deviceCertificateSignatures,
  type Network,
} from '../identity/index.ts';
import { checkPart, checkSchema, type Static, Type } from '../schema.ts';
import type { GroupEffects } from './chain/effects.ts';
import {
  applyGroupEvent,
  decideGroupEvent,
  draftGroup,
  type GroupAnchor,
  type GroupDraft,
  startGroup,
  type VerifiedGroupEvent,
} from './chain/reduce.ts';
import { GroupEvent, readGroupPayload } from './events.ts';
import { checkPageOrder, type GroupPageRequest } from './paging.ts';
import type { GroupProjection } from './projection.ts';

/** Response of `group.sync`. */
export const GroupSyncPage = Type.Object({
  /** In strictly ascending sequence; gaps have no meaning. */
  events: Type.Array(GroupEvent),
  /** Historical certificates of the signing devices, in no particular order. */
  certificates: Type.Array(DeviceCertificate),
  has_more: Type.Boolean(),
});
export type GroupSyncPage = Static<typeof GroupSyncPage>;

/** The certificates of a page by the device IDs that follow from them. */
export type GroupSigners = ReadonlyMap<string, DeviceCertificate>;

/**
 * Checks a page as a whole: order, certificates and references, all but signatures. Bodies are left
 * for later, so that one malformed message does not cost the page.
 *
 * @returns the certificates by device ID
 * @throws ProtocolError `bad_request`, `request_too_large`: the response is refused
 * @example
 * const signers = checkGroupSyncPage(network, value, { after: -1 });
 */
export function checkGroupSyncPage(
  network: Network,
  value: unknown,
  request: GroupPageRequest,
): GroupSigners {
  checkSchema(GroupSyncPage, value, 'page');
  const { events, has_more } = value;
  checkPageOrder(
    { positions: events.map((event) => event.sequence), has_more, name: 'events' },
    request,
  );
  for (const [index, event] of events.entries()) checkPart(event, `events.${index}`);
  const signers = new Map<string, DeviceCertificate>();
  for (const [index, certificate] of value.certificates.entries()) {
    checkDeviceCertificate(network, certificate, `certificates.${index}`);
    const id = deriveDeviceId(network, certificate);
    if (signers.has(id)) throw badRequest(`certificates.${index}`, 'repeats a device');
    signers.set(id, certificate);
  }
  for (const [index, { signer_device_id: id }] of value.events.entries()) {
    if (id !== undefined && !signers.has(id)) {
      throw badRequest(`events.${index}.signer_device_id`, 'refers to no certificate');
    }
  }
  return signers;
}

/**
 * Returns both signatures of every certificate of a page, referred to or not (05 §13.4).
 *
 * @example
 * const checks = groupSyncPageSignatures(network, groupPage.signers);
 */
export function groupSyncPageSignatures(network: Network, signers: GroupSigners): SignatureCheck[] {
  return [...signers.values()].flatMap((each) => deviceCertificateSignatures(network, each));
}

/** A page whose order and certificates were verified. */
export interface VerifiedGroupPage {
  readonly events: readonly GroupEvent[];
  readonly signers: GroupSigners;
  readonly has_more: boolean;
}

/**
 * Checks a page and verifies its certificates; the events are verified as they are applied.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`: refuse the
 *   response
 * @example
 * const page = verifyGroupSyncPage(network, value, { after: group.sequence, limit: 100 });
 * const { outcomes, blocked } = advanceGroup(network, group, page);
 */
export function verifyGroupSyncPage(
  network: Network,
  value: unknown,
  request: GroupPageRequest,
): VerifiedGroupPage {
  const signers = checkGroupSyncPage(network, value, request);
  verifySignatures(network.primitives, groupSyncPageSignatures(network, signers), 'certificates');
  const { events, has_more } = value as GroupSyncPage;
  return { events, signers, has_more };
}

/**
 * Verifies one event: its body, the reference to a certificate, and the signature by that device.
 * Rights and order are the reducer's.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * const { content, signer } = verifyGroupEvent(network, event, groupPage.signers);
 */
export function verifyGroupEvent(
  network: Network,
  event: GroupEvent,
  signers: GroupSigners,
): VerifiedGroupEvent {
  const content = readGroupPayload(network, event);
  if (content.kind === 'group.key.rotated' || content.kind === 'unknown') return { event, content };
  const deviceId = event.signer_device_id;
  const certificate = deviceId === undefined ? undefined : signers.get(deviceId);
  if (deviceId === undefined || certificate === undefined) {
    throw badRequest('signer_device_id', 'refers to no certificate');
  }
  const checks = deviceSignatures(network, content.body, certificate);
  verifySignatures(network.primitives, checks, content.kind);
  return { event, content, signer: { account: certificate.account, deviceId } };
}

/** The result of one event of a page. */
export type GroupOutcome =
  /** A management event that changed the state. */
  | {
      readonly kind: 'applied';
      readonly verified: VerifiedGroupEvent;
      readonly effects: GroupEffects;
    }
  /** A message of a member, its signature verified; still to be decrypted. */
  | { readonly kind: 'message'; readonly verified: VerifiedGroupEvent }
  /** A message to be recorded as rejected; synchronisation goes on (05 §14.2). */
  | { readonly kind: 'rejected'; readonly event: GroupEvent; readonly error: ProtocolError };

/** The state after a page. */
export interface GroupAdvance {
  /** State after the last event that was processed; absent while there is no creation yet. */
  readonly group: GroupProjection | undefined;
  /** One for every processed event, in their order. */
  readonly outcomes: readonly GroupOutcome[];
  /**
   * The management event that could not be applied, and the error: no later event may be processed
   * (05 §5.5). Code `invalid_state` means a type of the future.
   */
  readonly blocked?: { readonly event: GroupEvent; readonly error: ProtocolError };
}

/**
 * Applies a verified page to a state, or to nothing but what is known of the group beforehand.
 * Pure: the state given stays as it is.
 *
 * @param from the state so far, consistent with the page's `after`, or the anchor with `after` -1
 * @example
 * const { group, outcomes, blocked } = advanceGroup(network, anchor, groupPage);
 * if (blocked !== undefined) console.log(blocked.event.sequence, blocked.error.code);
 */
export function advanceGroup(
  network: Network,
  from: GroupProjection | GroupAnchor,
  page: VerifiedGroupPage,
): GroupAdvance {
  const outcomes: GroupOutcome[] = [];
  let group = isProjection(from) ? draftGroup(from) : undefined;
  for (const event of page.events) {
    try {
      const verified = verifyGroupEvent(network, event, page.signers);
      if (group === undefined) {
        const started = startGroup(network, verified, from as GroupAnchor);
        group = draftGroup(started.group);
        outcomes.push({ kind: 'applied', verified, effects: started.effects });
      } else {
        outcomes.push(step(network, group, verified));
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // A message can be rejected alone; after a refused management event no state is certain.
      if (group === undefined || !isMessage(network, event)) {
        return { group, outcomes, blocked: { event, error } };
      }
      outcomes.push({ kind: 'rejected', event, error });
    }
  }
  return { group, outcomes };
}

/** Applies one event to the draft, or throws and leaves it as it was. */
function step(network: Network, group: GroupDraft, verified: VerifiedGroupEvent): GroupOutcome {
  const effects = decideGroupEvent(group, verified);
  applyGroupEvent(network, group, { verified, effects });
  if (verified.content.kind === 'group.message') return { kind: 'message', verified };
  return { kind: 'applied', verified, effects };
}

function isProjection(from: GroupProjection | GroupAnchor): from is GroupProjection {
  return Object.hasOwn(from, 'members');
}

function isMessage(network: Network, { payload }: GroupEvent): boolean {
  return payload.$type === network.type('group.message');
}
