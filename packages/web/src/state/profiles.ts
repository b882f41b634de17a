/** Reads the profiles of contacts and of those who ask: without a local name, a nickname says more than an ID. */
import { isRefusal } from '@posthouse/client/web';
import type { Host } from './host.ts';

/** Accounts that are asked for in the life of a page, each once: every request of a stranger adds one. */
const most = 100;

const asked = new Set<string>();
let isReading = false;

/** Reads those that were not read yet, one after the other. The client keeps each, and names contacts with it. */
export async function readProfiles(app: Host): Promise<void> {
  if (isReading) return;
  isReading = true;
  let last = '';
  try {
    while (asked.size < most) {
      const next = app.contacts.value.find(
        ({ account: id, alias, status }) =>
          alias === undefined && ['active', 'asks', 'waiting'].includes(status) && !asked.has(id),
      );
      if (next === undefined) return;
      last = next.account;
      asked.add(last);
      const profile = await app.account.profiles.resolve(last).catch((error: unknown) => {
        // What the relay refused is refused again. Without a connection, all others fail as well.
        if (!isRefusal(error)) throw error;
      });
      if (profile && profile.nickname !== next.nickname) await app.changed();
    }
  } catch {
    // It is read when there is a connection again.
    asked.delete(last);
  } finally {
    isReading = false;
  }
}
