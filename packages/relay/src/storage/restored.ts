/** What a database remembers of having been put back to an earlier state. */

import type { Random } from '@posthouse/protocol/crypto';
import { nodeRandom } from '@posthouse/protocol/node';
import { identityTable } from './identity.ts';
import type { Reader, Storage, Writer } from './types.ts';

/**
 * By how much each head and sequence grows when a database is restored: more than a relay assigns to one
 * timeline between two backups, and 2 million restores until no safe integer is left (04 §17.1).
 */
export const restoredStep = 2 ** 32;

const fact = 'restored_at';

/** What a step that is no statement is given. */
export interface RestoredParts {
  /** Unix seconds. */
  readonly now: number;
  readonly random: Random;
  /** The service word of the relay's network. */
  readonly service: string;
}

/** What a module does when the database was put back to an earlier state: a statement, or more. */
export type RestoredStep = string | ((tx: Writer, parts: RestoredParts) => Promise<void>);

/** Reads when the database was restored, Unix seconds; `undefined` if it never was. */
export async function readRestoredAt(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ value: string }>(
    `SELECT value FROM ${identityTable} WHERE name = '${fact}'`,
  );
  return row && Number(row.value);
}

/**
 * Marks a database as restored: runs the modules' steps, and stores the time, all or nothing.
 * Running it again raises everything once more, which does no harm.
 *
 * @param steps of every module, in the order of the modules
 * @param now Unix seconds
 * @returns the stored time: later than any stored before, so that clients notice it
 */
export async function markRestored(
  storage: Storage,
  steps: readonly RestoredStep[],
  now: number,
): Promise<number> {
  return await storage.define(async (tx) => {
    const before = await readRestoredAt(tx);
    const restoredAt = Math.max(now, (before ?? 0) + 1);
    const parts = { now: restoredAt, random: nodeRandom, service: await readService(tx) };
    for (const step of steps) {
      if (typeof step === 'string') await tx.run(step);
      else await step(tx, parts);
    }
    await tx.run(
      `INSERT INTO ${identityTable} (name, value) VALUES ('${fact}', ?)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      String(restoredAt),
    );
    return restoredAt;
  });
}

async function readService(tx: Reader): Promise<string> {
  const row = await tx.get<{ value: string }>(
    `SELECT value FROM ${identityTable} WHERE name = 'service'`,
  );
  return row?.value ?? '';
}
