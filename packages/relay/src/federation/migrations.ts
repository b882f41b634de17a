import type { Migration } from '../storage/types.ts';

export const federationMigrations: readonly Migration[] = [
  {
    id: 601,
    name: 'relays',
    statements: [
      // Other relays: the registry's record and what this relay knows in addition. Times are Unix
      // seconds, updated_at the registry's milliseconds. seen_at: when the record was last read.
      // peer_id: base58btc. descriptor: Canonical JSON. fetched_at: when the registered endpoint
      // gave it; null if only a handshake did. last_ok to last_error: calls to the relay.
      `CREATE TABLE relays (
        relay_id TEXT NOT NULL PRIMARY KEY,
        endpoint TEXT NOT NULL,
        status TEXT NOT NULL,
        updated_at BIGINT NOT NULL,
        seen_at BIGINT NOT NULL,
        peer_id TEXT,
        descriptor TEXT,
        descriptor_until BIGINT,
        fetched_at BIGINT,
        last_ok BIGINT,
        failing_since BIGINT,
        failures BIGINT NOT NULL,
        retry_at BIGINT,
        last_error TEXT
      )`,
      // Relays that the operator refuses; `blocks/` took them over.
      `CREATE TABLE blocked_relays (
        relay_id TEXT NOT NULL PRIMARY KEY,
        reason TEXT NOT NULL,
        created_at BIGINT NOT NULL
      )`,
    ],
  },
  {
    id: 602,
    name: 'DHT keys of account routes',
    statements: [
      // A key is a digest of the account, in hex.
      `CREATE TABLE route_keys (
        dht_key TEXT NOT NULL PRIMARY KEY,
        account TEXT NOT NULL
      )`,
      'CREATE INDEX route_keys_by_account ON route_keys (account)',
    ],
  },
  {
    id: 603,
    name: 'since when relays answer',
    // The first success after the last failure, Unix seconds; null while the relay fails.
    statements: ['ALTER TABLE relays ADD COLUMN ok_since BIGINT'],
  },
  {
    id: 604,
    name: 'connections with other relays',
    statements: [
      // With which relays each process of this one is connected; with an empty relay_id, that the
      // process runs. Rows that were not renewed are of a process that ended.
      `CREATE TABLE peer_connections (
        process TEXT NOT NULL,
        relay_id TEXT NOT NULL,
        since BIGINT NOT NULL,
        seen_at BIGINT NOT NULL,
        PRIMARY KEY (process, relay_id)
      )`,
    ],
  },
  {
    id: 620,
    name: 'requests of posthouse doctor',
    statements: [
      // To the running relay: whether other relays reach it. is_taken: by one of its processes.
      // report: JSON. The command deletes its request.
      `CREATE TABLE reachability_requests (
        id TEXT NOT NULL PRIMARY KEY,
        asked_at BIGINT NOT NULL,
        is_taken BIGINT NOT NULL CHECK (is_taken IN (0, 1)),
        report TEXT
      )`,
    ],
  },
];
