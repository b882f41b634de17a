/** The receiving side of `message.deliver` (07 §C8, 04 section 13). */
import {
  type DeliverRequest,
  type DeviceCertificate,
  deviceCertificateSignatures,
  readDeliverRequest,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import {
  type Access,
  homeOf,
  locate,
  requireHome,
  verifyAuthorization,
} from '../accounts/index.ts';
import type { Home, RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { PeerRelay } from '../dispatch/relay-handler.ts';
import type { Writer } from '../storage/types.ts';
import { appendRecord, type StoredMessage, storeMessage } from './append.ts';
import { type MessageParts, messageParts, verifyEnvelope } from './message-parts.ts';
import { insertReceived, readPriorResults } from './received-store.ts';
import { checkRepeat, recordDeadline, resultDeadline } from './rules.ts';
import type { MessageKey } from './store.ts';

/** A `message.deliver` that passed every check that needs no storage. */
interface Receipt extends MessageParts {
  readonly key: MessageKey;
  readonly certificate: DeviceCertificate;
  readonly certificateText: string;
  /** Time of the request, Unix seconds. */
  readonly now: number;
}

/** Time of the acceptance, and what it changed. */
export interface Reception {
  /** Unix seconds. */
  readonly acceptedAt: number;
  readonly notices: readonly Notice[];
}

/**
 * Accepts a message of another relay for an account at home here, once. The order is that of 07
 * §C8: parameters; earlier acceptance, which holds even after the account moved away; home;
 * signatures; age; access; devices.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `state_conflict`, `route_stale`,
 *   `target_not_local`, `invalid_state`, `invalid_signature`, `clock_skew`, `message_expired`,
 *   `forbidden`, `device_unknown`; nothing is stored then
 */
export async function receiveDelivery(
  context: RelayContext,
  params: DeliverRequest,
  peer: PeerRelay,
): Promise<Reception> {
  const { identity, storage } = context;
  const receipt = checkReceipt(context, params);
  const { from, to } = receipt.envelope;
  const { isKnown, home } = await storage.read(async (tx) => {
    const prior = await readPriorResults(tx, receipt.key);
    return {
      isKnown: checkRepeat(prior.received, receipt.digest) ?? prior.contents.has(receipt.content),
      home: await homeOf(tx, to, identity.relayId, receipt.now),
    };
  });
  const access = isKnown ? undefined : await checkNew(context, receipt, { peer, home });
  return await storage.write(
    [`account:${from}`, `account:${to}`],
    (tx) => accept(context, tx, { receipt, access }),
    { keepsFacts: true },
  );
}

function checkReceipt({ clock, limits, network }: RelayContext, params: DeliverRequest): Receipt {
  const parts = messageParts(params, readDeliverRequest(network, params), limits);
  const { from: sender, message_id: messageId } = parts.envelope;
  const certificate = params.signer_certificate;
  return {
    ...parts,
    ...{ key: { sender, messageId }, now: clock.now() },
    ...{ certificate, certificateText: canonicalJson(certificate) },
  };
}

/** Checks a new message as far as possible outside of the transaction. */
async function checkNew(
  context: RelayContext,
  receipt: Receipt,
  { peer, home }: { readonly peer: PeerRelay; readonly home: Home },
): Promise<Access> {
  const { network, verifier } = context;
  const { authorization, certificate, certificateText, envelope, now } = receipt;
  const { from: requester, to: target } = envelope;
  if (home.kind !== 'local') {
    requireHome(await locate(context, target, { now, asker: `relay ${peer.relayId}` }));
  }
  const signatures = () => deviceCertificateSignatures(network, certificate);
  await verifier.verifyOnce(certificateText, signatures, 'certificate');
  await verifyEnvelope(context, receipt, { certificate, now });
  return await verifyAuthorization(context, authorization, { target, requester, now });
}

/** Accepts a message in one transaction: every check that depends on state, and every effect. */
async function accept(
  { identity, limits }: RelayContext,
  tx: Writer,
  { receipt, access }: { readonly receipt: Receipt; readonly access: Access | undefined },
): Promise<Reception> {
  const { content, digest: request, envelope, key, now, storedEnvelope } = receipt;
  const prior = await readPriorResults(tx, key);
  const repeat = checkRepeat(prior.received, request);
  if (repeat !== undefined) return { acceptedAt: repeat.acceptedAt, notices: [] };
  const record = async (acceptedAt: number) => {
    const keepUntil = resultDeadline(envelope.created_at, acceptedAt, limits);
    await insertReceived(tx, key, { request, content, acceptedAt, keepUntil });
  };
  const earlier = prior.contents.get(content);
  if (earlier !== undefined) {
    await record(earlier);
    return { acceptedAt: earlier, notices: [] };
  }
  // The result that made the checks unnecessary has expired meanwhile: the source asks again.
  if (access === undefined) throw new Error(`the result of ${key.messageId} has just expired`);
  const { to: account } = envelope;
  requireHome(await homeOf(tx, account, identity.relayId, now));
  const times = { acceptedAt: now, keepUntil: recordDeadline(now, limits) };
  const { certificateText: text } = receipt;
  const deviceId = envelope.from_device_id;
  const message: StoredMessage = {
    envelope: storedEnvelope,
    certificate: { id: digest(text), deviceId, text },
  };
  await storeMessage(tx, message, times.keepUntil);
  const boxes = receipt.recipientBoxes;
  const notice = await appendRecord(tx, message, { account, boxes, access, ...times });
  await record(now);
  return { acceptedAt: now, notices: [notice] };
}
