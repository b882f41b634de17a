import type { Migration } from '../storage/types.ts';

export const migrations: readonly Migration[] = [
  {
    id: 401,
    name: 'groups',
    statements: [
      // The projection of the chain (05 §1.1) with counts, so that no call has to count.
      // access_ended: sequence of the last event that ended a right to read.
      // box_set: client boxes in force; boxes of a staged rotation are a set of their own.
      `CREATE TABLE groups (
        group_id TEXT NOT NULL PRIMARY KEY,
        status TEXT NOT NULL CHECK (status IN ('active', 'closed')),
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        description TEXT NOT NULL,
        member_capacity BIGINT NOT NULL,
        invite_policy TEXT NOT NULL,
        commitment TEXT NOT NULL,
        chain_head TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        member_count BIGINT NOT NULL,
        ban_count BIGINT NOT NULL,
        access_ended BIGINT NOT NULL,
        box_set BIGINT NOT NULL,
        last_box_set BIGINT NOT NULL
      )`,
      // since: sequence of the event that began the membership.
      `CREATE TABLE group_members (
        group_id TEXT NOT NULL,
        account TEXT NOT NULL,
        role TEXT NOT NULL CHECK (role IN ('owner', 'administrator', 'member')),
        member_key TEXT NOT NULL,
        since BIGINT NOT NULL,
        PRIMARY KEY (group_id, account)
      )`,
      `CREATE INDEX group_managers ON group_members (group_id, account) WHERE role <> 'member'`,
      `CREATE TABLE group_bans (
        group_id TEXT NOT NULL,
        account TEXT NOT NULL,
        PRIMARY KEY (group_id, account)
      )`,
      // Certificates as they were at acceptance, under the digest of their text; kept for good,
      // for management events are verified with them for good (05 §11.2).
      `CREATE TABLE group_certificates (
        certificate_id TEXT NOT NULL PRIMARY KEY,
        certificate TEXT NOT NULL
      )`,
      // Management events, permanent. No signer: a rotation the relay made. bytes: of the payload.
      `CREATE TABLE group_events (
        group_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        accepted_at BIGINT NOT NULL,
        signer_device_id TEXT,
        certificate_id TEXT,
        bytes BIGINT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (group_id, sequence)
      )`,
      // Messages share the sequence with the events and go when their retention is over, so that
      // neither kind stands in the way of a page of the other.
      `CREATE TABLE group_messages (
        group_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        accepted_at BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        signer_device_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (group_id, sequence)
      )`,
      'CREATE INDEX group_messages_by_deadline ON group_messages (keep_until)',
      // Results of group.message.send by sending account, whatever the group (05 §13.28).
      // envelope: digest of the accepted one.
      `CREATE TABLE group_sent (
        account TEXT NOT NULL,
        message_id TEXT NOT NULL,
        group_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        envelope TEXT NOT NULL,
        keep_until BIGINT NOT NULL,
        PRIMARY KEY (account, message_id)
      )`,
      'CREATE INDEX group_sent_by_deadline ON group_sent (keep_until)',
    ],
  },
  {
    id: 402,
    name: 'groups: keys and access',
    statements: [
      // keep_until: at least until the last message of the epoch has expired (05 §11.3).
      // superseded: 1 once a later epoch began; the current one is kept whatever its time is.
      `CREATE TABLE group_epochs (
        group_id TEXT NOT NULL,
        epoch BIGINT NOT NULL,
        relay_secret TEXT NOT NULL,
        box_set BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        superseded BIGINT NOT NULL,
        PRIMARY KEY (group_id, epoch)
      )`,
      'CREATE INDEX group_epochs_by_deadline ON group_epochs (keep_until) WHERE superseded = 1',
      // Client secret boxes. One is a member's from from_epoch on, until the set has a later one.
      // Those a rotation brought are from epoch 0: their set begins with the rotation.
      `CREATE TABLE group_boxes (
        group_id TEXT NOT NULL,
        box_set BIGINT NOT NULL,
        account TEXT NOT NULL,
        from_epoch BIGINT NOT NULL,
        box TEXT NOT NULL,
        PRIMARY KEY (group_id, box_set, account, from_epoch)
      )`,
      // The one staged rotation of a group (05 §13.26). box_count: accounts its set has boxes for.
      `CREATE TABLE group_stagings (
        group_id TEXT NOT NULL PRIMARY KEY,
        account TEXT NOT NULL,
        base_commitment TEXT NOT NULL,
        commitment TEXT NOT NULL,
        expires_at BIGINT NOT NULL,
        box_set BIGINT NOT NULL,
        box_count BIGINT NOT NULL
      )`,
      // Sets of boxes that nothing refers to any more, until a job has removed their boxes.
      `CREATE TABLE group_dropped_sets (
        group_id TEXT NOT NULL,
        box_set BIGINT NOT NULL,
        PRIMARY KEY (group_id, box_set)
      )`,
      // Access intervals (05 §10), inclusive; open without an end. authority: 0 once its ranges
      // must not be read any more. delivered_epoch: newest epoch whose relay secret the device was
      // given in this interval.
      `CREATE TABLE group_intervals (
        group_id TEXT NOT NULL,
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        message_from BIGINT NOT NULL,
        message_to BIGINT,
        key_from BIGINT NOT NULL,
        key_to BIGINT,
        authority BIGINT NOT NULL,
        delivered_epoch BIGINT,
        PRIMARY KEY (group_id, account, device_id, message_from),
        CHECK ((message_to IS NULL) = (key_to IS NULL))
      )`,
      `CREATE INDEX group_intervals_by_device ON group_intervals (account, device_id)
        WHERE message_to IS NULL`,
    ],
  },
  {
    id: 403,
    name: 'groups: invitations, applications, recovery',
    statements: [
      // live: 0 once it was revoked, used up, or found expired. pending: applications that rest on
      // it, so that a list finds them without looking at those of dead invitations. bytes: of the
      // text.
      `CREATE TABLE group_invites (
        group_id TEXT NOT NULL,
        invite_id TEXT NOT NULL,
        inviter TEXT NOT NULL,
        invitee TEXT,
        max_uses BIGINT,
        expires_at BIGINT NOT NULL,
        uses BIGINT NOT NULL,
        revoked BIGINT NOT NULL,
        live BIGINT NOT NULL,
        pending BIGINT NOT NULL,
        signer_device_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        invite TEXT NOT NULL,
        PRIMARY KEY (group_id, invite_id)
      )`,
      'CREATE INDEX group_invites_live ON group_invites (group_id, invite_id) WHERE live = 1',
      `CREATE INDEX group_invites_by_inviter ON group_invites (group_id, inviter, invite_id)
        WHERE live = 1`,
      `CREATE INDEX group_invites_awaited ON group_invites (group_id, invite_id)
        WHERE live = 1 AND pending > 0`,
      'CREATE INDEX group_invites_to_end ON group_invites (expires_at) WHERE live = 1',
      `CREATE INDEX group_invites_to_clear ON group_invites (group_id, invite_id)
        WHERE live = 0 AND pending > 0`,
      'CREATE INDEX group_invites_to_forget ON group_invites (expires_at) WHERE live = 0',
      // One pending application of an account; counts for nothing once its invitation is not live.
      // An application may be large: member_key is what an approval asks of it, digest shows
      // whether it is still the same, bytes is what it adds to a page, certificate included.
      `CREATE TABLE group_applications (
        group_id TEXT NOT NULL,
        account TEXT NOT NULL,
        invite_id TEXT NOT NULL,
        device_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        member_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        accepted_at BIGINT NOT NULL,
        bytes BIGINT NOT NULL,
        application TEXT NOT NULL,
        PRIMARY KEY (group_id, account)
      )`,
      `CREATE INDEX group_applications_by_invite
        ON group_applications (group_id, invite_id, account)`,
      // One pending key recovery request of a member. A request may be large: member_key is what
      // an approval asks of it, digest shows whether it is still the same; bytes: of the request.
      `CREATE TABLE group_recoveries (
        group_id TEXT NOT NULL,
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        accepted_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        member_key TEXT NOT NULL,
        digest TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        request TEXT NOT NULL,
        PRIMARY KEY (group_id, account)
      )`,
      'CREATE INDEX group_recoveries_by_deadline ON group_recoveries (expires_at)',
    ],
  },
  {
    id: 404,
    name: 'groups: deadlines group by group',
    statements: [
      // Jobs go through what is due and come past what they cannot do: a place in the order of
      // deadlines is one row, however many have the same deadline.
      'DROP INDEX group_invites_to_end',
      `CREATE INDEX group_invites_to_end ON group_invites (expires_at, group_id, invite_id)
        WHERE live = 1`,
      'DROP INDEX group_recoveries_by_deadline',
      `CREATE INDEX group_recoveries_by_deadline
        ON group_recoveries (expires_at, group_id, account)`,
      'DROP INDEX group_epochs_by_deadline',
      `CREATE INDEX group_epochs_by_deadline ON group_epochs (keep_until, group_id, epoch)
        WHERE superseded = 1`,
      'DROP INDEX group_intervals_by_device',
      `CREATE INDEX group_intervals_by_device ON group_intervals (account, device_id, group_id)
        WHERE message_to IS NULL`,
      // cleared: 1 once its time is over and its boxes were given up. What it was is kept: a
      // preparation that has expired cannot be begun again (05 §13.26).
      'ALTER TABLE group_stagings ADD COLUMN cleared BIGINT NOT NULL DEFAULT 0',
      `CREATE INDEX group_stagings_to_clear ON group_stagings (expires_at, group_id)
        WHERE cleared = 0`,
    ],
  },
  {
    id: 405,
    name: 'groups: any text',
    statements: [
      // Names and descriptions may hold U+0000, which no engine stores: they are written as
      // `storableText` does, which needs a sign of its own (05 §4.1).
      `UPDATE groups
        SET name = replace(name, '%', '%25'), description = replace(description, '%', '%25')
        WHERE name <> replace(name, '%', '') OR description <> replace(description, '%', '')`,
    ],
  },
  {
    id: 406,
    name: 'groups: whose they are',
    statements: ['CREATE INDEX groups_by_owner ON groups (owner)'],
  },
  {
    id: 407,
    name: 'groups: certificates of each group',
    statements: [
      // Certificates as they were at acceptance, under the digest of their text, of each group by
      // itself: a write that holds the group knows that no other write refers to one. needed_until: of
      // messages and pending records the latest deadline; nothing if a management event refers
      // to it, for those are verified for good (05 §11.2).
      `CREATE TABLE group_signers (
        group_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        certificate TEXT NOT NULL,
        needed_until BIGINT,
        PRIMARY KEY (group_id, certificate_id)
      )`,
      `INSERT INTO group_signers (group_id, certificate_id, certificate, needed_until)
        SELECT r.group_id, r.certificate_id, c.certificate,
            CASE WHEN MAX(r.is_event) = 1 THEN NULL ELSE MAX(r.deadline) END
          FROM (
            SELECT group_id, certificate_id, 1 AS is_event, 0 AS deadline FROM group_events
              WHERE certificate_id IS NOT NULL
            UNION ALL SELECT group_id, certificate_id, 0, keep_until FROM group_messages
            UNION ALL SELECT group_id, certificate_id, 0, expires_at FROM group_invites
            UNION ALL SELECT group_id, certificate_id, 0, accepted_at FROM group_applications
            UNION ALL SELECT group_id, certificate_id, 0, expires_at FROM group_recoveries
          ) AS r
          JOIN group_certificates c ON c.certificate_id = r.certificate_id
          GROUP BY r.group_id, r.certificate_id, c.certificate`,
      'DROP TABLE group_certificates',
      'ALTER TABLE group_signers RENAME TO group_certificates',
      `CREATE INDEX group_certificates_to_clear
        ON group_certificates (needed_until, group_id, certificate_id)
        WHERE needed_until IS NOT NULL`,
      `CREATE INDEX group_invites_by_certificate ON group_invites (group_id, certificate_id)
        WHERE live = 1`,
      `CREATE INDEX group_applications_by_certificate
        ON group_applications (group_id, certificate_id)`,
      'CREATE INDEX group_recoveries_by_certificate ON group_recoveries (group_id, certificate_id)',
    ],
  },
  {
    id: 408,
    name: 'groups: what a restore lost',
    statements: [
      // Sequence and epoch of the state to which the host was put back, until the chain goes on.
      'ALTER TABLE groups ADD COLUMN lost_after BIGINT',
      'ALTER TABLE groups ADD COLUMN lost_epoch BIGINT',
    ],
  },
  {
    id: 409,
    name: 'groups: bytes stored of each group',
    statements: [
      // The sum of `bytes` of the group's events and messages.
      'ALTER TABLE groups ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0',
      `UPDATE groups SET stored_bytes =
        COALESCE((SELECT CAST(SUM(e.bytes) AS BIGINT) FROM group_events e
          WHERE e.group_id = groups.group_id), 0)
        + COALESCE((SELECT CAST(SUM(m.bytes) AS BIGINT) FROM group_messages m
          WHERE m.group_id = groups.group_id), 0)`,
    ],
  },
  {
    id: 410,
    name: 'groups: what each restore lost',
    statements: [
      // What restores lost of a group: the sequences above lost_after and below lost_end, and as many
      // epochs above lost_epoch. Until ends_at, Unix seconds, the owner may hand their events back.
      `CREATE TABLE group_losses (
        group_id TEXT NOT NULL,
        lost_after BIGINT NOT NULL,
        lost_epoch BIGINT NOT NULL,
        lost_end BIGINT NOT NULL,
        ends_at BIGINT NOT NULL,
        PRIMARY KEY (group_id, lost_after)
      )`,
      // So far, each restore left 2^32 unused, and appended an event.
      `INSERT INTO group_losses (group_id, lost_after, lost_epoch, lost_end, ends_at)
        SELECT g.group_id, g.lost_after, g.lost_epoch, g.lost_after + 4294967296,
            e.accepted_at + 2592000
          FROM groups g JOIN group_events e
            ON e.group_id = g.group_id AND e.sequence = g.lost_after + 4294967296
          WHERE g.lost_after IS NOT NULL`,
      'ALTER TABLE groups DROP COLUMN lost_after',
      'ALTER TABLE groups DROP COLUMN lost_epoch',
      // Until the chain goes on: when the last of these losses ends.
      'ALTER TABLE groups ADD COLUMN losses_end_at BIGINT',
      `UPDATE groups SET losses_end_at =
        (SELECT l.ends_at FROM group_losses l WHERE l.group_id = groups.group_id)`,
    ],
  },
  {
    id: 411,
    name: 'groups: wait for the owner after a restore',
    statements: [
      // Until when only the owner changes the group, Unix seconds; NULL if it does not wait.
      'ALTER TABLE groups ADD COLUMN held_until BIGINT',
    ],
  },
  {
    id: 412,
    name: 'groups: what devices of the owner know after a restore',
    statements: [
      // Devices of the owner that read on while the group waits for the owner. knows_loss: 1 for one
      // that asked for an event that the restore lost.
      `CREATE TABLE group_owner_reads (
        group_id TEXT NOT NULL,
        device_id TEXT NOT NULL,
        knows_loss BIGINT NOT NULL,
        PRIMARY KEY (group_id, device_id)
      )`,
    ],
  },
  {
    id: 413,
    name: 'groups: intervals with authority',
    statements: [
      `CREATE INDEX group_intervals_in_force
        ON group_intervals (group_id, account, device_id, message_from) WHERE authority = 1`,
    ],
  },
];
