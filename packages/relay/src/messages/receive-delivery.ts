/** The receiving side of `message.deliver` (07 §C8, 04 section 13). */
import { type DeliverRequest, deviceCertificateSignatures } from '@posthouse/protocol';
import {
  type Access,
  homeOf,
  locate,
  requireHome,
  verifyAuthorization,
} from '../accounts/index.ts';
import { requireUnblocked } from '../blocks/index.ts';
import type { Home, RelayContext } from '../context.ts';
import type { PeerRelay } from '../dispatch/relay-handler.ts';
import type { Writer } from '../storage/types.ts';
import { appendRecord, storeMessage } from './append.ts';
import { receiveHot } from './hot-receive.ts';
import { verifyEnvelope } from './message-parts.ts';
import { checkReceipt, type Receipt, type Reception } from './receipt.ts';
import { insertReceived, readPriorResults } from './received-store.ts';
import { noteAccepted } from './recent-messages.ts';
import { checkRepeat, recordDeadline, resultDeadline } from './rules.ts';

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
  const receipt = checkReceipt(context, params);
  const hot = await receiveHot(context, receipt);
  const reception = hot ?? (await acceptDelivery(context, receipt, peer));
  noteAccepted(context, receipt.key);
  return reception;
}

/** Accepts a message in the general way; {@link receiveDelivery} says how. */
async function acceptDelivery(
  context: RelayContext,
  receipt: Receipt,
  peer: PeerRelay,
): Promise<Reception> {
  const { identity, storage } = context;
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

/** Checks a new message as far as possible outside of the transaction. */
async function checkNew(
  context: RelayContext,
  receipt: Receipt,
  { peer, home }: { readonly peer: PeerRelay; readonly home: Home },
): Promise<Access> {
  const { network, verifier } = context;
  const { authorization, certificate, envelope, message, now } = receipt;
  const { from: requester, to: target } = envelope;
  if (home.kind !== 'local') {
    requireHome(await locate(context, target, { now, asker: `relay ${peer.relayId}` }));
  }
  const signatures = () => deviceCertificateSignatures(network, certificate);
  await verifier.verifyOnce(message.certificate.text, signatures, 'certificate');
  await verifyEnvelope(context, receipt, { certificate, now });
  requireUnblocked(context, requester, target);
  return await verifyAuthorization(context, authorization, { target, requester, now });
}

/** Accepts a message in one transaction: every check that depends on state, and every effect. */
async function accept(
  { identity, limits }: RelayContext,
  tx: Writer,
  { receipt, access }: { readonly receipt: Receipt; readonly access: Access | undefined },
): Promise<Reception> {
  const { content, digest: request, envelope, key, message, now } = receipt;
  const prior = await readPriorResults(tx, key);
  const repeat = checkRepeat(prior.received, request);
  if (repeat !== undefined) return { acceptedAt: repeat.acceptedAt, notices: [] };
  const record = async (acceptedAt: number) => {
    const keepUntil = resultDeadline(envelope.created_at, acceptedAt, limits);
    await tx.run(...insertReceived(key, { request, content, acceptedAt, keepUntil }));
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
  await storeMessage(tx, message, times.keepUntil);
  const boxes = receipt.recipientBoxes;
  const notice = await appendRecord(tx, message, { account, boxes, access, ...times });
  await record(now);
  return { acceptedAt: now, notices: [notice] };
}
