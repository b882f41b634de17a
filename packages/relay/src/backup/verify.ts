/** Reads all of a backup: its digests, and the signatures, chains and references of what it holds. */
import { Network } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import type { Migration } from '../storage/types.ts';
import { BackupFile, type BackupWork } from './backup-file.ts';
import { BackupError, type Manifest } from './manifest.ts';
import { type Problem, type RowCheck, runCheck } from './row-check.ts';
import { unknownMigration } from './schema.ts';
import { accountChecks } from './verify-accounts.ts';
import { channelChecks } from './verify-channels.ts';
import { groupChecks } from './verify-groups.ts';
import { messageChecks } from './verify-messages.ts';

/** What was read, and what is wrong. */
interface Verified {
  readonly manifest: Manifest;
  /** Objects that were checked, by kind. */
  readonly checked: Readonly<Record<string, number>>;
  /** The first {@link listedProblems}. */
  readonly problems: readonly Problem[];
  /** How many there are. */
  readonly problemCount: number;
}

/** Limit of problems that are listed. */
const listedProblems = 100;

/**
 * Verifies a backup as a stranger would: nothing that the relay remembers of its checks is believed.
 *
 * @throws BackupError if it cannot be read: no backup, damaged, or of a newer version; the reason of the
 *   signal
 */
export async function verifyBackup(
  from: string,
  { migrations, ...work }: BackupWork & { readonly migrations: readonly Migration[] },
): Promise<Verified> {
  using file = new BackupFile(from);
  const { manifest } = file;
  const newer = unknownMigration(manifest, migrations);
  if (newer !== undefined) {
    throw new BackupError(
      `${from} was made by a newer version of posthouse (it has migration ${newer}): verify it with ` +
        'that version',
    );
  }
  await file.check(migrations, work);
  const network = new Network({
    context: manifest.network,
    word: manifest.service,
    primitives: nodePrimitives,
  });
  const checks: readonly RowCheck[] = [
    ...accountChecks(network),
    ...messageChecks(network),
    ...groupChecks(network, manifest.relay),
    ...channelChecks(network, manifest.relay),
  ];
  const checked: Record<string, number> = {};
  const problems: Problem[] = [];
  let problemCount = 0;
  for (const check of checks) {
    const found = (problem: Problem) => {
      problemCount += 1;
      if (problems.length < listedProblems) problems.push(problem);
    };
    checked[check.kind] = await runCheck(file, check, { ...work, found });
  }
  return { manifest, checked, problems, problemCount };
}
