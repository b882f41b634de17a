/** SQL of what is remembered of accounts (`facts.ts`). */
import type { AccountFacts } from '../known-accounts.ts';
import type { Reader, Row } from '../storage/types.ts';
import { withKey } from './devices.ts';
import { readDevices } from './store.ts';

interface FactsRow extends Row {
  relay_id: string;
  held_until: number;
  conflict: number;
  route_revision: number;
  state_revision: number | null;
  public_discovery: number | null;
}

/** Reads the facts of an account; `undefined` if no route of it is known. */
export async function readAccountFacts(
  tx: Reader,
  account: string,
): Promise<AccountFacts | undefined> {
  const row = await tx.get<FactsRow>(
    `SELECT r.relay_id, r.held_until, r.conflict, r.revision AS route_revision,
        s.revision AS state_revision, p.public_discovery
      FROM account_routes r
      LEFT JOIN device_states s ON s.account = r.account
      LEFT JOIN profiles p ON p.account = r.account
      WHERE r.account = ?`,
    account,
  );
  if (row === undefined) return undefined;
  const devices = await readDevices(tx, account);
  devices.sort((a, b) => (a.deviceId < b.deviceId ? -1 : 1));
  return {
    account,
    home: { relayId: row.relay_id, heldUntil: row.held_until, conflict: row.conflict === 1 },
    routeRevision: row.route_revision,
    stateRevision: row.state_revision ?? -1,
    isPublic: row.public_discovery === 1,
    devices: new Map(devices.map((device) => [device.deviceId, withKey(device)])),
  };
}
