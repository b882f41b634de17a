import { readRestoredAt } from '../../storage/restored.ts';
import type { Reader } from '../../storage/types.ts';
import { type Check, ok, warning } from './check.ts';

const instant = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000', '');

/** Whether a restore of the database left groups and accounts incomplete. */
export const restored: Check = {
  name: 'restored',
  scope: 'local',
  needs: ['database'],
  cure: 'try again',
  async find(relay) {
    const storage = await relay.storage;
    const now = relay.clock.now();
    const { restoredAt, incomplete, waiting, unconfirmed } = await storage.read((tx) =>
      readState(tx, now),
    );
    if (restoredAt === undefined) return ok('the database was never put back');
    const seen = `the database was put back at ${instant(restoredAt)}`;
    if (waiting === 0 && unconfirmed === 0) return ok(seen);
    return warning(
      `${seen}: ${incomplete} groups may lack events, ${waiting} of them wait for their owner, ` +
        `and ${unconfirmed} accounts are not confirmed yet`,
      'ask the owners of groups to open their app, and those whose members miss something to run ' +
        '`courier group hand-back`; accounts are confirmed once the relay reaches registry and other relays',
    );
  },
};

interface State {
  readonly restoredAt: number | undefined;
  /** Groups of which lost events can still be handed back. */
  readonly incomplete: number;
  /** Of these, groups that wait for their owner. */
  readonly waiting: number;
  /** Accounts whose route was not looked up since. */
  readonly unconfirmed: number;
}

async function readState(tx: Reader, now: number): Promise<State> {
  const groups = await tx.get<{ incomplete: number; waiting: number }>(
    `SELECT count(*) AS incomplete, count(CASE WHEN held_until > ? THEN 1 END) AS waiting
      FROM groups WHERE losses_end_at > ?`,
    now,
    now,
  );
  const accounts = await tx.get<{ unconfirmed: number }>(
    'SELECT count(*) AS unconfirmed FROM account_routes WHERE held_until < 0',
  );
  return {
    restoredAt: await readRestoredAt(tx),
    incomplete: groups?.incomplete ?? 0,
    waiting: groups?.waiting ?? 0,
    unconfirmed: accounts?.unconfirmed ?? 0,
  };
}
