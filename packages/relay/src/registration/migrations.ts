import type { Migration } from '../storage/types.ts';

export const registrationMigrations: readonly Migration[] = [
  {
    id: 801,
    name: 'registration: invites, accounts that are let in, requests',
    note: 'new accounts now need an invite (posthouse invite create): set registration to open to take all, as before. Accounts that are here stay.',
    statements: [
      // digest: SHA-256 of the code, which is not stored; id: by which commands name it.
      `CREATE TABLE registration_invites (
        digest TEXT NOT NULL PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        uses BIGINT NOT NULL,
        used BIGINT NOT NULL,
        note TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL
      )`,
      'CREATE INDEX registration_invites_by_expiry ON registration_invites (expires_at)',
      // The newest valid invite that the holder of an account key showed at sign-in.
      `CREATE TABLE registration_claims (
        account TEXT NOT NULL PRIMARY KEY,
        invite TEXT NOT NULL,
        claimed_at BIGINT NOT NULL
      )`,
      `CREATE INDEX registration_claims_by_invite
        ON registration_claims (invite, claimed_at, account)`,
      // Accounts that the operator lets in, until they are at home here.
      `CREATE TABLE registration_allowed (
        account TEXT NOT NULL PRIMARY KEY,
        allowed_at BIGINT NOT NULL
      )`,
      // Accounts that wait for the operator.
      `CREATE TABLE registration_requests (
        account TEXT NOT NULL PRIMARY KEY,
        address TEXT NOT NULL,
        asked_at BIGINT NOT NULL
      )`,
      'CREATE INDEX registration_requests_by_age ON registration_requests (asked_at, account)',
      `CREATE INDEX registration_requests_by_address
        ON registration_requests (address, asked_at)`,
    ],
  },
  {
    id: 802,
    name: 'registration: networks of requests, indexes of lists',
    statements: [
      // place: the how manieth of its network the request was when it was made.
      "ALTER TABLE registration_requests ADD COLUMN network TEXT NOT NULL DEFAULT ''",
      'ALTER TABLE registration_requests ADD COLUMN place BIGINT NOT NULL DEFAULT 1',
      'CREATE INDEX registration_requests_by_network ON registration_requests (network)',
      'CREATE INDEX registration_requests_by_place ON registration_requests (place, asked_at)',
      'CREATE INDEX registration_allowed_by_age ON registration_allowed (allowed_at, account)',
      'CREATE INDEX registration_invites_by_age ON registration_invites (created_at, id)',
    ],
  },
];
