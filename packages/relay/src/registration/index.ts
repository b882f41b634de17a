import type { StoredModule } from '../dispatch/module.ts';
import { registrationJob } from './jobs.ts';
import { registrationMigrations } from './migrations.ts';

export {
  allowAccount,
  deleteRequest,
  disallowAccount,
  hasAllowed,
  isWaiting,
  listAllowed,
  listRequests,
} from './account-store.ts';
export { newInviteCode } from './invite-code.ts';
export {
  deleteClaim,
  deleteInvite,
  hasUsableInvite,
  insertInvite,
  listInvites,
  type StoredInvite,
} from './invite-store.ts';
export {
  claimInvite,
  mayRegister,
  offeredInvite,
  refuseNewcomer,
  registrations,
  rejectFrom,
  useRight,
} from './rights.ts';

export const registration: StoredModule = {
  name: 'registration',
  migrations: registrationMigrations,
  restored: [],
  handlers: {},
  jobs: [registrationJob],
};
