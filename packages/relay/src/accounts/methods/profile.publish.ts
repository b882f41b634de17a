import { checkProfile, ProtocolError, profileSignatures } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { DeviceSession } from '../../sessions/session.ts';
import type { Reader } from '../../storage/types.ts';
import { parseCertificate } from '../devices.ts';
import { homeOf } from '../home.ts';
import { checkTime, requireHome } from '../rules.ts';
import { type Device, readCurrentDevice, readProfile, writeProfile } from '../store.ts';

/** `profile.publish` (03 section 7). */
export const profilePublish: Handler<'profile.publish'> = async (context, call) => {
  const { network, clock, limits, storage, verifier } = context;
  const { params: profile } = call;
  const session = call.session;
  checkProfile(network, profile);
  if (profile.account !== session.account) {
    throw new ProtocolError('forbidden', 'profile of another account than the calling one');
  }
  const now = clock.now();
  const signer = await storage.read((tx) => requireSigner(context, tx, { session, now }));
  const certificate = parseCertificate(signer.certificate);
  await verifier.verify(profileSignatures(network, profile, certificate), 'profile');
  checkTime(profile.updated_at, now, { ahead: limits.futureTolerance });
  const stored = {
    updatedAt: profile.updated_at,
    publicDiscovery: profile.public_discovery,
    text: canonicalJson(profile),
  };
  return await storage.write(`account:${session.account}`, async (tx) => {
    // Home and device as they are now, with a certificate that may have been renewed meanwhile.
    const device = await requireSigner(context, tx, { session, now });
    const before = await readProfile(tx, session.account);
    if (before !== undefined && stored.updatedAt < before.updatedAt) {
      throw new ProtocolError('stale_state', 'a later profile is stored');
    }
    await writeProfile(tx, session.account, { ...stored, certificate: device.certificate });
    return { result: null };
  });
};

async function requireSigner(
  context: RelayContext,
  tx: Reader,
  { session, now }: { readonly session: DeviceSession; readonly now: number },
): Promise<Device> {
  requireHome(await homeOf(tx, session.account, context.identity.relayId, now));
  const device = await readCurrentDevice(tx, session, now);
  if (device === undefined)
    throw new ProtocolError('device_unknown', 'signing device is not valid');
  return device;
}
