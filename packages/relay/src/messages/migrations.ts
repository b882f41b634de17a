import type { Migration } from '../storage/types.ts';

export const migrations: readonly Migration[] = [
  {
    id: 301,
    name: 'messages',
    statements: [
      // Each envelope once for all its timeline records, under `envelopeId`.
      `CREATE TABLE message_envelopes (
        envelope_id TEXT NOT NULL PRIMARY KEY,
        keep_until BIGINT NOT NULL,
        envelope TEXT NOT NULL
      )`,
      'CREATE INDEX message_envelopes_by_deadline ON message_envelopes (keep_until)',
      // Certificates of senders as they were at acceptance, under the digest of their text.
      `CREATE TABLE message_certificates (
        certificate_id TEXT NOT NULL PRIMARY KEY,
        device_id TEXT NOT NULL,
        keep_until BIGINT NOT NULL,
        certificate TEXT NOT NULL
      )`,
      'CREATE INDEX message_certificates_by_deadline ON message_certificates (keep_until)',
      // Highest sequence ever assigned in an account's timeline: never lowered, never deleted.
      `CREATE TABLE timeline_heads (
        account TEXT NOT NULL PRIMARY KEY,
        head BIGINT NOT NULL
      )`,
      // bytes: UTF-8 of the envelope. visible_to: device IDs, separated by a blank.
      `CREATE TABLE timeline_records (
        account TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        accepted_at BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        envelope_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        visible_to TEXT NOT NULL,
        PRIMARY KEY (account, sequence)
      )`,
      'CREATE INDEX timeline_records_by_deadline ON timeline_records (keep_until)',
      // One row for each device a record is visible to, as long as the record is stored.
      `CREATE TABLE timeline_boxes (
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        key_box TEXT NOT NULL,
        PRIMARY KEY (account, device_id, sequence)
      )`,
      // Highest sequence of a record that was visible to the device and is gone (04 §17.4).
      `CREATE TABLE timeline_gaps (
        account TEXT NOT NULL,
        device_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        PRIMARY KEY (account, device_id)
      )`,
      // Results of message.send. request: digest of the complete parameter object.
      `CREATE TABLE sent_results (
        sender TEXT NOT NULL,
        message_id TEXT NOT NULL,
        request TEXT NOT NULL,
        accepted_at BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('delivering', 'target_accepted', 'failed')),
        error_code TEXT,
        error_message TEXT,
        PRIMARY KEY (sender, message_id),
        CHECK ((status = 'failed') = (error_code IS NOT NULL))
      )`,
      'CREATE INDEX sent_results_by_deadline ON sent_results (keep_until)',
      // The delivery queue. target: the relay whose answer to a receipt is outstanding (04 §16.3).
      `CREATE TABLE deliveries (
        sender TEXT NOT NULL,
        message_id TEXT NOT NULL,
        recipient TEXT NOT NULL,
        envelope_id TEXT NOT NULL,
        certificate_id TEXT NOT NULL,
        recipient_boxes TEXT NOT NULL,
        credential TEXT,
        deadline BIGINT NOT NULL,
        next_attempt_at BIGINT NOT NULL,
        attempts BIGINT NOT NULL,
        target TEXT,
        PRIMARY KEY (sender, message_id)
      )`,
      'CREATE INDEX deliveries_by_attempt ON deliveries (next_attempt_at)',
    ],
  },
  {
    id: 302,
    name: 'deliveries by destination, received results',
    statements: [
      // destination: the relay as last located, or empty. wake_after: an attempt is not brought
      // forward before this second when the relay is back.
      "ALTER TABLE deliveries ADD COLUMN destination TEXT NOT NULL DEFAULT ''",
      'ALTER TABLE deliveries ADD COLUMN wake_after BIGINT NOT NULL DEFAULT 0',
      'DROP INDEX deliveries_by_attempt',
      'CREATE INDEX deliveries_by_destination ON deliveries (destination, next_attempt_at)',
      // received: digest of envelope and recipient boxes if the recipient received it here.
      'ALTER TABLE sent_results ADD COLUMN received TEXT',
      // Results of message.deliver. request: digest of the complete parameter object. content:
      // digest of envelope and recipient boxes.
      `CREATE TABLE received_results (
        sender TEXT NOT NULL,
        message_id TEXT NOT NULL,
        request TEXT NOT NULL,
        content TEXT NOT NULL,
        accepted_at BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        PRIMARY KEY (sender, message_id)
      )`,
      'CREATE INDEX received_results_by_deadline ON received_results (keep_until)',
    ],
  },
  {
    id: 303,
    name: 'first sequences of new timelines',
    statements: [
      // The first sequence that a timeline without a head may assign; no row before the first restore.
      `CREATE TABLE timeline_floor (
        slot BIGINT NOT NULL PRIMARY KEY CHECK (slot = 1),
        floor BIGINT NOT NULL
      )`,
    ],
  },
  {
    id: 304,
    name: 'waiting deliveries by recipient',
    statements: [
      // Of those that no relay may have received: only these move when their recipient is located.
      `CREATE INDEX deliveries_by_recipient ON deliveries (destination, recipient, wake_after)
        WHERE target IS NULL`,
    ],
  },
];
