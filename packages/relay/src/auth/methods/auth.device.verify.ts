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

/** Opens a session for one currently valid device of an account (02 §9.3). */
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

  let heard = sessions.changes;
  const { origin, connection } = call;
  const renewed = connection?.bound?.session;
  const created = await createDeviceSession(context, { account, deviceId, origin, renewed });
  let session: Session | undefined = created.session;
  // A removal or a shorter certificate that committed after the session did may have been heard of
  // before the session is bound, also while it is read again.
  while (session !== undefined && sessions.changes !== heard) {
    heard = sessions.changes;
    session = await sessions.confirm(created.session);
  }
  if (session === undefined) throw deviceUnknown();
  return { result: bindSession(call, { ...created, session }) };
};

/** The device's proof and its certificate's two signatures, before anything is looked up. */
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
 * Confirms the device and stores its session in one transaction, so that no removal can come
 * between the two. A session to renew must be there still: that it ended elsewhere, no notice may
 * have told (02 §10.6, rule 4).
 */
async function createDeviceSession(
  context: RelayContext,
  who: {
    readonly account: string;
    readonly deviceId: string;
    readonly origin: string;
    readonly renewed: Session | undefined;
  },
): Promise<OpenedSession> {
  const { storage, clock, identity, limits, bus } = context;
  const { account, deviceId, origin, renewed } = who;
  const outcome = await storage.write(`account:${account}`, async (tx) => {
    const now = clock.now();
    const home = await homeOf(tx, account, identity.relayId, now);
    if (home.kind !== 'local') return 'not at home here';
    if (renewed !== undefined && !(await isStored(tx, renewed, now))) return 'over';
    const device = await currentDevice(tx, account, deviceId, now);
    if (device === undefined) {
      // Authentication revealed it: sessions the device still has end now (02 §10.6, rule 7).
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
  throw new ProtocolError('temporarily_unavailable', 'the account is just coming home');
}

async function isStored(tx: Reader, { id }: Session, now: number): Promise<boolean> {
  const stored = await readSession(tx, id);
  return stored !== undefined && now < stored.session.expiresAt;
}

function deviceUnknown(): ProtocolError {
  return new ProtocolError('device_unknown', 'the device has no current authorization');
}
