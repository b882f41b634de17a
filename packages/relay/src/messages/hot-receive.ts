/**
 * The short way of `message.deliver`, for the common case: the recipient is at home here, and what is
 * remembered of it permits the message. It accepts or decides nothing.
 */
import { deviceCertificateSignatures } from '@posthouse/protocol';
import { homeFrom } from '../accounts/index.ts';
import type { RelayContext } from '../context.ts';
import type { AccountFacts } from '../known-accounts.ts';
import { receivedMessages } from './append-received.ts';
import { currentDevices, isAuthorized, notPermitted } from './hot-send.ts';
import { verifyEnvelope } from './message-parts.ts';
import type { Receipt, Reception } from './receipt.ts';
import { wasAccepted } from './recent-messages.ts';
import { certificateDeadline, recordDeadline, resultDeadline, visibleBoxes } from './rules.ts';

/**
 * Accepts a message of another relay by what is remembered of its recipient, in one small write.
 *
 * @returns `undefined` for a repeat and for all that the common case is not, also if it has to be
 *   refused: nothing was written, and `acceptDelivery` decides
 */
export async function receiveHot(
  context: RelayContext,
  receipt: Receipt,
): Promise<Reception | undefined> {
  const { identity, knownAccounts, limits, storage } = context;
  const { content, digest: request, envelope, key, message, now } = receipt;
  if (!storage.appends(receivedMessages) || wasAccepted(context, key)) return undefined;
  const facts = await knownAccounts.find(envelope.to);
  if (facts === undefined || homeFrom(facts.home, identity.relayId, now).kind !== 'local') {
    return undefined;
  }
  if (!(await isPermitted(context, receipt, facts))) return undefined;
  const devices = currentDevices(facts, now);
  const boxes = visibleBoxes(receipt.recipientBoxes, devices);
  if (boxes.size === 0) return undefined;
  const keepUntil = recordDeadline(now, limits);
  const certificateKeepUntil = certificateDeadline(keepUntil);
  const resultUntil = resultDeadline(envelope.created_at, now, limits);
  const sequences = await storage.append(receivedMessages, {
    ...{ ...message, key, facts, boxes, keepUntil, certificateKeepUntil },
    result: { request, content, acceptedAt: now, keepUntil: resultUntil },
    isCurrent: (held) => knownAccounts.isCurrent(held),
  });
  if (sequences === undefined) return undefined;
  const [head] = sequences as readonly [number];
  const { account } = facts;
  const deviceIds = [...devices.keys()];
  return {
    acceptedAt: now,
    notices: [{ kind: 'timeline', account, head, deviceIds }],
  };
}

/** Verifies what needs no storage: certificate, signature and age of the envelope, authorization. */
async function isPermitted(
  context: RelayContext,
  receipt: Receipt,
  recipient: AccountFacts,
): Promise<boolean> {
  const { certificate, message, now } = receipt;
  const { network, verifier } = context;
  const signatures = () => deviceCertificateSignatures(network, certificate);
  try {
    await verifier.verifyOnce(message.certificate.text, signatures, 'certificate');
    await verifyEnvelope(context, receipt, { certificate, now });
    return await isAuthorized(context, receipt, recipient);
  } catch (error) {
    return notPermitted(error);
  }
}
