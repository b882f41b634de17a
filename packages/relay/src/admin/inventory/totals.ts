/** What a relay holds in all: counts, bytes of each module, growth, deadlines, queue. */
import type { JsonObject } from '@posthouse/protocol/json';
import { type MessageKey, readWaitingMessages } from '../../messages/index.ts';
import { readBoundRelay } from '../../storage/identity.ts';
import { readRestoredAt } from '../../storage/restored.ts';
import type { Reader, Storage } from '../../storage/types.ts';
import { type Amount, amountsOf, type OwnerKind } from './records.ts';
import { type Source, scan, step, sumOf } from './scan.ts';

const secondsOfDay = 86_400;
/** Before the first message that waits. */
const start: MessageKey = { sender: '', messageId: '' };
/** Owners that are remembered of each kind. */
export const mostTop = 100;

/** Accounts that are, or were, at home here; `here` are those whose route names this relay. */
const accountSums = `SELECT max(id) AS last, count(*) AS seen,
    CAST(sum(bytes) AS BIGINT) AS bytes, sum(CASE WHEN relay = ? THEN 1 ELSE 0 END) AS here,
    sum(CASE WHEN held < 0 THEN 1 ELSE 0 END) AS unconfirmed
  FROM (SELECT d.account AS id, octet_length(d.state) AS bytes, r.relay_id AS relay,
      r.held_until AS held
    FROM device_states d LEFT JOIN account_routes r ON r.account = d.account
    WHERE d.account > ? ORDER BY d.account LIMIT ?) AS rows`;
const profileSums = `SELECT max(id) AS last, count(*) AS seen, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM (SELECT account AS id, octet_length(profile) + octet_length(certificate) AS bytes
    FROM profiles WHERE account > ? ORDER BY account LIMIT ?) AS rows`;
const routeSums = `SELECT max(id) AS last, count(*) AS seen, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM (SELECT account AS id, octet_length(route) AS bytes
    FROM account_routes WHERE account > ? ORDER BY account LIMIT ?) AS rows`;
/** Each envelope once, however many timelines have it. */
const envelopeSums = `SELECT max(id) AS last, count(*) AS seen, CAST(sum(bytes) AS BIGINT) AS bytes
  FROM (SELECT envelope_id AS id, octet_length(envelope) AS bytes
    FROM message_envelopes WHERE envelope_id > ? ORDER BY envelope_id LIMIT ?) AS rows`;
const groupSums = `SELECT max(id) AS last, count(*) AS seen,
    sum(CASE WHEN status <> 'closed' THEN 1 ELSE 0 END) AS open,
    sum(CASE WHEN held > ? THEN 1 ELSE 0 END) AS waiting,
    sum(CASE WHEN ends > ? THEN 1 ELSE 0 END) AS incomplete
  FROM (SELECT group_id AS id, status, held_until AS held, losses_end_at AS ends
    FROM groups WHERE group_id > ?
    ORDER BY group_id LIMIT ?) AS rows`;
const channelSums = `SELECT max(id) AS last, count(*) AS seen,
    sum(CASE WHEN status <> 'closed' THEN 1 ELSE 0 END) AS open
  FROM (SELECT channel_id AS id, status FROM channels WHERE channel_id > ?
    ORDER BY channel_id LIMIT ?) AS rows`;

/** What is due next; each has an index. */
const deadlines = [
  'SELECT keep_until AS due FROM timeline_records ORDER BY keep_until LIMIT 1',
  'SELECT keep_until AS due FROM message_envelopes ORDER BY keep_until LIMIT 1',
  'SELECT keep_until AS due FROM group_messages ORDER BY keep_until LIMIT 1',
  'SELECT clear_after AS due FROM channel_posts ORDER BY clear_after LIMIT 1',
] as const;

/**
 * Adds up what is stored. Times are Unix seconds.
 *
 * @param storage of which each read is a step
 */
export async function readTotals(
  storage: Source & Pick<Storage, 'space'>,
  now: number,
): Promise<JsonObject> {
  const since = now - secondsOfDay;
  const relay = await storage.read(readBoundRelay);
  const states = await sumOf(storage, { sql: accountSums, values: [relay ?? ''] }, [
    ...(['bytes', 'here', 'unconfirmed'] as const),
  ]);
  const profiles = await sumOf(storage, { sql: profileSums }, ['bytes']);
  const routes = await sumOf(storage, { sql: routeSums }, ['bytes']);
  const envelopes = await sumOf(storage, { sql: envelopeSums }, ['bytes']);
  const groups = await sumOf(storage, { sql: groupSums, values: [now, now] }, [
    ...(['open', 'waiting', 'incomplete'] as const),
  ]);
  const restoredAt = await storage.read(readRestoredAt);
  const channels = await sumOf(storage, { sql: channelSums }, ['open']);
  const timelines = await readOwners(storage, 'account', since);
  const inGroups = await readOwners(storage, 'group', since);
  const inChannels = await readOwners(storage, 'channel', since);
  const { unused, bytes: database } = await storage.space();
  return {
    taken_at: now,
    accounts: states.here,
    groups: groups.open,
    channels: channels.open,
    bytes: {
      accounts: states.bytes + profiles.bytes + routes.bytes,
      messages: envelopes.bytes,
      groups: inGroups.bytes,
      channels: inChannels.bytes,
      attachments: await storage.read(readAttachments),
      database,
      database_unused: unused,
    },
    last_day: {
      timelines: timelines.recent,
      groups: inGroups.recent,
      channels: inChannels.recent,
    },
    oldest_deadline: await storage.read(readOldestDeadline),
    queue: await readQueue(storage),
    restored: {
      restored_at: restoredAt ?? null,
      accounts_unconfirmed: states.unconfirmed,
      groups_waiting: groups.waiting,
      groups_incomplete: groups.incomplete,
    },
    top: {
      accounts: timelines.top,
      groups: inGroups.top,
      channels: inChannels.top,
    },
  };
}

/** Adds up the records of all owners of a kind, and remembers those with most bytes. */
async function readOwners(storage: Source, kind: OwnerKind, since: number) {
  const sums = { bytes: 0, recent: 0 };
  let largest: Amount[] = [];
  const cut = () => {
    largest = largest.sort((a, b) => b.bytes - a.bytes).slice(0, mostTop);
  };
  await amountsOf(storage, kind, { since }, (amount) => {
    sums.bytes += amount.bytes;
    sums.recent += amount.recent;
    largest.push(amount);
    if (largest.length > 2 * mostTop) cut();
    return true;
  });
  cut();
  const top = largest.map(({ owner, records, bytes }) => ({ id: owner, records, bytes }));
  return { ...sums, top };
}

/** Counts the messages that wait for other relays. */
async function readQueue(storage: Source): Promise<JsonObject> {
  let messages = 0;
  let oldest: number | null = null;
  await scan(storage, start, {
    read: (tx, after) => readWaitingMessages(tx, { after, limit: step }),
    take(waiting) {
      messages += waiting.length;
      oldest = waiting.reduce<number | null>(
        (least, { acceptedAt }) => Math.min(least ?? acceptedAt, acceptedAt),
        oldest,
      );
      return waiting.length < step ? undefined : waiting.at(-1);
    },
  });
  return { messages, oldest };
}

async function readAttachments(tx: Reader): Promise<number> {
  const row = await tx.get<{ counted: number }>('SELECT counted FROM blob_total WHERE slot = 1');
  return row?.counted ?? 0;
}

async function readOldestDeadline(tx: Reader): Promise<number | null> {
  const found: number[] = [];
  for (const sql of deadlines) {
    const row = await tx.get<{ due: number }>(sql);
    if (row !== undefined) found.push(row.due);
  }
  return found.length === 0 ? null : Math.min(...found);
}
