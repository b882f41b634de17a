import type { HandlersOf } from '../dispatch/handler.ts';
import type { StoredModule } from '../dispatch/module.ts';
import { expiryJob } from './jobs.ts';
import { authAccountVerify } from './methods/auth.account.verify.ts';
import { authChallenge } from './methods/auth.challenge.ts';
import { authDeviceVerify } from './methods/auth.device.verify.ts';
import { restored } from './restored.ts';
import { migrations } from './store.ts';

export { WaitingChallenges } from './challenge-room.ts';

export const auth: StoredModule = {
  name: 'auth',
  migrations,
  restored,
  handlers: {
    'auth.challenge': authChallenge,
    'auth.device.verify': authDeviceVerify,
    'auth.account.verify': authAccountVerify,
  } satisfies HandlersOf<'auth'>,
  jobs: [expiryJob],
};
