import {
  checkDeviceCertificate,
  deriveDeviceId,
  deviceAuthInput,
  deviceCertificateSignatures,
  ProtocolError,
} from '@posthouse/protocol';
import { signatureCheck } from '@posthouse/protocol/crypto';
import { canonicalJson } from '@posthouse/protocol/json';
import {
  admitRemoteDevice,
  confirmRemoteDevice,
  currentDevice,
  type DeviceAnswer,
  homeOf,
  inactiveDevicesJobName,
  type PresentedDevice,
} from '../../accounts/index.ts';
import { requireUnblocked } from '../../blocks/index.ts';
import type { RelayContext } from '../../context.ts';
import { digest } from '../../digest.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Notice } from '../../dispatch/notice.ts';
import type { Session } from '../../sessions/session.ts';
import { readSession, revokeSessions } from '../../sessions/session-store.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { consumeChallenge, type VerificationAttempt } from '../challenges.ts';
import { bindOpened, checkRenewal, createSession, type OpenedSession } from '../open-session.ts';
import { checkTimestamp } from '../rules.ts';

/** `auth.device.verify` (02 §9.3): opens a session for a currently valid device of an account. */
export const authDeviceVerify: Handler<'auth.device.verify'> = async (context, call) => {
  const { network, sessions } = context;
  const attempt = await consumeChallenge(context, call, 'auth.device.verify');
  const { account, params } = attempt;
  checkRenewal(call, { mode: 'device', account });
  checkTimestamp(params.timestamp, context.clock.now(), context.limits.authClockTolerance);
  const certificate = params.signer_certificate;
  checkDeviceCertificate(network, certificate, 'signer_certificate');
  if (certificate.account !== account) {
    checkRenewal(call, { mode: 'device', account: certificate.account });
    throw new ProtocolError('unauthorized', 'the challenge was made for another account');
  }
  const deviceId = deriveDeviceId(network, certificate);
  checkRenewal(call, { mode: 'device', account, deviceId });
  await verifyProof(context, attempt, { deviceId, origin: call.origin });
  requireUnblocked(context, account);

  const { changes } = sessions;
  const text = canonicalJson(certificate);
  const opened = await createDeviceSession(context, {
    ...{ account, deviceId, certificate: text, certificateId: digest(text) },
    ...{ origin: call.origin, address: call.address, renewed: call.connection?.bound?.session },
  });
  // A removal or a shorter certificate may commit after the session.
  const result = await bindOpened(sessions, call, { opened, changes });
  if (result === undefined) throw deviceUnknown();
  return { result };
};

/** Verifies the device's proof and its certificate's two signatures, before any read of storage. */
async function verifyProof(
  { network, identity, verifier }: RelayContext,
  { params }: VerificationAttempt<'auth.device.verify'>,
  { deviceId, origin }: { readonly deviceId: string; readonly origin: string },
): Promise<void> {
  const certificate = params.signer_certificate;
  const message = deviceAuthInput(network, {
    relay_id: identity.relayId,
    origin,
    account: certificate.account,
    device_id: deviceId,
    nonce: params.nonce,
    timestamp: params.timestamp,
  });
  const proof = signatureCheck({
    scheme: 'ed25519',
    publicKey: certificate.signing_public_key,
    message,
    signature: params.device_signature,
  });
  await Promise.all([
    verifier.verifyOnce(
      canonicalJson(certificate),
      () => deviceCertificateSignatures(network, certificate),
      'device certificate',
    ),
    verifier.verify([proof], 'device_signature'),
  ]);
}

interface SessionRequest extends PresentedDevice {
  readonly origin: string;
  readonly address: string;
  /** The session of the connection, if there is one. */
  readonly renewed: Session | undefined;
}

/** How often a home relay is asked again because the device or its home changed meanwhile. */
const maxQuestions = 3;

/**
 * Checks the device and stores its session in one transaction, so that no removal can come between
 * the two. The home relay of an account at home elsewhere is asked before, outside of it.
 *
 * @throws ProtocolError `device_unknown`, `unauthorized`; `temporarily_unavailable` and the other
 *   errors of a home relay that has to be asked
 */
async function createDeviceSession(
  context: RelayContext,
  request: SessionRequest,
): Promise<OpenedSession> {
  const { bus, jobs, storage } = context;
  const asker = `address ${request.address}`;
  let answer: DeviceAnswer | undefined;
  for (let questions = 0; ; questions += 1) {
    const opening = { request, answer };
    const outcome = await storage.write(
      `account:${request.account}`,
      (tx) => openSession(context, tx, opening),
      { keepsFacts: true },
    );
    if (outcome.kind === 'superseded') {
      if (questions === maxQuestions) break;
      answer = await confirmRemoteDevice(context, request, { asker });
      continue;
    }
    if (outcome.notices.length > 0) bus.publish(outcome.notices);
    if (outcome.kind === 'opened') return outcome.opened;
    jobs.wake(inactiveDevicesJobName);
    throw deviceUnknown();
  }
  throw new ProtocolError(
    'temporarily_unavailable',
    'the home or the state of the account is changing: try again',
  );
}

type SessionOutcome =
  | {
      readonly kind: 'opened';
      readonly opened: OpenedSession;
      readonly notices: readonly Notice[];
    }
  | { readonly kind: 'unknown'; readonly notices: readonly Notice[] }
  /** The account's home or the device changed since it was looked up. */
  | { readonly kind: 'superseded' };

/**
 * Opens the session of a current device. A session to renew must still be stored: the notice that
 * ended it may have been lost (02 §10.6, rule 4). Sessions that an invalid device still has end now
 * (rule 7).
 */
async function openSession(
  context: RelayContext,
  tx: Writer,
  {
    request,
    answer,
  }: {
    readonly request: SessionRequest;
    readonly answer: DeviceAnswer | undefined;
  },
): Promise<SessionOutcome> {
  const { clock, identity, limits } = context;
  const { account, deviceId, origin, renewed } = request;
  const now = clock.now();
  if (renewed !== undefined && !(await isStored(tx, renewed, now))) {
    throw new ProtocolError('unauthorized', 'the session of the connection ended');
  }
  const open = async (
    end: number,
    notices: readonly Notice[],
    homeRelay?: string,
  ): Promise<SessionOutcome> => {
    const expiresAt = Math.min(now + limits.deviceSessionLifetime, end);
    const home = homeRelay === undefined ? {} : { homeRelay };
    const facts = { mode: 'device', account, deviceId, expiresAt, ...home } as const;
    const created = await createSession(tx, context, { facts, origin, renewed });
    const { opened } = created;
    return { kind: 'opened', opened, notices: [...notices, ...created.notices] };
  };
  if (answer !== undefined) {
    const stored = await admitRemoteDevice(context, tx, { presented: request, answer });
    if (stored.kind === 'active') {
      return await open(stored.expiresAt, stored.notices, answer.relayId);
    }
    return stored.kind === 'inactive' ? { kind: 'unknown', notices: stored.notices } : stored;
  }
  const home = await homeOf(tx, account, identity.relayId, now);
  if (home.kind !== 'local') return { kind: 'superseded' };
  const device = await currentDevice(tx, account, deviceId, now);
  if (device !== undefined) return await open(device.expiresAt, []);
  await revokeSessions(tx, account, [deviceId]);
  return { kind: 'unknown', notices: [{ kind: 'revoked', account, deviceIds: [deviceId] }] };
}

async function isStored(tx: Reader, { id }: Session, now: number): Promise<boolean> {
  const stored = await readSession(tx, id);
  return stored !== undefined && now < stored.session.expiresAt;
}

function deviceUnknown(): ProtocolError {
  return new ProtocolError('device_unknown', 'the device has no current authorization');
}
