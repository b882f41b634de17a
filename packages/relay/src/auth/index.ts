import type { StoredModule } from '../dispatch/module.ts';
import { expiry } from './jobs.ts';
import { verifyAccount } from './methods/auth.account.verify.ts';
import { challenge } from './methods/auth.challenge.ts';
import { verifyDevice } from './methods/auth.device.verify.ts';
import { migrations } from './store.ts';

export const auth: StoredModule = {
  name: 'auth',
  migrations,
  handlers: {
    'auth.challenge': challenge,
    'auth.device.verify': verifyDevice,
    'auth.account.verify': verifyAccount,
  },
  jobs: [expiry],
};
