/** All SQL of applications. */
import { groupInviteState, inviteAppliesTo, type StoredInvite } from '@posthouse/protocol';
import { chunks, forEach, placeholders } from '../../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../../storage/types.ts';
import { addPending, listAwaited, toInvite } from './invite-store.ts';

/** An application without its text, which may be large. */
interface PendingApplication {
  readonly account: string;
  readonly inviteId: string;
  /** The device that signed it. */
  readonly deviceId: string;
  readonly certificateId: string;
  /** The member key it asks for. */
  readonly memberKey: string;
  /** Of its Canonical JSON. */
  readonly digest: string;
}

/** An application with what it rests on. */
export interface KnownApplication extends PendingApplication {
  readonly invitation: StoredInvite;
}

type KnownRow = PendingApplication & Row & Parameters<typeof toInvite>[0];

/** Stored applications of these accounts, also those whose invitation has died meanwhile. */
export async function readApplications(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<Map<string, KnownApplication>> {
  const found = new Map<string, KnownApplication>();
  for (const some of chunks(accounts)) {
    const rows = await tx.all<KnownRow>(
      `SELECT a.account, a.invite_id AS "inviteId", a.device_id AS "deviceId",
          a.certificate_id AS "certificateId", a.member_key AS "memberKey", a.digest,
          i.invitee, i.max_uses, i.expires_at, i.uses, i.revoked
        FROM group_applications a
        JOIN group_invites i ON i.group_id = a.group_id AND i.invite_id = a.invite_id
        WHERE a.group_id = ? AND a.account IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
    for (const row of rows) {
      const { account, inviteId, deviceId, certificateId, memberKey, digest } = row;
      const application = { account, inviteId, deviceId, certificateId, memberKey, digest };
      found.set(account, { ...application, invitation: toInvite(row) });
    }
  }
  return found;
}

/** Whether an application can still be approved; others are in no list (05 §8.2). */
export function isCurrent({ account, invitation }: KnownApplication, now: number): boolean {
  const isValid = groupInviteState(invitation, now) === 'valid';
  return isValid && inviteAppliesTo(invitation.invite, account);
}

/** What approving or listing an application shows of it, Canonical JSON each. */
export interface ApplicationTexts {
  readonly application: string;
  readonly certificate: string;
}

/** By account. */
export async function readApplicationTexts(
  tx: Reader,
  groupId: string,
  accounts: readonly string[],
): Promise<ReadonlyMap<string, ApplicationTexts>> {
  const texts = new Map<string, ApplicationTexts>();
  for (const some of chunks(accounts)) {
    const rows = await tx.all<ApplicationTexts & Row & { account: string }>(
      `SELECT a.account, a.application, c.certificate FROM group_applications a
        JOIN group_certificates c
          ON c.group_id = a.group_id AND c.certificate_id = a.certificate_id
        WHERE a.group_id = ? AND a.account IN (${placeholders(some)})`,
      groupId,
      ...some,
    );
    for (const row of rows) texts.set(row.account, row);
  }
  return texts;
}

/** An application of a list. */
export interface ListedApplication {
  readonly inviteId: string;
  readonly account: string;
  readonly acceptedAt: number;
  /** Of its text and its certificate. */
  readonly bytes: number;
}

/**
 * Applications whose invitation can be used, in the order of their invitations and accounts. That
 * order lets a page leave out the others without looking at them, however many there are.
 *
 * @param options `after`: invitation and account of the last one seen
 */
export async function listApplications(
  tx: Reader,
  groupId: string,
  options: {
    readonly after: readonly [inviteId: string, account: string];
    readonly now: number;
    readonly most: number;
  },
): Promise<ListedApplication[]> {
  const { after, now, most } = options;
  const [from, behind] = after;
  // The first may be finished with.
  const awaited = await listAwaited(tx, groupId, { from, now, most: most + 1 });
  const found: ListedApplication[] = [];
  while (awaited.length > 0 && found.length < most) {
    const wanted = most - found.length;
    const some = upTo(awaited, wanted);
    const each = some.map(() => [] as ListedApplication[]);
    await forEach([...some.entries()], async ([index, { inviteId }]) => {
      const place = { inviteId, behind: inviteId === from ? behind : '', most: wanted };
      each[index] = await readOfInvite(tx, groupId, place);
    });
    found.push(...each.flat());
  }
  return found.slice(0, most);
}

/** Takes as many as together have the number wanted, or all. */
function upTo<A extends { readonly pending: number }>(awaited: A[], wanted: number): A[] {
  let sum = 0;
  const enough = awaited.findIndex(({ pending }) => {
    sum += pending;
    return sum >= wanted;
  });
  return awaited.splice(0, enough === -1 ? awaited.length : enough + 1);
}

async function readOfInvite(
  tx: Reader,
  groupId: string,
  place: { readonly inviteId: string; readonly behind: string; readonly most: number },
): Promise<ListedApplication[]> {
  return await tx.all<ListedApplication & Row>(
    `SELECT invite_id AS "inviteId", account, accepted_at AS "acceptedAt", bytes
      FROM group_applications WHERE group_id = ? AND invite_id = ? AND account > ?
      ORDER BY account LIMIT ?`,
    groupId,
    place.inviteId,
    place.behind,
    place.most,
  );
}

/** An application to store. */
export interface NewApplication extends PendingApplication {
  readonly acceptedAt: number;
  readonly texts: ApplicationTexts;
}

/**
 * Stores an application.
 * @param replaced the invitation of the account's earlier one, which is gone then
 */
export async function writeApplication(
  tx: Writer,
  groupId: string,
  { texts, ...application }: NewApplication,
  replaced: string | undefined,
): Promise<void> {
  const { inviteId } = application;
  await tx.run(
    `INSERT INTO group_applications (group_id, account, invite_id, device_id, certificate_id,
        member_key, digest, accepted_at, bytes, application)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (group_id, account) DO UPDATE SET invite_id = excluded.invite_id,
        device_id = excluded.device_id, certificate_id = excluded.certificate_id,
        member_key = excluded.member_key, digest = excluded.digest,
        accepted_at = excluded.accepted_at, bytes = excluded.bytes,
        application = excluded.application`,
    groupId,
    application.account,
    inviteId,
    application.deviceId,
    application.certificateId,
    application.memberKey,
    application.digest,
    application.acceptedAt,
    Buffer.byteLength(texts.application) + Buffer.byteLength(texts.certificate),
    texts.application,
  );
  if (replaced === inviteId) return;
  await addPending(tx, groupId, { inviteId, by: 1 });
  if (replaced !== undefined) await addPending(tx, groupId, { inviteId: replaced, by: -1 });
}

/** Deletes the applications of these accounts; says how many there were. */
export async function deleteApplications(
  tx: Writer,
  groupId: string,
  accounts: readonly string[],
): Promise<number> {
  const gone = new Map<string, number>();
  let count = 0;
  for (const some of chunks(accounts)) {
    const rows = await tx.all<{ invite_id: string }>(
      `DELETE FROM group_applications WHERE group_id = ? AND account IN (${placeholders(some)})
        RETURNING invite_id`,
      groupId,
      ...some,
    );
    count += rows.length;
    for (const { invite_id: id } of rows) gone.set(id, (gone.get(id) ?? 0) + 1);
  }
  await forEach([...gone], async ([inviteId, number]) => {
    await addPending(tx, groupId, { inviteId, by: -number });
  });
  return count;
}
