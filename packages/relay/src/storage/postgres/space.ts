import type { DatabaseSpace, Reader, Row } from '../types.ts';

/** Reads how much room the database takes on the server, with its indexes. */
export async function readSpace(tx: Reader): Promise<DatabaseSpace> {
  const row = await tx.get<{ bytes: number } & Row>(
    'SELECT pg_database_size(current_database()) AS bytes',
  );
  return { bytes: row?.bytes ?? 0, unused: 0 };
}
