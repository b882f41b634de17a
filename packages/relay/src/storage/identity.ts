import type { Migration, Reader, Storage } from './types.ts';

export const identityTable = 'relay_facts';

export const identityMigration: Migration = {
  id: 1,
  name: 'facts of the relay',
  statements: [`CREATE TABLE ${identityTable} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`],
};

/**
 * Binds a database to the network context, the service word and the relay ID, on which all its
 * records depend (01 N4). The first start stores them; every later start compares.
 *
 * @throws Error if the database belongs to another network or relay
 */
export async function bindDatabase(
  storage: Storage,
  identity: Readonly<Record<string, string>>,
): Promise<void> {
  await storage.write('relay', async (tx) => {
    for (const [name, value] of Object.entries(identity)) {
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
        throw new Error(
          `the database belongs to ${name} ${stored?.value}, this relay has ${value}: ` +
            'correct the configuration, or use another database',
        );
      }
    }
  });
}

/**
 * Binds the database to the folder of the relay's blobs: the first folder's mark is stored.
 * @returns the mark of the folder that the database is bound to
 */
export async function bindFolder(storage: Storage, mark: string): Promise<string> {
  return await storage.write('relay', async (tx) => {
    await tx.run(
      "INSERT INTO relay_facts (name, value) VALUES ('blobs', ?) ON CONFLICT (name) DO NOTHING",
      mark,
    );
    const stored = await tx.get<{ value: string }>(
      "SELECT value FROM relay_facts WHERE name = 'blobs'",
    );
    return stored?.value ?? mark;
  });
}

/** Reads the relay ID that the database is bound to; `undefined` before the first start. */
export async function readBoundRelay(tx: Reader): Promise<string | undefined> {
  const row = await tx.get<{ value: string }>("SELECT value FROM relay_facts WHERE name = 'relay'");
  return row?.value;
}
