import {
  checkDeviceCertificate,
  deriveDeviceId,
  deviceAuthInput,
  deviceCertificateSignatures,
  ProtocolError,
} from '@posthouse/protocol';
import { signatureCheck } from '@posthouse/protocol/crypto';
import { canonicalJson } from '@posthouse/protocol/json';
import { currentDevice, homeOf, locate, requireAnswerable } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { Session } from '../../sessions/session.ts';
import { readSession, revokeSessions } from '../../sessions/session-store.ts';
import type { Reader } from '../../storage/types.ts';
import { consumeChallenge, type VerificationAttempt } from '../challenges.ts';
import { bindSession, checkRenewal, createSession, type OpenedSession } from '../open-session.ts';
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

  let changes = sessions.changes;
  const { origin, connection } = call;
  const renewed = connection?.bound?.session;
  const created = await createDeviceSession(context, { account, deviceId, origin, renewed });
  let session: Session | undefined = created.session;
  // A removal or a shorter certificate may commit after the session, and its notice may arrive
  // before the session is bound, or while it is read again.
  while (session !== undefined && sessions.changes !== changes) {
    changes = sessions.changes;
    session = await sessions.confirm(created.session);
  }
  if (session === undefined) throw deviceUnknown();
  return { result: bindSession(call, { ...created, session }) };
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

/**
 * Checks the device and stores its session in one transaction, so that no removal can come between
 * the two. A session to renew must still be stored: the notice that ended it may have been lost
 * (02 §10.6, rule 4).
 */
async function createDeviceSession(
  context: RelayContext,
  identity: {
    readonly account: string;
    readonly deviceId: string;
    readonly origin: string;
    readonly renewed: Session | undefined;
  },
): Promise<OpenedSession> {
  const { storage, clock, limits, bus } = context;
  const { account, deviceId, origin, renewed } = identity;
  const outcome = await storage.write(`account:${account}`, async (tx) => {
    const now = clock.now();
    const home = await homeOf(tx, account, context.identity.relayId, now);
    if (home.kind !== 'local') return 'not at home here';
    if (renewed !== undefined && !(await isStored(tx, renewed, now))) return 'over';
    const device = await currentDevice(tx, account, deviceId, now);
    if (device === undefined) {
      // Sessions that the invalid device still has end now (02 §10.6, rule 7).
      await revokeSessions(tx, account, [deviceId]);
      return 'unknown';
    }
    const expiresAt = Math.min(now + limits.deviceSessionLifetime, device.expiresAt);
    return createSession(tx, context, {
      facts: { mode: 'device', account, deviceId, expiresAt },
      origin,
    });
  });
  if (typeof outcome === 'object') return outcome;
  if (outcome === 'over') {
    throw new ProtocolError('unauthorized', 'the session of the connection ended');
  }
  if (outcome === 'unknown') {
    bus.publish([{ kind: 'revoked', account, deviceIds: [deviceId] }]);
    throw deviceUnknown();
  }
  requireAnswerable(await locate(context, account, { now: clock.now() }));
  throw new ProtocolError(
    'temporarily_unavailable',
    'the account is moving to this relay: try again',
  );
}

async function isStored(tx: Reader, { id }: Session, now: number): Promise<boolean> {
  const stored = await readSession(tx, id);
  return stored !== undefined && now < stored.session.expiresAt;
}

function deviceUnknown(): ProtocolError {
  return new ProtocolError('device_unknown', 'the device has no current authorization');
}
