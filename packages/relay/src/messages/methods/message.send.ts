import { checkAuthorizationUse } from '@posthouse/protocol';
import { parseCertificate, verifyAuthorization } from '../../accounts/index.ts';
import { requireUnblocked } from '../../blocks/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { Writer } from '../../storage/types.ts';
import { deliveryStatus } from '../delivery-status.ts';
import { sendHot } from '../hot-send.ts';
import { verifyEnvelope } from '../message-parts.ts';
import { deliveryJobName } from '../rules.ts';
import { type CheckedSendRequest, checkCall } from '../send-request.ts';
import { acceptMessage, findPrior, type Prior, type RecipientPath } from '../send-transaction.ts';

/** `message.send` (04 section 12). */
export const messageSend: Handler<'message.send'> = async (context, call) => {
  const request = checkCall(context, call);
  const accepted = await sendHot(context, request);
  if (accepted === undefined) return await sendAny(context, request);
  return { result: deliveryStatus(accepted.result), notices: accepted.notices };
};

/** Answers every request, in the order of checks that the chapter prescribes. */
async function sendAny(context: RelayContext, request: CheckedSendRequest): Promise<HandlerResult> {
  const { jobs, storage } = context;
  const prior = await storage.read((tx) => findPrior(context, tx, request));
  const { from, to } = request.envelope;
  const aggregates = [...new Set([`account:${from}`, `account:${to}`] as const)];
  const { repeat } = prior;
  if (repeat !== undefined) {
    // Read again by a write: it publishes what the first call may not have published.
    const read = (tx: Writer) => findPrior(context, tx, request);
    const again = await storage.write(aggregates, read, { keepsFacts: true });
    return { result: deliveryStatus(again.repeat ?? repeat) };
  }
  const path = await checkNew(context, request, prior);
  const { result, notices } = await storage.write(
    aggregates,
    (tx) => acceptMessage(context, tx, { request, path }),
    { keepsFacts: true },
  );
  if (result.status === 'delivering') jobs.wake(deliveryJobName);
  return { result: deliveryStatus(result), notices };
}

/**
 * Checks a new request as far as possible outside of the transaction (04 section 12.1, steps 6 and
 * 7) and chooses its path to the recipient. The recipient's state is checked in the transaction, or
 * at delivery.
 *
 * @throws ProtocolError `invalid_signature`, `clock_skew`, `message_expired`, `forbidden`
 */
async function checkNew(
  context: RelayContext,
  request: CheckedSendRequest,
  { device, recipientHome, isReceived }: Prior,
): Promise<RecipientPath> {
  const { network } = context;
  const { envelope, authorization, now } = request;
  const certificate = parseCertificate(device.certificate);
  await verifyEnvelope(context, request, { certificate, now });
  const { from: requester, to: target } = envelope;
  if (target === requester) return { kind: 'timeline', access: { kind: 'own' } };
  // The recipient has it: its state decides nothing any more.
  if (isReceived) return { kind: 'queue' };
  const use = { target, requester, now };
  if (recipientHome.kind === 'local') {
    requireUnblocked(context, target);
    return { kind: 'timeline', access: await verifyAuthorization(context, authorization, use) };
  }
  if (authorization !== undefined) checkAuthorizationUse(network, authorization, use);
  return { kind: 'queue' };
}
