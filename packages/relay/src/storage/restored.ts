/** What a database remembers of having been put back to an earlier state. */

import type { Random } from '@posthouse/protocol/crypto';
import { nodeRandom } from '@posthouse/protocol/node';
import type { ProgressState } from '@posthouse/protocol/progress';
import { readClockMark } from './clock-mark.ts';
import { identityTable } from './identity.ts';
import type { Reader, Storage, Writer } from './types.ts';

/** The least step: more than a relay assigns to one timeline between two backups (04 §17.1). */
const leastStep = 2 ** 32;

/** What the step grows by with each second: more than a relay assigns to one timeline in a second. */
const stepEachSecond = 2 ** 13;

/** What time adds at most, after two years: clients refuse a step above 2^40 (04 §18.1). */
const mostForTime = 2 ** 39;

/**
 * Returns by how much each head, sequence and epoch grows when a database is restored. It depends on the
 * time, because one state may be restored twice: what the relay assigned between the two restores lies
 * below what it assigns after the second.
 *
 * @param elapsed seconds between the state and its restore; negative if the clock went back
 * @returns at least 2^32, at most 2^39 + 2^32
 */
export function restoredStep(elapsed: number): number {
  return leastStep + Math.min(Math.max(0, elapsed) * stepEachSecond, mostForTime);
}

const fact = 'restored_at';

/** What a step that is no statement is given. */
export interface RestoredParts {
  /** Unix seconds. */
  readonly now: number;
  readonly random: Random;
  /** By how much heads, sequences and epochs grow: {@link restoredStep}. */
  readonly step: number;
  /** The service word of the relay's network. */
  readonly service: string;
}

/** How a command shows that the database is being marked, and stops it. */
interface RestoredWork {
  readonly signal?: AbortSignal | undefined;
  readonly progress?: ((state: ProgressState) => void) | undefined;
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
 * Running it again raises everything once more, which does no harm. The state is as old as its clock
 * mark, which a running relay writes every minute, or its last restore.
 *
 * @param steps of every module, in the order of the modules
 * @param now Unix seconds
 * @param work.signal stops between two steps; nothing was changed then
 * @returns the stored time: later than any stored before, so that clients notice it
 */
export async function markRestored(
  storage: Storage,
  steps: readonly RestoredStep[],
  now: number,
  { signal, progress }: RestoredWork = {},
): Promise<number> {
  return await storage.define(async (tx) => {
    const before = await readRestoredAt(tx);
    const restoredAt = Math.max(now, (before ?? 0) + 1);
    const seenAt = (await readClockMark(tx))?.seenAt ?? before ?? restoredAt;
    const parts = {
      ...{ now: restoredAt, random: nodeRandom, service: await readService(tx) },
      step: restoredStep(restoredAt - Math.max(seenAt, before ?? 0)),
    };
    for (const [done, step] of steps.entries()) {
      signal?.throwIfAborted();
      progress?.({ step: 'raising sequences', done, total: steps.length });
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
