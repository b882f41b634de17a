import type { Migration } from '../storage/types.ts';

export const migrations: readonly Migration[] = [
  {
    id: 501,
    name: 'channels',
    statements: [
      // Owner, moderators and head. The descriptor itself is an event; the current one is always
      // stored. A channel stays for good, closed ones too: its ID is never assigned again.
      // moderators: a JSON array of at most ten accounts, read whole by each write. needed_until:
      // when the last content is gone that was accepted under the current revision and so needs it
      // (06 §7.5).
      `CREATE TABLE channels (
        channel_id TEXT NOT NULL PRIMARY KEY,
        creator TEXT NOT NULL,
        moderators TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('active', 'closed')),
        revision BIGINT NOT NULL,
        head BIGINT NOT NULL,
        needed_until BIGINT NOT NULL
      )`,
      'CREATE INDEX channels_by_creator ON channels (creator)',
      // The timeline. target: the post of an edit or a deletion. keep_until: the promise that was
      // made at acceptance. clear_after: when a job removes the event; of deletions and superseded
      // descriptors only, for posts and edits go with the post's row. bytes: of the payload.
      `CREATE TABLE channel_events (
        channel_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('descriptor', 'post', 'edit', 'delete')),
        descriptor_rev BIGINT NOT NULL,
        target BIGINT,
        accepted_at BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        clear_after BIGINT,
        signer_device_id TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (channel_id, sequence)
      )`,
      `CREATE UNIQUE INDEX channel_descriptors ON channel_events (channel_id, descriptor_rev)
        WHERE kind = 'descriptor'`,
      `CREATE INDEX channel_edits ON channel_events (channel_id, target, sequence)
        WHERE kind = 'edit'`,
      'CREATE INDEX channel_events_by_signer ON channel_events (channel_id, signer_device_id)',
      `CREATE INDEX channel_events_to_clear ON channel_events (kind, clear_after)
        WHERE clear_after IS NOT NULL`,
      // Posts, for as long as their position and message ID mean something. status: readable, or
      // deleted by an event (06 §7.3); a post whose retention is over has no row. state: JSON of
      // what edits made of it; none before the first, and none once it is deleted. digest: of the
      // accepted object. keep_until: the post's own deadline; clear_after: when the row goes,
      // with a deletion's deadline if that is later.
      `CREATE TABLE channel_posts (
        channel_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        account TEXT NOT NULL,
        message_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('readable', 'deleted')),
        keep_until BIGINT NOT NULL,
        clear_after BIGINT NOT NULL,
        state TEXT,
        PRIMARY KEY (channel_id, sequence)
      )`,
      `CREATE UNIQUE INDEX channel_posts_by_message
        ON channel_posts (channel_id, account, message_id)`,
      'CREATE INDEX channel_posts_to_clear ON channel_posts (clear_after)',
      // Posts that are not readable any more, until a job has removed their edits, which are
      // unreadable from the moment the post is hidden.
      `CREATE TABLE channel_hidden_posts (
        channel_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        PRIMARY KEY (channel_id, sequence)
      )`,
      // One certificate for each device that signed a readable event: any version verifies them
      // all, for a device keeps its keys (06 §5.2).
      `CREATE TABLE channel_certificates (
        channel_id TEXT NOT NULL,
        device_id TEXT NOT NULL,
        certificate TEXT NOT NULL,
        PRIMARY KEY (channel_id, device_id)
      )`,
    ],
  },
  {
    id: 502,
    name: 'channels: reports',
    statements: [
      // One of an account about a post, the last it made (06 §8.10). reason: a JSON string, because
      // it may hold U+0000, which no engine stores.
      `CREATE TABLE channel_reports (
        channel_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        reason TEXT NOT NULL,
        reported_at BIGINT NOT NULL,
        clear_after BIGINT NOT NULL,
        PRIMARY KEY (channel_id, sequence, account)
      )`,
      `CREATE INDEX channel_reports_by_time
        ON channel_reports (reported_at, channel_id, sequence, account)`,
      `CREATE INDEX channel_reports_of_channel
        ON channel_reports (channel_id, reported_at, sequence, account)`,
      'CREATE INDEX channel_reports_by_account ON channel_reports (account)',
      'CREATE INDEX channel_reports_to_clear ON channel_reports (clear_after)',
    ],
  },
  {
    id: 503,
    name: 'channels: posts that are withheld',
    statements: [
      // withheld_at: when the operator withheld a post; NULL for any other. The post and its edits
      // stay until their deadline (06 §7.5), in another table that no method reads.
      'ALTER TABLE channel_posts ADD COLUMN withheld_at BIGINT',
      `CREATE INDEX channel_posts_withheld ON channel_posts (withheld_at, channel_id, sequence)
        WHERE withheld_at IS NOT NULL`,
      `CREATE TABLE channel_withheld_events (
        channel_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('post', 'edit')),
        descriptor_rev BIGINT NOT NULL,
        target BIGINT,
        accepted_at BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        clear_after BIGINT,
        signer_device_id TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (channel_id, sequence)
      )`,
      `CREATE INDEX channel_withheld_edits ON channel_withheld_events (channel_id, target, sequence)
        WHERE kind = 'edit'`,
      `CREATE INDEX channel_withheld_by_signer
        ON channel_withheld_events (channel_id, signer_device_id)`,
    ],
  },
  {
    id: 504,
    name: 'channels: deadlines channel by channel',
    statements: [
      // The job goes through what is due and comes past what it cannot do: a place in the order of
      // deadlines is one row, however many have the same deadline.
      'DROP INDEX channel_posts_to_clear',
      `CREATE INDEX channel_posts_to_clear
        ON channel_posts (clear_after, channel_id, sequence)`,
      'DROP INDEX channel_events_to_clear',
      `CREATE INDEX channel_events_to_clear
        ON channel_events (kind, clear_after, channel_id, sequence)
        WHERE clear_after IS NOT NULL`,
    ],
  },
  {
    id: 505,
    name: 'channels: when the quota of reports is free again',
    statements: [
      'DROP INDEX channel_reports_by_account',
      'CREATE INDEX channel_reports_by_account ON channel_reports (account, clear_after)',
    ],
  },
  {
    id: 506,
    name: 'channels: bytes stored of each channel',
    statements: [
      // The sum of `bytes` of the channel's events, withheld ones included.
      'ALTER TABLE channels ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0',
      `UPDATE channels SET stored_bytes =
        COALESCE((SELECT CAST(SUM(e.bytes) AS BIGINT) FROM channel_events e
          WHERE e.channel_id = channels.channel_id), 0)
        + COALESCE((SELECT CAST(SUM(w.bytes) AS BIGINT) FROM channel_withheld_events w
          WHERE w.channel_id = channels.channel_id), 0)`,
    ],
  },
];
