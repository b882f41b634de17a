import { loadToken } from '../../keys/admin-token.ts';
import { type Check, ok, skipped } from './check.ts';

/** Whether the token of the admin interface can be read, by the relay's user alone. */
export const adminToken: Check = {
  name: 'admin token',
  scope: 'local',
  needs: ['configuration'],
  cure: 'make it with `posthouse init`, or run `chmod 600` on it; the relay does not start without it',
  async find({ config: { operations } }) {
    const { adminTokenFile, listen } = operations;
    if (adminTokenFile === '') return skipped('`operations.adminTokenFile` is empty');
    await loadToken(adminTokenFile);
    if (listen !== '') return ok(adminTokenFile);
    return skipped('`operations.listen` is empty: there is no admin interface');
  },
};
