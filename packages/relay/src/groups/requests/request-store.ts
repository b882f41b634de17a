/**
 * All SQL that the two kinds of request to a group share: applications to join it and requests for
 * a new member key. An account has one pending request of each kind in a group.
 */
import { digest } from '../../digest.ts';
import { chunks, largeRows, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, SqlValue, Writer } from '../../storage/types.ts';

/** How the kinds of request are stored. */
const requestTables = {
  application: {
    table: 'group_applications',
    /** Column of the request's Canonical JSON. */
    text: 'application',
    /** The column that only this kind has, and the member that holds it. */
    own: 'invite_id',
    ownName: 'inviteId',
    /** Whether the stored size includes the certificate. */
    countsCertificate: true,
  },
  recovery: {
    table: 'group_recoveries',
    text: 'request',
    own: 'expires_at',
    ownName: 'expiresAt',
    countsCertificate: false,
  },
} as const;

export type RequestKind = keyof typeof requestTables;

/** A pending request without its text, which may be large. */
interface StoredRequest {
  readonly account: string;
  /** The device that signed it. */
  readonly deviceId: string;
  readonly certificateId: string;
  /** The member key it asks for. */
  readonly memberKey: string;
  /** Unix seconds. */
  readonly acceptedAt: number;
  /** Of its Canonical JSON. */
  readonly digest: string;
  /** Size in UTF-8. */
  readonly bytes: number;
}

/** An application; it is worth as much as its invitation (05 §8.2). */
export interface PendingApplication extends StoredRequest {
  readonly inviteId: string;
}

/** A request for a new member key. */
export interface PendingRecovery extends StoredRequest {
  /** Unix seconds; from then on it no longer counts. */
  readonly expiresAt: number;
}

interface PendingRequests {
  readonly application: PendingApplication;
  readonly recovery: PendingRecovery;
}

/** A pending request of a kind. */
export type PendingRequest<K extends RequestKind = RequestKind> = PendingRequests[K];

/** Columns of a pending request; the table's alias is `r`. */
export function requestColumns(kind: RequestKind): string {
  const { own, ownName } = requestTables[kind];
  return `r.account, r.${own} AS "${ownName}", r.device_id AS "deviceId",
    r.certificate_id AS "certificateId", r.member_key AS "memberKey",
    r.accepted_at AS "acceptedAt", r.digest, r.bytes`;
}

/** Requests of one kind in a group, by the accounts that made them. */
export interface RequestsOf<K extends RequestKind = RequestKind> {
  readonly kind: K;
  readonly groupId: string;
  readonly accounts: readonly string[];
}

/** Reads the stored requests of accounts, by account, also those that no longer count. */
export async function readRequests<K extends RequestKind>(
  tx: Reader,
  { kind, groupId, accounts }: RequestsOf<K>,
): Promise<Map<string, PendingRequest<K>>> {
  const found = new Map<string, PendingRequest<K>>();
  for (const batch of chunks(accounts)) {
    const rows = await tx.all<PendingRequest<K> & Row>(
      `SELECT ${requestColumns(kind)} FROM ${requestTables[kind].table} r
        WHERE r.group_id = ? AND r.account IN (${placeholders(batch)})`,
      groupId,
      ...batch,
    );
    for (const row of rows) found.set(row.account, row);
  }
  return found;
}

/** A request and the certificate it was accepted with, both Canonical JSON. */
export interface RequestTexts {
  readonly text: string;
  readonly certificate: string;
}

/** Reads the texts of stored requests, by account. */
export async function readRequestTexts(
  tx: Reader,
  { kind, groupId, accounts }: RequestsOf,
): Promise<Map<string, RequestTexts>> {
  const { table, text } = requestTables[kind];
  const texts = new Map<string, RequestTexts>();
  for (const batch of chunks(accounts)) {
    const rows = await tx.all<RequestTexts & Row & { account: string }>(
      `SELECT r.account, r.${text} AS text, c.certificate FROM ${table} r
        JOIN group_certificates c
          ON c.group_id = r.group_id AND c.certificate_id = r.certificate_id
        WHERE r.group_id = ? AND r.account IN (${placeholders(batch)})`,
      groupId,
      ...batch,
    );
    for (const row of rows) texts.set(row.account, row);
  }
  return texts;
}

/** A request to store. */
export type NewRequest<K extends RequestKind> = Omit<PendingRequest<K>, 'digest' | 'bytes'> &
  RequestTexts;

/** Stores a request; an earlier one of the same account and kind is replaced. */
export async function writeRequest<K extends RequestKind>(
  tx: Writer,
  { kind, groupId }: Pick<RequestsOf<K>, 'kind' | 'groupId'>,
  request: NewRequest<K>,
): Promise<void> {
  const { table, text, own, ownName, countsCertificate } = requestTables[kind];
  const counted = countsCertificate ? request.text + request.certificate : request.text;
  const values: Record<string, SqlValue> = {
    [own]: (request as unknown as Record<string, SqlValue>)[ownName] as SqlValue,
    device_id: request.deviceId,
    certificate_id: request.certificateId,
    member_key: request.memberKey,
    digest: digest(request.text),
    accepted_at: request.acceptedAt,
    bytes: Buffer.byteLength(counted),
    [text]: request.text,
  };
  const columns = Object.keys(values);
  await tx.run(
    `INSERT INTO ${table} (group_id, account, ${columns.join(', ')})
      VALUES (?, ?, ${placeholders(columns)})
      ON CONFLICT (group_id, account) DO UPDATE
        SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}`,
    groupId,
    request.account,
    ...Object.values(values),
  );
}

/** A request that was deleted. */
export type DeletedRequest<K extends RequestKind> = Pick<
  PendingRequest<K>,
  'account' | ((typeof requestTables)[K]['ownName'] & keyof PendingRequest<K>)
>;

/** Deletes the requests of accounts, and returns those that there were. */
export async function deleteRequests<K extends RequestKind>(
  tx: Writer,
  { kind, groupId, accounts }: RequestsOf<K>,
): Promise<DeletedRequest<K>[]> {
  const { table, own, ownName } = requestTables[kind];
  const deleted: DeletedRequest<K>[] = [];
  for (const batch of chunks(accounts)) {
    const rows = await tx.all<DeletedRequest<K> & Row>(
      `SELECT account, ${own} AS "${ownName}" FROM ${table}
        WHERE group_id = ? AND account IN (${placeholders(batch)})`,
      groupId,
      ...batch,
    );
    deleted.push(...rows);
  }
  const found = deleted.map(({ account }) => account);
  for (const some of chunks(found, largeRows)) {
    await tx.run(
      `DELETE FROM ${table} WHERE group_id = ? AND account IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
  }
  return deleted;
}
