/** SQL of the accounts that each client address brought to this relay, by day (02 §5). */
import type { Reader, Writer } from '../storage/types.ts';

/** Accounts that came to be at home here, from one address on one day. */
export interface Arrivals {
  readonly address: string;
  /** Days since the Unix epoch. */
  readonly day: number;
  readonly accounts: number;
}

/** Returns how many accounts an address brought on a day. */
export async function readArrivals(
  tx: Reader,
  { address, day }: Pick<Arrivals, 'address' | 'day'>,
): Promise<number> {
  const row = await tx.get<{ accounts: number }>(
    'SELECT accounts FROM account_arrivals WHERE address = ? AND day = ?',
    address,
    day,
  );
  return row?.accounts ?? 0;
}

export async function writeArrivals(
  tx: Writer,
  { address, day, accounts }: Arrivals,
): Promise<void> {
  await tx.run(
    `INSERT INTO account_arrivals (address, day, accounts) VALUES (?, ?, ?)
      ON CONFLICT (address, day) DO UPDATE SET accounts = excluded.accounts`,
    address,
    day,
    accounts,
  );
}

/** Removes up to `batchSize` addresses of earlier days; returns how many. */
export async function deleteArrivalsBefore(
  tx: Writer,
  day: number,
  batchSize: number,
): Promise<number> {
  return await tx.run(
    `DELETE FROM account_arrivals WHERE (address, day) IN
      (SELECT address, day FROM account_arrivals WHERE day < ? LIMIT ?)`,
    day,
    batchSize,
  );
}

/** Returns the earliest day of which addresses are stored. */
export async function firstArrivalDay(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ day: number }>(
    'SELECT day FROM account_arrivals ORDER BY day LIMIT 1',
  );
  return row?.day;
}
