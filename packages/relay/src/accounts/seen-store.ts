/** SQL of the highest device states seen of accounts at home elsewhere. */
import { digest } from '../digest.ts';
import type { Reader, Writer } from '../storage/types.ts';

/** A verified device state, without its content. */
export interface SeenState {
  readonly revision: number;
  /** Digest of the state's Canonical JSON. */
  readonly digest: string;
}

/**
 * Reads the highest state known of an account: seen at another relay, or stored here while the
 * account was at home here.
 */
export async function readSeenState(tx: Reader, account: string): Promise<SeenState | undefined> {
  const seen = await tx.get<{ revision: number; digest: string }>(
    'SELECT revision, digest FROM seen_states WHERE account = ?',
    account,
  );
  const own = await tx.get<{ revision: number; state: string }>(
    'SELECT revision, state FROM device_states WHERE account = ?',
    account,
  );
  if (own === undefined || (seen !== undefined && seen.revision >= own.revision)) return seen;
  return { revision: own.revision, digest: digest(own.state) };
}

export async function writeSeenState(
  tx: Writer,
  account: string,
  { revision, digest: content }: SeenState,
): Promise<void> {
  await tx.run(
    `INSERT INTO seen_states (account, revision, digest) VALUES (?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET revision = excluded.revision, digest = excluded.digest`,
    account,
    revision,
    content,
  );
}
