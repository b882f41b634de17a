import { checkAuthorizationUse, envelopeSignatures, ProtocolError } from '@posthouse/protocol';
import { type Access, parseCertificate, verifyAuthorization } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { deliveryJobName } from '../delivery.ts';
import { deliveryStatus } from '../delivery-status.ts';
import { checkCreatedAt } from '../rules.ts';
import { readSubmission } from '../send-request.ts';
import { accept, lookUp, type Seen, type Sending } from '../send-transaction.ts';

/** `message.send` (04 section 12). */
export const messageSend: Handler<'message.send'> = async (context, call) => {
  const submission = readSubmission(context, call.params);
  const session = call.session;
  const { envelope } = submission;
  // Before anything is looked up, so that nobody reads the result of another account's message.
  if (envelope.from !== session.account || envelope.from_device_id !== session.deviceId) {
    throw new ProtocolError('forbidden', 'the envelope is not of the calling device');
  }
  const sending: Sending = { submission, session, now: context.clock.now() };
  const seen = await context.storage.read((tx) => lookUp(context, tx, sending));
  if (seen.repeat !== undefined) return { result: deliveryStatus(seen.repeat) };
  const access = await checkNew(context, sending, seen);
  const aggregates = new Set([`account:${envelope.from}`, `account:${envelope.to}`]);
  const { result, notices } = await context.storage.write([...aggregates], (tx) =>
    accept(context, tx, { ...sending, access }),
  );
  if (result.status === 'delivering') context.jobs.wake(deliveryJobName);
  return { result: deliveryStatus(result), notices };
};

/**
 * Steps 6 and 7: what a new request must bring, as far as it can be checked outside of the
 * transaction. Whether the recipient's state bears it is decided inside, or at delivery.
 *
 * @returns the proven access to a recipient at home here
 */
async function checkNew(
  context: RelayContext,
  { submission, now }: Sending,
  { device, isLocal }: Seen,
): Promise<Access | undefined> {
  const { network, limits, verifier } = context;
  const { envelope, authorization } = submission;
  const certificate = parseCertificate(device.certificate);
  await verifier.verify(envelopeSignatures(network, envelope, certificate), 'envelope');
  checkCreatedAt(envelope.created_at, now, limits);
  const use = { target: envelope.to, requester: envelope.from, now };
  if (isLocal) return await verifyAuthorization(context, authorization, use);
  if (authorization !== undefined) checkAuthorizationUse(network, authorization, use);
  return undefined;
}
