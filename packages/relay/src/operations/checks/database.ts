import { readBoundRelay } from '../../storage/identity.ts';
import { type Check, failed, ok } from './check.ts';

/** Whether the database can be opened, has the schema of this version, and is this relay's. */
export const database: Check = {
  name: 'database',
  scope: 'local',
  needs: ['configuration'],
  cure: 'correct `data` or `storage`; if the relay has never run, start it once with `posthouse serve`',
  async find(relay) {
    const storage = await relay.storage;
    const bound = await storage.read(readBoundRelay);
    const { engine } = relay.config.storage;
    const identity = await relay.identity.catch(() => undefined);
    if (bound === undefined || identity === undefined || bound === identity.relayId) {
      return ok(`${engine}, with the schema of this version`);
    }
    return failed(
      `the database is of relay ${bound}, and the keys are of relay ${identity.relayId}`,
      'restore the keys of the database from a backup, or use the database of the keys',
    );
  },
};
