import type { Migration } from '../storage/types.ts';

export const migrations: readonly Migration[] = [
  {
    id: 201,
    name: 'accounts',
    statements: [
      // The final route of the highest revision ever verified, kept for good (03 section 3.4).
      // `content` is the digest of the route without its signatures; `conflict` is 1 while another
      // content of the same revision is known.
      `CREATE TABLE account_routes (
        account TEXT NOT NULL PRIMARY KEY,
        revision BIGINT NOT NULL,
        content TEXT NOT NULL,
        relay_id TEXT NOT NULL,
        expires_at BIGINT NOT NULL,
        conflict BIGINT NOT NULL,
        route TEXT NOT NULL
      )`,
      // The authoritative state of an account that is, or was, at home here. Later revisions are
      // compared with it, so it stays when the account leaves.
      `CREATE TABLE device_states (
        account TEXT NOT NULL PRIMARY KEY,
        revision BIGINT NOT NULL,
        state TEXT NOT NULL
      )`,
      // One row for each certificate of the authoritative state.
      `CREATE TABLE devices (
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        not_before BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        certificate_id TEXT NOT NULL,
        certificate TEXT NOT NULL,
        PRIMARY KEY (account, device_id)
      )`,
      `CREATE TABLE staged_states (
        account TEXT NOT NULL PRIMARY KEY,
        revision BIGINT NOT NULL,
        staged_until BIGINT NOT NULL,
        state TEXT NOT NULL
      )`,
      'CREATE INDEX staged_states_by_deadline ON staged_states (staged_until)',
      `CREATE TABLE profiles (
        account TEXT NOT NULL PRIMARY KEY,
        updated_at BIGINT NOT NULL,
        public_discovery BIGINT NOT NULL,
        profile TEXT NOT NULL,
        certificate TEXT NOT NULL
      )`,
    ],
  },
  {
    id: 202,
    name: 'accounts: devices that became inactive',
    statements: [
      // noted: 1 once the device was marked as inactive after its certificate expired.
      'ALTER TABLE devices ADD COLUMN noted BIGINT NOT NULL DEFAULT 0',
      'CREATE INDEX devices_to_note ON devices (expires_at) WHERE noted = 0',
      // Devices removed or expired, until their access to groups has ended (05 §7.3).
      `CREATE TABLE inactive_devices (
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        PRIMARY KEY (account, device_id)
      )`,
    ],
  },
  {
    id: 203,
    name: 'accounts: ends of certificates device by device',
    statements: [
      // The order in which a job reads them, so that it continues after a device that fails.
      'DROP INDEX devices_to_note',
      'CREATE INDEX devices_to_note ON devices (expires_at, account, device_id) WHERE noted = 0',
    ],
  },
  {
    id: 204,
    name: 'accounts: homes at other relays',
    statements: [
      // When the network was last asked whether the account has left; for accounts at home here.
      'ALTER TABLE account_routes ADD COLUMN checked_at BIGINT NOT NULL DEFAULT 0',
      // The relay that the account left with this route, until it stored the route; `announce_at`
      // is when it is sent the route again.
      'ALTER TABLE account_routes ADD COLUMN previous_relay TEXT',
      'ALTER TABLE account_routes ADD COLUMN announce_at BIGINT',
      'ALTER TABLE account_routes ADD COLUMN announce_failures BIGINT NOT NULL DEFAULT 0',
      'CREATE INDEX account_routes_to_check ON account_routes (relay_id, checked_at, account)',
      `CREATE INDEX account_routes_to_announce ON account_routes (announce_at, account)
        WHERE announce_at IS NOT NULL`,
      // Devices of accounts at home elsewhere that use this relay, as their home relay last
      // described them. `stale` is 1 while that relay must be asked first; `generation` grows with
      // each event that makes answers under way useless. No row is one of an account at home here.
      `CREATE TABLE remote_devices (
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        relay_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        certificate TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('asked', 'active', 'inactive')),
        expires_at BIGINT NOT NULL,
        confirmed_at BIGINT NOT NULL,
        stale BIGINT NOT NULL,
        generation BIGINT NOT NULL,
        failures BIGINT NOT NULL,
        next_check_at BIGINT NOT NULL,
        PRIMARY KEY (account, device_id)
      )`,
      `CREATE INDEX remote_devices_to_check
        ON remote_devices (next_check_at, account, device_id)`,
      // Relays that asked for the status of a device at home here; `hint_at` is when the next
      // `device.status.changed` is sent, if one is due.
      `CREATE TABLE status_watchers (
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        relay_id TEXT NOT NULL,
        asked_at BIGINT NOT NULL,
        hint_at BIGINT,
        failures BIGINT NOT NULL,
        changes BIGINT NOT NULL,
        PRIMARY KEY (account, device_id, relay_id)
      )`,
      'CREATE INDEX status_watchers_by_age ON status_watchers (asked_at)',
      `CREATE INDEX status_watchers_to_hint
        ON status_watchers (hint_at, account, device_id, relay_id) WHERE hint_at IS NOT NULL`,
    ],
  },
  {
    id: 205,
    name: 'accounts: highest device states seen elsewhere',
    statements: [
      // The highest verified state of an account that another relay answered, kept for good: a lower
      // one is never accepted again (03 §5.7). `digest` is that of its Canonical JSON.
      `CREATE TABLE seen_states (
        account TEXT NOT NULL PRIMARY KEY,
        revision BIGINT NOT NULL,
        digest TEXT NOT NULL
      )`,
    ],
  },
  {
    id: 206,
    name: 'accounts: relays that were not asked for higher routes',
    statements: [
      // Relays that gave no answer when the network was asked for accounts at home here. They are
      // asked again for the accounts whose `checked_at` is not before `since`, in the order
      // (checked_at, account) after the last one that they answered. `misses` grows with each miss.
      `CREATE TABLE missed_relays (
        relay_id TEXT NOT NULL PRIMARY KEY,
        since BIGINT NOT NULL,
        after_account TEXT NOT NULL,
        missed_at BIGINT NOT NULL,
        misses BIGINT NOT NULL,
        failures BIGINT NOT NULL,
        retry_at BIGINT NOT NULL
      )`,
      'CREATE INDEX missed_relays_to_ask ON missed_relays (retry_at, relay_id)',
    ],
  },
  {
    id: 207,
    name: 'accounts: addresses of pre-stored states and of new accounts',
    statements: [
      // The client address that a pre-stored state counts for, and when its account was given room.
      "ALTER TABLE staged_states ADD COLUMN address TEXT NOT NULL DEFAULT ''",
      'ALTER TABLE staged_states ADD COLUMN since BIGINT NOT NULL DEFAULT 0',
      'UPDATE staged_states SET since = staged_until - 86400',
      'CREATE INDEX staged_states_by_address ON staged_states (address, staged_until)',
      // How many accounts an address brought to this relay on a day (of the Unix epoch, UTC).
      `CREATE TABLE account_arrivals (
        address TEXT NOT NULL,
        day BIGINT NOT NULL,
        accounts BIGINT NOT NULL,
        PRIMARY KEY (address, day)
      )`,
      'CREATE INDEX account_arrivals_by_day ON account_arrivals (day)',
    ],
  },
  {
    id: 208,
    name: 'accounts: expired devices that are valid again',
    statements: [
      // After the clock was set back, a job finds the devices that were marked too early.
      'CREATE INDEX devices_noted ON devices (expires_at, account, device_id) WHERE noted = 1',
    ],
  },
  {
    id: 209,
    name: 'accounts: local end of routes, and when they are sent to other relays',
    statements: [
      // Until when the route may be returned and used, at the most `expires_at`; 0 after it was
      // deleted, which leaves its text empty and the memory of its revision as it is (07 §B5, §B11).
      'ALTER TABLE account_routes ADD COLUMN held_until BIGINT NOT NULL DEFAULT 0',
      // When the route is next sent to the relays nearest to its key; null for one that was found by
      // a lookup only. `publish_failures`: times in a row that too few of them stored it.
      'ALTER TABLE account_routes ADD COLUMN publish_at BIGINT',
      'ALTER TABLE account_routes ADD COLUMN publish_failures BIGINT NOT NULL DEFAULT 0',
      'UPDATE account_routes SET held_until = expires_at, publish_at = 0',
      `CREATE INDEX account_routes_held ON account_routes (held_until, account)
        WHERE held_until > 0`,
      `CREATE INDEX account_routes_to_publish ON account_routes (publish_at, account)
        WHERE publish_at IS NOT NULL`,
    ],
  },
];
