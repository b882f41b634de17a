/**
 * The part of a chain that a host lost when it was put back to an earlier state, as the group's owner
 * hands it back: the member `restore` of a `group.update` or `group.close` (05 §5.6).
 */
import {
  checkGroupEvent,
  checkGroupSecretBox,
  checkGroupSyncPage,
  deviceSignatures,
  type GroupEvent,
  type GroupEventContent,
  groupSyncPageSignatures,
  ProtocolError,
  type VerifiedGroupEvent,
} from '@posthouse/protocol';
import { canonicalJson, isJsonObject } from '@posthouse/protocol/json';
import { deviceSigner, type Signer } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';

/** An event that was handed back, its signature verified. */
export interface HandedBackEvent {
  readonly verified: VerifiedGroupEvent;
  /** Absent for a rotation that this relay made. */
  readonly signer: Signer | undefined;
}

/** What the owner hands back, verified; rights and order are checked in the transaction. */
export interface HandedBack {
  readonly events: readonly HandedBackEvent[];
  /** Canonical JSON of client secret boxes, by account. */
  readonly boxes: ReadonlyMap<string, string>;
}

/** Returns whether an event hands a lost part of the chain back. */
export function handsBack(body: object): boolean {
  return Object.hasOwn(body, 'restore');
}

/**
 * Checks what an event hands back, and verifies its certificates and signatures.
 *
 * @param payer account that pays for the signatures
 * @throws ProtocolError `bad_request`, `invalid_signature`
 */
export async function verifyHandedBack(
  { network, verifier }: RelayContext,
  body: object,
  payer: string,
): Promise<HandedBack> {
  const { restore } = body as { readonly restore?: unknown };
  if (!isJsonObject(restore)) throw wrong('is no object');
  const { events, certificates, client_secret_boxes: boxes } = restore;
  const page = { events, certificates, has_more: false };
  const signers = checkGroupSyncPage(network, page, { after: -1 });
  // One after another: a payer's checks that wait are limited, and others have their turns between.
  for (const check of groupSyncPageSignatures(network, signers)) {
    await verifier.verify([check], 'restore.certificates', payer);
  }
  const found: { readonly event: GroupEvent; readonly content: GroupEventContent }[] = [];
  for (const [index, event] of (events as unknown as readonly GroupEvent[]).entries()) {
    const { content } = checkGroupEvent(network, event, `restore.events.${index}`);
    if (content.kind === 'unknown' || content.kind === 'group.message') {
      throw wrong(`event ${index} is not of the chain`);
    }
    const certificate = signers.get(event.signer_device_id ?? '');
    if (content.kind !== 'group.key.rotated' && certificate !== undefined) {
      const checks = deviceSignatures(network, content.body, certificate);
      await verifier.verify(checks, 'restore.events', payer);
    }
    found.push({ event, content });
  }
  return {
    events: found.map(({ event, content }) => {
      const certificate = signers.get(event.signer_device_id ?? '');
      if (certificate === undefined) return { verified: { event, content }, signer: undefined };
      const signer = deviceSigner(network, certificate);
      const by = { account: certificate.account, deviceId: signer.deviceId };
      return { verified: { event, content, signer: by }, signer };
    }),
    boxes: boxTexts(boxes),
  };
}

function boxTexts(boxes: unknown): ReadonlyMap<string, string> {
  if (boxes === undefined) return new Map();
  if (!isJsonObject(boxes)) throw wrong('client_secret_boxes is no object');
  return new Map(
    Object.entries(boxes).map(([account, box]) => {
      checkGroupSecretBox(box, `restore.client_secret_boxes.${account}`);
      return [account, canonicalJson(box)] as const;
    }),
  );
}

function wrong(why: string): ProtocolError {
  return new ProtocolError('bad_request', `restore: ${why}`);
}
