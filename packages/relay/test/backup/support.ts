/** What the tests of backups share: a relay's database on either engine, and its rows. */

import { nodeRandom } from '@posthouse/protocol/node';
import { backUp, restore } from '../../src/backup/index.ts';
import type { RestoreOptions } from '../../src/backup/restore.ts';
import { createKeys } from '../../src/keys/keys.ts';
import { relayMigrations, restoredStatements } from '../../src/modules.ts';
import { putClockMark } from '../../src/storage/clock-mark.ts';
import type { DatabaseAddress } from '../../src/storage/move/move.ts';
import { restoredStep } from '../../src/storage/restored.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import type { Writer } from '../../src/storage/types.ts';
import { configOf, facts, fewRows } from '../move/databases.ts';
import { dump } from '../support/engine.ts';

/** Unix seconds of the backup, and of its restore. */
export const [madeAt, restoredAt] = [1_750_000_100, 1_750_000_200];

/** By how much sequences grow: the relay ran when the backup was made. */
export const step = restoredStep(restoredAt - madeAt);

/** One row of each kind that a restore changes, and some that it does not. */
export async function allKinds(tx: Writer): Promise<void> {
  await fewRows(tx);
  await putClockMark(tx, { seenAt: madeAt });
  await tx.run(
    `INSERT INTO auth_sessions (token_hash, account, mode, origin, expires_at, opened_at)
      VALUES ('h', 'ann', 'account', 'o', 9, 1)`,
  );
  await tx.run(
    `INSERT INTO auth_challenges (nonce_hash, account, origin, expires_at)
      VALUES ('n', 'ann', 'o', ?)`,
    restoredAt + 9,
  );
  // A device of an account at home elsewhere, and when its relay is asked again.
  await tx.run(
    `INSERT INTO remote_devices (account, device_id, relay_id, certificate_id, certificate, status,
        expires_at, confirmed_at, stale, generation, failures, next_check_at)
      VALUES ('zoe', 'phone', '0xbb', 'c', '{}', 'active', 900, 1, 0, 3, 2, 800)`,
  );
  for (const account of ['ann', 'ben']) {
    await tx.run(
      "INSERT INTO device_states (account, revision, state) VALUES (?, 1, '{}')",
      account,
    );
  }
  for (const [account, relay] of [
    ['ann', facts.relay],
    ['zoe', '0xbb'],
  ] as const) {
    await tx.run(
      `INSERT INTO account_routes (account, revision, content, relay_id, expires_at, conflict, route,
          checked_at, held_until)
        VALUES (?, 1, 'c', ?, 500, 0, '{}', 7, 400)`,
      account,
      relay,
    );
  }
  // How long another relay has been failing, which the backup knows only until it was made.
  await tx.run(
    `INSERT INTO relays (relay_id, endpoint, status, updated_at, seen_at, failing_since, failures,
        retry_at)
      VALUES ('0xbb', 'https://b.example/svc/v1', 'active', 1, 2, 3, 4, 5)`,
  );
  await tx.run(
    `INSERT INTO groups (group_id, status, owner, name, description, member_capacity, invite_policy,
        commitment, chain_head, sequence, epoch, member_count, ban_count, access_ended, box_set,
        last_box_set)
      VALUES ('g', 'active', 'ann', '', '', 5, 'p', 'c', 'head', 6, 2, 1, 0, 0, 0, 0)`,
  );
  await tx.run(
    `INSERT INTO group_epochs (group_id, epoch, relay_secret, box_set, keep_until, superseded)
      VALUES ('g', 1, 's1', 0, 5, 1), ('g', 2, 's2', 0, 6, 0)`,
  );
  await tx.run(
    `INSERT INTO group_stagings (group_id, account, base_commitment, commitment, expires_at, box_set,
        box_count) VALUES ('g', 'ann', 'b', 'c', 99, 1, 1)`,
  );
  await tx.run(
    `INSERT INTO channels (channel_id, creator, moderators, status, revision, head, needed_until)
      VALUES ('ch', 'ann', '[]', 'active', 3, 8, 0)`,
  );
}

/** Backs a database up; its keys are in `data`. */
export async function backup(
  address: DatabaseAddress,
  to: string,
  { data, withKeys = false }: { readonly data?: string; readonly withKeys?: boolean } = {},
) {
  const folder = address.engine === 'sqlite' ? address.folder : (data ?? '/nowhere');
  if (withKeys) await createKeys(folder, nodeRandom);
  return await backUp({
    config: { data: folder, storage: configOf(address) },
    ...{ to, withKeys, migrations: relayMigrations, now: madeAt },
  });
}

/** Restores a backup with the relay's migrations. */
export async function restoreTo(from: string, to: string, options: Partial<RestoreOptions> = {}) {
  return await restore({
    ...{ from, to, migrations: relayMigrations, statements: restoredStatements },
    ...{ expected: {}, now: restoredAt },
    ...options,
  });
}

/** All rows of the database in a data folder, by table. */
export async function rowsOf(folder: string): Promise<Record<string, unknown[]>> {
  await using storage = openSqlite(folder);
  return await dump(storage);
}
