/** A relay whose database was put back to an earlier state, as far as the homes of accounts go. */
import { accounts } from '../../src/accounts/index.ts';
import type { Person } from '../fixtures/person.ts';
import type { ServedRelay } from './served-relay.ts';

/** Does to a relay's stored routes what `posthouse restored` does. */
export async function doubtRoutes(relay: ServedRelay, people: readonly Person[]): Promise<void> {
  const aggregates = people.map(({ account }) => `account:${account}`);
  await relay.server.context.storage.write(aggregates, async (tx) => {
    for (const statement of accounts.restored) await tx.run(String(statement));
  });
}

/**
 * Reads the route of an account at a relay, as a backup has it.
 *
 * @returns a function that puts it back after the account has moved
 */
export async function backUpRoute(
  relay: ServedRelay,
  person: Person,
): Promise<() => Promise<void>> {
  const { account } = person;
  const { storage } = relay.server.context;
  const backup = await storage.read((tx) =>
    tx.get<{ revision: number; route: string; content: string; held_until: number }>(
      'SELECT revision, route, content, held_until FROM account_routes WHERE account = ?',
      account,
    ),
  );
  if (backup === undefined) throw new Error('no route');
  return async () => {
    await storage.write(`account:${account}`, (tx) =>
      tx.run(
        `UPDATE account_routes SET revision = ?, route = ?, content = ?, held_until = ?, relay_id = ?
          WHERE account = ?`,
        ...[backup.revision, backup.route, backup.content, backup.held_until],
        ...[relay.relayId, account],
      ),
    );
  };
}
