import type { Migration, Storage } from './types.ts';

export const identityTable = 'relay_facts';

export const identityMigration: Migration = {
  id: 1,
  name: 'facts of the relay',
  statements: [`CREATE TABLE ${identityTable} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`],
};

/**
 * Ties a database to what all its records rest on: the network context, the service word and the
 * relay ID (01 N4). The first start writes them, every later one compares.
 *
 * @throws Error where the database belongs to another network or relay
 */
export async function bindDatabase(
  storage: Storage,
  facts: Readonly<Record<string, string>>,
): Promise<void> {
  await storage.write('relay', async (tx) => {
    for (const [name, value] of Object.entries(facts)) {
      await tx.run(
        'INSERT INTO relay_facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING',
        name,
        value,
      );
      const stored = await tx.get<{ value: string }>(
        'SELECT value FROM relay_facts WHERE name = ?',
        name,
      );
      if (stored?.value !== value) {
        throw new Error(`the database is of ${name} ${stored?.value}, this relay has ${value}`);
      }
    }
  });
}
