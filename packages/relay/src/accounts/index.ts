import type { HandlersOf } from '../dispatch/handler.ts';
import type { StoredModule } from '../dispatch/module.ts';
import { arrivalsJob } from './arrivals.ts';
import { expiredDevicesJob, routeValuesJob, stagedStatesJob } from './jobs.ts';
import { accountRoutePublish } from './methods/account.route.publish.ts';
import { accountRouteResolve } from './methods/account.route.resolve.ts';
import { deviceStatePublish } from './methods/device.state.publish.ts';
import { deviceStateResolve } from './methods/device.state.resolve.ts';
import { profilePublish } from './methods/profile.publish.ts';
import { profileResolve } from './methods/profile.resolve.ts';
import { migrations } from './migrations.ts';
import { ownRoutesJob } from './own-routes-job.ts';
import { deviceStateResolveForRelay } from './relay-methods/device.state.resolve.ts';
import { deviceStatusChanged } from './relay-methods/device.status.changed.ts';
import { deviceStatus } from './relay-methods/device.status.ts';
import { profileResolveForRelay } from './relay-methods/profile.resolve.ts';
import { remoteDevicesJob } from './remote-devices-job.ts';
import { restored } from './restored.ts';
import { deviceStateResync } from './resync.ts';
import { statusHintsJob } from './status-hints-job.ts';

export {
  type Access,
  isKnownGrant,
  requireAccess,
  verifyAuthorization,
  verifySigned,
} from './access.ts';
export { endAccount } from './account-end.ts';
export {
  type Admitted,
  admitCaller,
  type CallingDevice,
  type SignedByCaller,
  writeAdmitted,
} from './admission.ts';
export { confirmRemoteDevice } from './ask-device.ts';
export {
  type Caller,
  findStillCallers,
  isStillCaller,
  requireCaller,
  requireOwnAccount,
  verifyOwnSignature,
  verifySignature,
} from './caller.ts';
export {
  confirmDevice,
  currentDevice,
  deviceSigner,
  inactiveDevicesJobName,
  parseCertificate,
  requireCallingDevice,
  type Signer,
} from './devices.ts';
export { AccountFactsCache } from './facts.ts';
export { homeOf, isAccountKnown, locate, observeRoute, readUsableRoute } from './home.ts';
export {
  type DeviceKey,
  inactiveDevices,
  isMarkedInactive,
  readInactive,
  unmarkInactive,
} from './inactive-store.ts';
export { wakeRoutesFor } from './missed-relays.ts';
export { remindOfRights } from './remind-of-rights.ts';
export {
  admitRemoteDevice,
  type DeviceAnswer,
  type PresentedDevice,
} from './remote-devices.ts';
export { LimitedRouteLookups } from './route-lookups.ts';
export { homeFrom, requireHome } from './rules.ts';
export { readCurrentDeviceIds, readHintTargets, wasEverHere } from './store.ts';
export { ownRoutesJobName } from './store-route.ts';

export const accounts: StoredModule = {
  name: 'accounts',
  migrations,
  restored,
  handlers: {
    'device.state.publish': deviceStatePublish,
    'device.state.resolve': deviceStateResolve,
    'profile.publish': profilePublish,
    'profile.resolve': profileResolve,
    'account.route.publish': accountRoutePublish,
    'account.route.resolve': accountRouteResolve,
  } satisfies HandlersOf<'account' | 'device' | 'profile'>,
  relayHandlers: {
    'device.status': deviceStatus,
    'device.state.resolve': deviceStateResolveForRelay,
    'device.status.changed': deviceStatusChanged,
    'profile.resolve': profileResolveForRelay,
  },
  jobs: [
    stagedStatesJob,
    arrivalsJob,
    routeValuesJob,
    expiredDevicesJob,
    ownRoutesJob,
    remoteDevicesJob,
    statusHintsJob,
  ],
  accountResync: deviceStateResync,
};
