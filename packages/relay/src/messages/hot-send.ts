/**
 * The short way of `message.send`, for the common case: both accounts are at home here, and what is
 * remembered of them permits the message. It accepts or decides nothing.
 */
import { checkAuthorizationUse, ProtocolError } from '@posthouse/protocol';
import { type Access, homeFrom, isKnownGrant, verifySigned } from '../accounts/index.ts';
import { isBlocked } from '../blocks/index.ts';
import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import type { AccountFacts, KnownDevice } from '../known-accounts.ts';
import { sentMessages } from './append-sent.ts';
import { type MessageParts, verifyEnvelope } from './message-parts.ts';
import { noteAccepted, wasAccepted } from './recent-messages.ts';
import { certificateDeadline, recordDeadline, resultDeadline, visibleBoxes } from './rules.ts';
import type { CheckedSendRequest } from './send-request.ts';
import type { SentMessage } from './sent-message.ts';
import type { StoredResult } from './store.ts';

/** An accepted message. */
export interface AcceptedMessage {
  readonly result: Pick<StoredResult, 'status' | 'acceptedAt'>;
  readonly notices: readonly Notice[];
}

/** The two accounts of a message, one of which may be both. */
interface Parties {
  readonly sender: AccountFacts;
  readonly recipient: AccountFacts;
  readonly signer: KnownDevice;
}

/** Until when the certificate of a device in memory is stored, Unix seconds. */
const storedUntil = new WeakMap<KnownDevice, number>();

/**
 * Accepts a message by what is remembered of its accounts, in one small write.
 *
 * @returns `undefined` for a repeat and for all that the common case is not, also if it has to be
 *   refused: nothing was written, and `acceptMessage` decides
 */
export async function sendHot(
  context: RelayContext,
  request: CheckedSendRequest,
): Promise<AcceptedMessage | undefined> {
  const { from: sender, message_id: messageId } = request.envelope;
  if (wasAccepted(context, { sender, messageId })) return undefined;
  const found = findParties(context, request);
  const parties = found instanceof Promise ? await found : found;
  if (parties === undefined || !(await isPermitted(context, request, parties))) return undefined;
  const message = messageOf(context, request, parties);
  if (message === undefined) return undefined;
  const sequences = await context.storage.append(sentMessages, message);
  if (sequences === undefined) return undefined;
  noteAccepted(context, message.key);
  const { certificateKeepUntil: until, result } = message;
  if (until !== undefined) storedUntil.set(parties.signer, until);
  const notices = message.records.map(({ account }, index): Notice => {
    const facts = account === parties.sender.account ? parties.sender : parties.recipient;
    const deviceIds = [...currentDevices(facts, request.now).keys()];
    return { kind: 'timeline', account, head: sequences[index] as number, deviceIds };
  });
  return { result, notices };
}

/** Finds the accounts, if both are at home here, and the calling device, if it is valid. */
function findParties(
  context: RelayContext,
  request: CheckedSendRequest,
): Parties | undefined | Promise<Parties | undefined> {
  const { knownAccounts } = context;
  const { from, to } = request.envelope;
  const sender = knownAccounts.find(from);
  const recipient = from === to ? sender : knownAccounts.find(to);
  // In memory, nearly always.
  if (!(sender instanceof Promise || recipient instanceof Promise)) {
    return partiesOf(context, request, [sender, recipient]);
  }
  return Promise.all([sender, recipient]).then((facts) => partiesOf(context, request, facts));
}

function partiesOf(
  { identity }: RelayContext,
  { session, now }: CheckedSendRequest,
  [sender, recipient]: readonly [AccountFacts | undefined, AccountFacts | undefined],
): Parties | undefined {
  const isHere = (facts: AccountFacts | undefined): facts is AccountFacts =>
    facts !== undefined && homeFrom(facts.home, identity.relayId, now).kind === 'local';
  if (!isHere(sender) || !isHere(recipient)) return undefined;
  const signer = sender.devices.get(session.deviceId);
  return signer !== undefined && isValid(signer, now) ? { sender, recipient, signer } : undefined;
}

/** Verifies what needs no storage: signature and age of the envelope, and the authorization. */
async function isPermitted(
  context: RelayContext,
  request: CheckedSendRequest,
  { sender, recipient, signer }: Parties,
): Promise<boolean> {
  try {
    await verifyEnvelope(context, request, { certificate: signer, now: request.now });
    if (sender === recipient) return true;
    const authorized = isAuthorized(context, request, recipient);
    return authorized instanceof Promise ? await authorized : authorized;
  } catch (error) {
    return notPermitted(error);
  }
}

/**
 * Returns false for a refusal: one that comes before it may apply.
 *
 * @throws any other error
 */
export function notPermitted(error: unknown): false {
  if (error instanceof ProtocolError) return false;
  throw error;
}

/**
 * Returns whether the recipient of a message permits it, by what is remembered of it.
 *
 * @throws ProtocolError for a refusal, at once or as a rejection
 */
export function isAuthorized(
  context: RelayContext,
  {
    envelope: { from: requester, to: target },
    authorization,
    credential: text,
    now,
  }: MessageParts & { readonly now: number },
  recipient: AccountFacts,
): boolean | Promise<boolean> {
  if (isBlocked(context, requester, target)) return false;
  if (authorization === undefined || text === undefined) return recipient.isPublic;
  checkAuthorizationUse(context.network, authorization, { target, requester, now });
  const signed = { authorization, text, devices: currentDevices(recipient, now) };
  return isKnownGrant(context, signed) || verifySigned(context, signed).then(isSigned);
}

const isSigned = (access: Access) => access.kind === 'signed' && access.devices.length > 0;

/** Makes what is written; `undefined` if a set of boxes has none for a valid device. */
function messageOf(
  { knownAccounts, limits }: RelayContext,
  request: CheckedSendRequest,
  { sender, recipient, signer }: Parties,
): SentMessage | undefined {
  const { envelope, senderBoxes, recipientBoxes, now } = request;
  const recordOf = (facts: AccountFacts, boxes: ReadonlyMap<string, string>) => ({
    account: facts.account,
    boxes: visibleBoxes(boxes, currentDevices(facts, now)),
  });
  const records = [
    ...(senderBoxes === undefined ? [] : [recordOf(sender, senderBoxes)]),
    recordOf(recipient, recipientBoxes),
  ];
  if (records.some(({ boxes }) => boxes.size === 0)) return undefined;
  const keepUntil = recordDeadline(now, limits);
  const certificateKeepUntil = certificateDeadline(keepUntil);
  const { deviceId, certificateId, certificate } = signer;
  return {
    key: { sender: envelope.from, messageId: envelope.message_id },
    result: {
      request: request.digest,
      acceptedAt: now,
      status: 'target_accepted',
      keepUntil: resultDeadline(envelope.created_at, now, limits),
      received: request.content,
    },
    facts: sorted(sender, recipient),
    isCurrent: (facts) => knownAccounts.isCurrent(facts),
    envelope: request.storedEnvelope,
    certificate: { id: certificateId, deviceId, text: certificate },
    certificateKeepUntil:
      (storedUntil.get(signer) ?? 0) >= certificateKeepUntil ? undefined : certificateKeepUntil,
    records,
    keepUntil,
  };
}

function sorted(one: AccountFacts, other: AccountFacts): readonly AccountFacts[] {
  if (one === other) return [one];
  return one.account < other.account ? [one, other] : [other, one];
}

/** Returns the devices whose certificate covers `now`, in the order of their IDs. */
export function currentDevices(
  { devices }: AccountFacts,
  now: number,
): ReadonlyMap<string, KnownDevice> {
  for (const device of devices.values()) {
    if (!isValid(device, now)) {
      return new Map([...devices].filter(([, other]) => isValid(other, now)));
    }
  }
  return devices;
}

const isValid = ({ notBefore, expiresAt }: KnownDevice, now: number) =>
  notBefore <= now && now < expiresAt;
