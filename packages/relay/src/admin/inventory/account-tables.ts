/**
 * What the database has of an account, table by table: the one list, by which an account is exported and by
 * which tests check what is left of one that was deleted.
 */
import type { DeviceCertificate } from '@posthouse/protocol';
import type { Row, SqlValue } from '../../storage/types.ts';

/** By what rows are found to be of an account. */
export interface AccountKeys {
  readonly account: string;
  /** IDs of its devices, also former ones: each is derived from its certificate, so is of no other account. */
  readonly devices: readonly string[];
  /** IDs of the certificates of its devices that groups have. */
  readonly certificates: readonly string[];
}

/** Which rows of a table are of an account. */
interface Selection {
  /** A condition; `undefined` if no row can be. */
  readonly of: (keys: AccountKeys) => { sql: string; values: readonly SqlValue[] } | undefined;
  /**
   * Whether an index leads to these rows; without one, the whole table is read in short steps.
   */
  readonly isIndexed: boolean;
  /** Which of the rows found are, if the condition does not say it alone. */
  readonly isOf?: (row: Row, keys: AccountKeys) => boolean;
}

/** Rows of an account that a person is given. */
export interface ExportedTable {
  readonly table: string;
  /** The `kind` of a line for a row. */
  readonly kind: string;
  readonly rows: Selection;
  /** Columns that a line has. */
  readonly columns: readonly string[];
  /** Those of JSON: a line has their value. */
  readonly json?: readonly string[];
  /** Those that were stored by `storableText`. */
  readonly escaped?: readonly string[];
  /** Whether lines have the sealed message of the row and its sender's certificate in addition. */
  readonly hasEnvelope?: boolean;
  /** Why rows stay after `account delete`; without it none does, at the latest when jobs have run. */
  readonly stays?: string;
  /** Why rows of others may name the account. */
  readonly others?: string;
}

/** A table of which a person is given nothing. */
interface OtherTable {
  readonly table: string;
  /** Why. */
  readonly notExported: string;
  /** Why it may name an account after `account delete`. */
  readonly stays: string;
}

/** Columns with the account's ID alone. */
const byAccount = (column = 'account', isIndexed = true): Selection => ({
  of: ({ account }) => ({ sql: `${column} = ?`, values: [account] }),
  isIndexed,
});

const scanned = (column = 'account') => byAccount(column, false);

const bySigner: Selection = {
  of: ({ devices }) => oneOf('signer_device_id', devices),
  isIndexed: false,
};

const byReader: Selection = {
  of: ({ devices }) => oneOf('device_id', devices),
  isIndexed: false,
};

const bySigningCertificate: Selection = {
  of: ({ certificates }) => oneOf('certificate_id', certificates),
  isIndexed: false,
};

function oneOf(column: string, values: readonly string[]) {
  if (values.length === 0) return undefined;
  return { sql: `${column} IN (${values.map(() => '?').join(', ')})`, values };
}

/** Certificates of the account's devices. */
const byCertificate: Selection = {
  of: ({ account }) => ({ sql: 'certificate LIKE ?', values: [`%"${account}"%`] }),
  isIndexed: false,
  isOf: ({ certificate }, { account }) => isCertificateOf(String(certificate), account),
};

/** A certificate of another account may name this one in a member of its own. */
function isCertificateOf(text: string, account: string): boolean {
  return (JSON.parse(text) as DeviceCertificate).account === account;
}

const ofGroup = 'it is part of a group, which belongs to all its members';
const ofChannel = 'it is part of a channel, which belongs to all who read it';
const repeated = 'an identical request is answered as before until its retention is over (02 §2.2)';

/** Tables that name no account. */
export const tablesOfNoAccount: readonly string[] = [
  ...['account_arrivals', 'auth_session_ends_head', 'blob_total', 'block_changes'],
  ...['channel_hidden_posts', 'group_dropped_sets', 'group_epochs', 'group_losses'],
  ...['peer_connections', 'reachability_requests', 'registration_invites', 'relay_clock'],
  ...['relay_facts', 'relay_move', 'relays', 'schema_migrations', 'timeline_floor'],
];

/** Every other table of a relay's database. */
export const accountTables: readonly (ExportedTable | OtherTable)[] = [
  {
    ...{ table: 'device_states', kind: 'device_state', rows: byAccount() },
    ...{ columns: ['revision', 'state'], json: ['state'] },
  },
  {
    ...{ table: 'devices', kind: 'device', rows: byAccount() },
    columns: ['device_id', 'not_before', 'expires_at', 'certificate'],
    json: ['certificate'],
  },
  {
    ...{ table: 'inactive_devices', kind: 'inactive_device', rows: byAccount() },
    columns: ['device_id'],
  },
  {
    ...{ table: 'staged_states', kind: 'device_state_before_route', rows: byAccount() },
    ...{ columns: ['revision', 'staged_until', 'address', 'since', 'state'], json: ['state'] },
  },
  {
    ...{ table: 'seen_states', kind: 'device_state_seen', rows: byAccount() },
    columns: ['revision'],
    stays: 'the revision of its last device state: no earlier one is accepted again (03 §3.4)',
  },
  {
    ...{ table: 'profiles', kind: 'profile', rows: byAccount() },
    columns: ['updated_at', 'public_discovery', 'profile', 'certificate'],
    json: ['profile', 'certificate'],
  },
  {
    ...{ table: 'account_routes', kind: 'route', rows: byAccount() },
    columns: ['revision', 'relay_id', 'previous_relay', 'expires_at', 'conflict', 'route'],
    json: ['route'],
    stays: 'the revision of its last route: no earlier one is accepted again (07 §C6)',
  },
  {
    table: 'route_keys',
    notExported: 'a hash of the account ID, by which other relays look for its route',
    stays: 'a hash of the account ID, which other relays may still look for',
  },
  {
    ...{ table: 'remote_devices', kind: 'device_at_other_relay', rows: byAccount() },
    columns: ['device_id', 'relay_id', 'status', 'expires_at', 'confirmed_at', 'certificate'],
    json: ['certificate'],
    stays:
      'what another relay said of a device that uses groups or channels here; a job forgets it',
  },
  {
    ...{ table: 'status_watchers', kind: 'device_asked_for', rows: byAccount() },
    columns: ['device_id', 'relay_id', 'asked_at'],
    stays: 'relays that are told of the end of a device; a job forgets them',
  },
  {
    ...{ table: 'auth_sessions', kind: 'session', rows: byAccount() },
    columns: ['mode', 'device_id', 'origin', 'opened_at', 'expires_at'],
  },
  {
    table: 'auth_challenges',
    notExported: 'secrets of sign-ins that are not complete; they end within minutes',
    stays: 'a sign-in that is not complete; it fails, and ends within minutes',
  },
  {
    table: 'auth_session_ends',
    notExported: 'a list by which processes of the relay end sessions',
    stays: 'processes of the relay may not have read it yet; the newest 4,096 are kept',
  },
  {
    ...{ table: 'timeline_records', kind: 'message', rows: byAccount(), hasEnvelope: true },
    columns: ['sequence', 'accepted_at', 'keep_until', 'bytes', 'visible_to'],
  },
  {
    ...{ table: 'timeline_boxes', kind: 'message_key_box', rows: byAccount() },
    columns: ['device_id', 'sequence', 'key_box'],
    json: ['key_box'],
  },
  {
    ...{ table: 'timeline_gaps', kind: 'messages_expired', rows: byAccount() },
    columns: ['device_id', 'sequence'],
    stays:
      'up to which number messages of a device are gone: one that comes back learns that it missed them',
  },
  {
    ...{ table: 'timeline_heads', kind: 'last_message', rows: byAccount() },
    columns: ['head'],
    stays: 'the number of its last message: none is given twice (04 §17.1)',
  },
  {
    table: 'message_envelopes',
    notExported: 'part of the lines of messages',
    stays: 'the encrypted text of a message: the other person may have the same one',
  },
  {
    table: 'message_certificates',
    notExported: 'part of the lines of messages',
    stays: 'the public certificate of a sender, for the messages that others have from it',
  },
  {
    ...{ table: 'sent_results', kind: 'message_result', rows: byAccount('sender') },
    columns: [
      ...['message_id', 'accepted_at', 'keep_until', 'status', 'error_code', 'error_message'],
    ],
    stays: repeated,
  },
  {
    ...{ table: 'received_results', kind: 'delivered_message_result', rows: byAccount('sender') },
    columns: ['message_id', 'accepted_at', 'keep_until'],
    stays: repeated,
  },
  {
    ...{ table: 'deliveries', kind: 'waiting_message', rows: byAccount('sender') },
    columns: ['message_id', 'recipient', 'deadline', 'next_attempt_at', 'attempts'],
    others: 'a message that another account sends to it, until it fails',
  },
  {
    ...{ table: 'blobs', kind: 'attachment', rows: byAccount() },
    columns: ['name', 'bytes', 'counted', 'keep_until', 'state'],
  },
  {
    ...{ table: 'blob_usage', kind: 'attachment_bytes', rows: byAccount() },
    columns: ['counted'],
  },
  {
    table: 'daily_bytes',
    kind: 'bytes_of_day',
    rows: {
      of: ({ account }) => ({
        sql: 'owner IN (?, ?) OR owner LIKE ?',
        values: [`account ${account}`, `inbox ${account}`, `inbox ${account} %`],
      }),
      isIndexed: false,
      // SQLite compares without regard to case.
      isOf: ({ owner }, { account }) => String(owner).includes(account),
    },
    columns: ['owner', 'day', 'bytes'],
    stays: 'how many bytes it stored on the last days, so that a deletion does not raise a limit',
  },
  {
    ...{ table: 'registration_allowed', kind: 'right_to_come', rows: byAccount() },
    columns: ['allowed_at'],
  },
  {
    ...{ table: 'registration_claims', kind: 'invite_shown', rows: byAccount() },
    columns: ['claimed_at'],
  },
  {
    ...{ table: 'registration_requests', kind: 'request_to_come', rows: byAccount() },
    columns: ['address', 'asked_at'],
  },
  {
    table: 'blocks',
    kind: 'block',
    rows: {
      of: ({ account }) => ({ sql: "kind = 'account' AND id = ?", values: [account] }),
      isIndexed: true,
    },
    columns: ['reason', 'created_at', 'ends_at'],
    stays: 'the operator keeps the account out; the block of the deletion itself ends by itself',
  },
  {
    ...{ table: 'group_members', kind: 'group_membership', rows: scanned() },
    columns: ['group_id', 'role', 'since', 'member_key'],
    json: ['member_key'],
    stays: ofGroup,
  },
  {
    ...{ table: 'groups', kind: 'own_group', rows: byAccount('owner') },
    columns: ['group_id', 'status', 'name', 'description', 'member_count'],
    escaped: ['name', 'description'],
    stays: ofGroup,
  },
  {
    ...{ table: 'group_bans', kind: 'group_ban', rows: scanned() },
    ...{ columns: ['group_id'], stays: ofGroup },
  },
  {
    ...{ table: 'group_intervals', kind: 'group_access', rows: scanned() },
    columns: ['group_id', 'device_id', 'message_from', 'message_to', 'key_from', 'key_to'],
    stays: ofGroup,
  },
  {
    ...{ table: 'group_boxes', kind: 'group_key_box', rows: scanned() },
    columns: ['group_id', 'box_set', 'from_epoch', 'box'],
    json: ['box'],
    stays: ofGroup,
  },
  {
    ...{ table: 'group_certificates', kind: 'group_certificate', rows: byCertificate },
    ...{ columns: ['group_id', 'certificate'], json: ['certificate'], stays: ofGroup },
  },
  {
    ...{ table: 'group_events', kind: 'group_event', rows: bySigningCertificate },
    columns: ['group_id', 'sequence', 'epoch', 'accepted_at', 'payload'],
    ...{ json: ['payload'], stays: ofGroup },
  },
  {
    ...{ table: 'group_messages', kind: 'group_message', rows: bySigningCertificate },
    columns: ['group_id', 'sequence', 'epoch', 'accepted_at', 'keep_until', 'payload'],
    ...{ json: ['payload'], stays: ofGroup },
  },
  {
    ...{ table: 'group_sent', kind: 'group_message_result', rows: byAccount() },
    ...{ columns: ['message_id', 'group_id', 'sequence', 'keep_until'], stays: repeated },
  },
  {
    table: 'group_invites',
    kind: 'group_invite',
    rows: {
      of: ({ account }) => ({ sql: 'inviter = ? OR invitee = ?', values: [account, account] }),
      isIndexed: false,
    },
    columns: ['group_id', 'expires_at', 'uses', 'max_uses', 'revoked', 'invite'],
    ...{ json: ['invite'], stays: ofGroup },
  },
  {
    ...{ table: 'group_applications', kind: 'group_application', rows: scanned() },
    columns: ['group_id', 'device_id', 'accepted_at', 'application'],
    ...{ json: ['application'], stays: ofGroup },
  },
  {
    ...{ table: 'group_recoveries', kind: 'group_key_request', rows: scanned() },
    columns: ['group_id', 'device_id', 'accepted_at', 'expires_at', 'request'],
    ...{ json: ['request'], stays: ofGroup },
  },
  {
    ...{ table: 'group_owner_reads', kind: 'owner_read_after_restore', rows: byReader },
    ...{ columns: ['group_id', 'device_id', 'knows_loss'], stays: ofGroup },
  },
  {
    ...{ table: 'group_stagings', kind: 'group_rotation', rows: scanned() },
    ...{ columns: ['group_id', 'expires_at', 'box_count'], stays: ofGroup },
  },
  {
    table: 'channels',
    kind: 'managed_channel',
    rows: {
      of: ({ account }) => ({
        sql: 'creator = ? OR moderators LIKE ?',
        values: [account, `%"${account}"%`],
      }),
      isIndexed: false,
    },
    ...{ columns: ['channel_id', 'status', 'revision', 'head'], stays: ofChannel },
  },
  {
    ...{ table: 'channel_posts', kind: 'channel_post', rows: scanned() },
    columns: [
      'channel_id',
      'sequence',
      'message_id',
      'status',
      'keep_until',
      'withheld_at',
      'state',
    ],
    ...{ json: ['state'], stays: ofChannel },
  },
  {
    ...{ table: 'channel_events', kind: 'channel_event', rows: bySigner },
    columns: ['channel_id', 'sequence', 'kind', 'accepted_at', 'keep_until', 'payload'],
    ...{ json: ['payload'], stays: ofChannel },
  },
  {
    table: 'channel_withheld_events',
    kind: 'withheld_channel_event',
    rows: bySigner,
    columns: ['channel_id', 'sequence', 'accepted_at', 'keep_until', 'payload'],
    ...{ json: ['payload'], stays: ofChannel },
  },
  {
    ...{ table: 'channel_certificates', kind: 'channel_certificate', rows: byCertificate },
    ...{ columns: ['channel_id', 'certificate'], json: ['certificate'], stays: ofChannel },
  },
  {
    ...{ table: 'channel_reports', kind: 'report', rows: byAccount('account') },
    columns: ['channel_id', 'sequence', 'device_id', 'reason', 'reported_at'],
    json: ['reason'],
  },
  {
    table: 'missed_relays',
    notExported: 'the position of a job in the list of accounts',
    stays: 'the position of a job in the list of accounts, until it goes on',
  },
];
