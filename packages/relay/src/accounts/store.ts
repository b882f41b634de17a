/** SQL of accounts: routes, device states, devices, profiles. */
import { chunks, placeholders } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** The route of highest revision of an account, stored for good (03 section 3.4). */
export interface KnownRoute {
  readonly revision: number;
  /** Digest of the route without its signatures. */
  readonly content: string;
  readonly relayId: string;
  readonly expiresAt: number;
  /**
   * Until when it may be returned and used, at the most until it expires; 0 once it was deleted.
   * Negative since the database was restored, until it is confirmed again.
   */
  readonly heldUntil: number;
  /** Whether another content of the same revision is known. */
  readonly conflict: boolean;
  /** The final document, Canonical JSON; empty once it was deleted. */
  readonly text: string;
}

interface RouteRow extends Row {
  revision: number;
  content: string;
  relay_id: string;
  expires_at: number;
  held_until: number;
  conflict: number;
  route: string;
}

export async function readRoute(tx: Reader, account: string): Promise<KnownRoute | undefined> {
  const row = await tx.get<RouteRow>(
    `SELECT revision, content, relay_id, expires_at, held_until, conflict, route
      FROM account_routes WHERE account = ?`,
    account,
  );
  if (row === undefined) return undefined;
  return {
    revision: row.revision,
    content: row.content,
    relayId: row.relay_id,
    expiresAt: row.expires_at,
    heldUntil: row.held_until,
    conflict: row.conflict === 1,
    text: row.route,
  };
}

/** The members of a known route that determine the home. */
export type KnownHome = Pick<KnownRoute, 'relayId' | 'heldUntil' | 'conflict'>;

export async function readKnownHome(tx: Reader, account: string): Promise<KnownHome | undefined> {
  const row = await tx.get<Pick<RouteRow, 'relay_id' | 'held_until' | 'conflict'> & Row>(
    'SELECT relay_id, held_until, conflict FROM account_routes WHERE account = ?',
    account,
  );
  if (row === undefined) return undefined;
  return { relayId: row.relay_id, heldUntil: row.held_until, conflict: row.conflict === 1 };
}

/** The relay that an account leaves, and when it is sent the route again, Unix seconds. */
export interface Announcement {
  readonly relayId: string;
  readonly at: number;
}

/** Replaces the known route. The caller has compared the revisions. */
export async function writeRoute(
  tx: Writer,
  account: string,
  route: KnownRoute,
  {
    checkedAt,
    announce,
    publishAt,
  }: {
    /** When the network was last asked for other routes, Unix seconds. */
    readonly checkedAt: number;
    readonly announce: Announcement | undefined;
    /** When it is sent to other relays, Unix seconds; never without this. */
    readonly publishAt: number | undefined;
  },
): Promise<void> {
  await tx.run(
    `INSERT INTO account_routes
        (account, revision, content, relay_id, expires_at, held_until, conflict, route,
          previous_relay, announce_at, checked_at, publish_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET revision = excluded.revision,
        content = excluded.content, relay_id = excluded.relay_id,
        expires_at = excluded.expires_at, held_until = excluded.held_until,
        conflict = excluded.conflict, route = excluded.route,
        previous_relay = excluded.previous_relay, announce_at = excluded.announce_at,
        announce_failures = 0, checked_at = excluded.checked_at,
        publish_at = excluded.publish_at, publish_failures = 0`,
    account,
    route.revision,
    route.content,
    route.relayId,
    route.expiresAt,
    route.heldUntil,
    route.conflict ? 1 : 0,
    route.text,
    announce?.relayId ?? null,
    announce?.at ?? null,
    checkedAt,
    publishAt ?? null,
  );
}

/** A device state as stored. */
export interface StoredState {
  readonly revision: number;
  /** Canonical JSON. */
  readonly text: string;
}

/** Reads the authoritative state of an account that is, or last was, at home here. */
export async function readState(tx: Reader, account: string): Promise<StoredState | undefined> {
  return await tx.get<{ revision: number; text: string }>(
    'SELECT revision, state AS text FROM device_states WHERE account = ?',
    account,
  );
}

/** Whether an account is at home here, or was: it needs no right to come (03 §4.3). */
export async function wasEverHere(tx: Reader, account: string): Promise<boolean> {
  return (await readState(tx, account)) !== undefined;
}

/** Removes the authoritative state of an account. */
export async function deleteState(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM device_states WHERE account = ?', account);
}

/** Later than any time: the network is not asked any more for a route that was ended. */
const never = Number.MAX_SAFE_INTEGER;

/**
 * Ends the use of an account's route that names this relay: its text goes, its revision stays. The same
 * route found again at another relay changes nothing (`observedRoute`).
 */
export async function endOwnRoute(tx: Writer, account: string, relayId: string): Promise<void> {
  await tx.run(
    `UPDATE account_routes SET route = '', held_until = 0, publish_at = NULL, checked_at = ?,
        previous_relay = NULL, announce_at = NULL
      WHERE account = ? AND relay_id = ?`,
    never,
    account,
    relayId,
  );
}

/** One certificate of a device state. */
export interface Device {
  readonly deviceId: string;
  readonly notBefore: number;
  readonly expiresAt: number;
  /** Digest of the certificate's text. */
  readonly certificateId: string;
  /** Canonical JSON. */
  readonly certificate: string;
}

/** Replaces the authoritative state and its devices. */
export async function writeState(
  tx: Writer,
  account: string,
  { state, devices }: { readonly state: StoredState; readonly devices: readonly Device[] },
): Promise<void> {
  await tx.run(
    `INSERT INTO device_states (account, revision, state) VALUES (?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET revision = excluded.revision, state = excluded.state`,
    account,
    state.revision,
    state.text,
  );
  await tx.run('DELETE FROM devices WHERE account = ?', account);
  for (const device of devices) {
    await tx.run(
      `INSERT INTO devices
          (account, device_id, not_before, expires_at, certificate_id, certificate)
        VALUES (?, ?, ?, ?, ?, ?)`,
      account,
      device.deviceId,
      device.notBefore,
      device.expiresAt,
      device.certificateId,
      device.certificate,
    );
  }
}

interface DeviceRow extends Row {
  device_id: string;
  not_before: number;
  expires_at: number;
  certificate_id: string;
  certificate: string;
}

/** Reads a device if its certificate covers `now`. */
export async function readCurrentDevice(
  tx: Reader,
  { account, deviceId }: { readonly account: string; readonly deviceId: string },
  now: number,
): Promise<Device | undefined> {
  const row = await tx.get<DeviceRow>(
    `SELECT device_id, not_before, expires_at, certificate_id, certificate FROM devices
      WHERE account = ? AND device_id = ? AND not_before <= ? AND expires_at > ?`,
    account,
    deviceId,
    now,
    now,
  );
  return row === undefined ? undefined : toDevice(row);
}

/** Reads all devices whose certificate covers `now`. */
export async function readCurrentDevices(
  tx: Reader,
  account: string,
  now: number,
): Promise<Device[]> {
  const rows = await tx.all<DeviceRow>(
    `SELECT device_id, not_before, expires_at, certificate_id, certificate FROM devices
      WHERE account = ? AND not_before <= ? AND expires_at > ?`,
    account,
    now,
    now,
  );
  return rows.map(toDevice);
}

/** Reads the IDs of all devices whose certificate covers `now`. */
export async function readCurrentDeviceIds(
  tx: Reader,
  account: string,
  now: number,
): Promise<string[]> {
  const rows = await tx.all<{ device_id: string }>(
    `SELECT device_id FROM devices WHERE account = ? AND not_before <= ? AND expires_at > ?
      ORDER BY device_id`,
    account,
    now,
    now,
  );
  return rows.map((row) => row.device_id);
}

/** The devices of an account at home here that get its hints. */
export interface HintTarget {
  /** Revision of the authoritative state. */
  readonly revision: number;
  /** All devices whose certificate covers `now`. */
  readonly deviceIds: readonly string[];
}

/** Reads the hint targets of those accounts that are at home here and have a current device. */
export async function readHintTargets(
  tx: Reader,
  accounts: readonly string[],
  { relayId, now }: { readonly relayId: string; readonly now: number },
): Promise<ReadonlyMap<string, HintTarget>> {
  const targets = new Map<string, { revision: number; deviceIds: string[] }>();
  for (const chunk of chunks(accounts)) {
    const rows = await tx.all<{ account: string; device_id: string; revision: number }>(
      `SELECT d.account, d.device_id, s.revision
        FROM devices d
        JOIN device_states s ON s.account = d.account
        JOIN account_routes r ON r.account = d.account
        WHERE d.account IN (${placeholders(chunk)}) AND d.not_before <= ? AND d.expires_at > ?
          AND r.relay_id = ? AND r.expires_at > ? AND r.conflict = 0`,
      ...[...chunk, now, now, relayId, now],
    );
    for (const { account, device_id: deviceId, revision } of rows) {
      const target = targets.get(account) ?? { revision, deviceIds: [] };
      target.deviceIds.push(deviceId);
      targets.set(account, target);
    }
  }
  return targets;
}

/** Reads all devices of the stored state, valid or not. */
export async function readDevices(tx: Reader, account: string): Promise<Device[]> {
  const rows = await tx.all<DeviceRow>(
    `SELECT device_id, not_before, expires_at, certificate_id, certificate FROM devices
      WHERE account = ?`,
    account,
  );
  return rows.map(toDevice);
}

/** Removes the devices of an account that is not at home here any more; its state stays. */
export async function deleteDevices(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM devices WHERE account = ?', account);
}

function toDevice(row: DeviceRow): Device {
  return {
    deviceId: row.device_id,
    notBefore: row.not_before,
    expiresAt: row.expires_at,
    certificateId: row.certificate_id,
    certificate: row.certificate,
  };
}

/** A published profile with the certificate that verified it, both Canonical JSON. */
export interface StoredProfile {
  readonly updatedAt: number;
  readonly publicDiscovery: boolean;
  readonly text: string;
  readonly certificate: string;
}

export async function readProfile(tx: Reader, account: string): Promise<StoredProfile | undefined> {
  const row = await tx.get<{
    updated_at: number;
    public_discovery: number;
    profile: string;
    certificate: string;
  }>(
    'SELECT updated_at, public_discovery, profile, certificate FROM profiles WHERE account = ?',
    account,
  );
  if (row === undefined) return undefined;
  return {
    updatedAt: row.updated_at,
    publicDiscovery: row.public_discovery === 1,
    text: row.profile,
    certificate: row.certificate,
  };
}

/** Tells whether public discovery of the account is on; without a profile it is off (01 F5). */
export async function readPublicDiscovery(tx: Reader, account: string): Promise<boolean> {
  const row = await tx.get<{ public_discovery: number }>(
    'SELECT public_discovery FROM profiles WHERE account = ?',
    account,
  );
  return row?.public_discovery === 1;
}

export async function writeProfile(
  tx: Writer,
  account: string,
  profile: StoredProfile,
): Promise<void> {
  await tx.run(
    `INSERT INTO profiles (account, updated_at, public_discovery, profile, certificate)
      VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (account) DO UPDATE SET updated_at = excluded.updated_at,
        public_discovery = excluded.public_discovery, profile = excluded.profile,
        certificate = excluded.certificate`,
    account,
    profile.updatedAt,
    profile.publicDiscovery ? 1 : 0,
    profile.text,
    profile.certificate,
  );
}

export async function deleteProfile(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM profiles WHERE account = ?', account);
}

/** Tells whether any account is, or was, at home here. */
export async function hasAccounts(tx: Reader): Promise<boolean> {
  return (await tx.get('SELECT account FROM device_states LIMIT 1')) !== undefined;
}
