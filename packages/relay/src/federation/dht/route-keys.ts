/** Which account a DHT key is of: keys are digests, so the reverse is stored. */
import { hex, type Network } from '@posthouse/protocol';
import { deriveRouteKey } from '@posthouse/protocol/federation';
import type { Job, RelayContext } from '../../context.ts';
import { forEach } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';

/** Reads the account of a key. */
export async function readKeyAccount(tx: Reader, key: Uint8Array): Promise<string | undefined> {
  const row = await tx.get<{ account: string }>(
    'SELECT account FROM route_keys WHERE dht_key = ?',
    hex(key),
  );
  return row?.account;
}

/** Stores the keys of accounts. */
export async function storeKeys(
  tx: Writer,
  network: Network,
  accounts: readonly string[],
): Promise<void> {
  await forEach(accounts, (account) =>
    tx.run(
      'INSERT INTO route_keys (dht_key, account) VALUES (?, ?) ON CONFLICT (dht_key) DO NOTHING',
      hex(deriveRouteKey(network, account)),
      account,
    ),
  );
}

const jobName = 'federation.route-keys';

/** Accounts of one transaction. */
const batchSize = 500;

interface MissingRow extends Row {
  account: string;
  missing: number;
}

/**
 * Makes the job that stores the keys of routes that were stored while the federation was off, or by
 * a process that ended before it stored the key. It works once after each start.
 */
export function routeKeysJob(): Job {
  let after: string | undefined = '';
  return {
    name: jobName,
    async run({ storage, network }: RelayContext, signal) {
      while (after !== undefined && !signal.aborted) {
        const start = after;
        const rows = await storage.read((tx) => readAfter(tx, start));
        const missing = rows.filter((row) => row.missing === 1).map(({ account }) => account);
        if (missing.length > 0) {
          await storage.write(jobName, (tx) => storeKeys(tx, network, missing));
        }
        after = rows.at(-1)?.account;
      }
      return undefined;
    },
  };
}

/** Reads the next accounts with a route, and whether their key is missing. */
async function readAfter(tx: Reader, account: string): Promise<MissingRow[]> {
  return await tx.all<MissingRow>(
    `SELECT known.account, CASE WHEN route_keys.account IS NULL THEN 1 ELSE 0 END AS missing
      FROM (SELECT account FROM account_routes WHERE account > ? ORDER BY account LIMIT ?) known
      LEFT JOIN route_keys ON route_keys.account = known.account
      ORDER BY known.account`,
    account,
    batchSize,
  );
}
