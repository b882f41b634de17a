/** Operations on the objects of identity and of contacts. */
import { verifySignatures } from '../../src/crypto/index.ts';
import {
  type AccountDeviceState,
  accountAuthInput,
  type ContactGrant,
  type ContactInvite,
  checkRouteDraft,
  type DeviceCertificate,
  deriveDeviceId,
  descriptorAddresses,
  descriptorSignatures,
  deviceAuthInput,
  deviceCertificateSignatures,
  deviceStateSignatures,
  inviteSignatures,
  profileSignatures,
  type RelayEntry,
  routeDraftSignatures,
  routeSignatures,
  validGrantDevices,
  verifyDescriptor,
  verifyDeviceCertificate,
  verifyDeviceState,
  verifyGrant,
  verifyInvite,
  verifyProfile,
  verifyRoute,
} from '../../src/index.ts';
import { input, type Operation, operation, signed } from './operation.ts';

export const identity: Record<string, Operation> = {
  'certificate.verify': operation<{ certificate: unknown }>((net, { certificate }) => {
    verifyDeviceCertificate(net, certificate);
    return {
      device_id: deriveDeviceId(net, certificate),
      signed: signed(net, deviceCertificateSignatures(net, certificate)),
    };
  }),
  'device_state.verify': operation<{ state: unknown }>((net, { state }) => {
    verifyDeviceState(net, state);
    return {
      device_ids: state.certificates.map((certificate) => deriveDeviceId(net, certificate)),
      hash: net.hash(state),
      signed: signed(net, deviceStateSignatures(net, state)),
    };
  }),
  'profile.verify': operation<{ profile: unknown; certificate: DeviceCertificate }>(
    (net, { profile, certificate }) => {
      verifyDeviceCertificate(net, certificate);
      verifyProfile(net, profile, certificate);
      return { signed: signed(net, profileSignatures(net, profile, certificate)) };
    },
  ),
  'route_draft.verify': operation<{ route: unknown }>((net, { route }) => {
    checkRouteDraft(net, route);
    verifySignatures(net.primitives, routeDraftSignatures(net, route), 'route');
    return { signed: signed(net, routeDraftSignatures(net, route)) };
  }),
  'route.verify': operation<{ route: unknown; relay_public_key: string }>(
    (net, { route, relay_public_key }) => {
      verifyRoute(net, route, { relayPublicKey: relay_public_key });
      return { signed: signed(net, routeSignatures(net, route, relay_public_key)) };
    },
  ),
  'descriptor.verify': operation<{ descriptor: unknown; entry: RelayEntry; now: number }>(
    (net, { descriptor, entry, now }) => {
      verifyDescriptor(net, descriptor, { entry, now });
      return {
        ...descriptorAddresses(descriptor),
        signed: signed(net, descriptorSignatures(net, descriptor)),
      };
    },
  ),
  'auth.device_input': operation<Parameters<typeof deviceAuthInput>[1]>((net, facts) =>
    input(net, deviceAuthInput(net, facts)),
  ),
  'auth.account_input': operation<Parameters<typeof accountAuthInput>[1]>((net, facts) =>
    input(net, accountAuthInput(net, facts)),
  ),
};

interface Devices {
  state: AccountDeviceState;
  now: number;
}

export const contacts: Record<string, Operation> = {
  'grant.verify': operation<{ grant: unknown; grantor?: string; grantee?: string } & Devices>(
    (net, { grant, ...expected }) => {
      verifyDeviceState(net, expected.state);
      verifyGrant(net, grant, expected);
      const { signatures: _signatures, ...body } = grant as ContactGrant;
      return { devices: validGrantDevices(net, grant, expected), ...input(net, net.bytes(body)) };
    },
  ),
  'invite.verify': operation<{ invite: unknown; inviter?: string } & Devices>(
    (net, { invite, ...expected }) => {
      verifyDeviceState(net, expected.state);
      verifyInvite(net, invite, expected);
      return { signed: signed(net, inviteSignatures(net, invite as ContactInvite, expected)) };
    },
  ),
};
