/** SQL of the accounts that the operator lets in, and of those that wait for it. */
import type { Reader, Row, Writer } from '../storage/types.ts';

/** An account that may come to be at home here. */
export interface AllowedAccount {
  readonly account: string;
  /** Unix seconds. */
  readonly allowedAt: number;
}

/** An account that asked to be at home here. */
export interface RegistrationRequest {
  readonly account: string;
  /** The client address that the request counts for. */
  readonly address: string;
  /** Unix seconds. */
  readonly askedAt: number;
}

/** Lets an account in, unless `limit` are let in already; returns whether there was room. */
export async function allowAccount(
  tx: Writer,
  { account, allowedAt }: AllowedAccount,
  limit: number,
): Promise<boolean> {
  if (!(await isAllowed(tx, account))) {
    const row = await tx.get<{ stored: number }>(
      'SELECT COUNT(*) AS stored FROM registration_allowed',
    );
    if (Number(row?.stored) >= limit) return false;
    await tx.run(
      'INSERT INTO registration_allowed (account, allowed_at) VALUES (?, ?)',
      account,
      allowedAt,
    );
  }
  await deleteRequest(tx, account);
  return true;
}

export async function isAllowed(tx: Reader, account: string): Promise<boolean> {
  const row = await tx.get('SELECT account FROM registration_allowed WHERE account = ?', account);
  return row !== undefined;
}

/** Removes an account from those that are let in; returns whether it was one. */
export async function disallowAccount(tx: Writer, account: string): Promise<boolean> {
  const removed = await tx.run('DELETE FROM registration_allowed WHERE account = ?', account);
  return removed === 1;
}

/** Lists the accounts that are let in and are not here yet, after a time and account, the newest last. */
export async function listAllowed(
  tx: Reader,
  limit: number,
  [allowedAt, account]: readonly [number, string],
): Promise<AllowedAccount[]> {
  return await tx.all<AllowedAccount & Row>(
    `SELECT account, allowed_at AS "allowedAt" FROM registration_allowed
      WHERE (allowed_at, account) > (?, ?) ORDER BY allowed_at, account LIMIT ?`,
    allowedAt,
    account,
    limit,
  );
}

/** Tells whether any account is let in. */
export async function hasAllowed(tx: Reader): Promise<boolean> {
  return (await tx.get('SELECT account FROM registration_allowed LIMIT 1')) !== undefined;
}

export async function isWaiting(tx: Reader, account: string): Promise<boolean> {
  const row = await tx.get('SELECT account FROM registration_requests WHERE account = ?', account);
  return row !== undefined;
}

/** Lists the accounts that wait, after a time and account, the newest last. */
export async function listRequests(
  tx: Reader,
  limit: number,
  [askedAt, account]: readonly [number, string],
): Promise<RegistrationRequest[]> {
  return await tx.all<RegistrationRequest & Row>(
    `SELECT account, address, asked_at AS "askedAt" FROM registration_requests
      WHERE (asked_at, account) > (?, ?) ORDER BY asked_at, account LIMIT ?`,
    askedAt,
    account,
    limit,
  );
}

/** What is stored of a request. */
interface StoredRequest extends RegistrationRequest {
  readonly network: string;
  /** One more than the requests of its network that there were before. */
  readonly place: number;
}

/** Adds a request of an account that has none. */
export async function insertRequest(
  tx: Writer,
  { account, address, askedAt, network, place }: StoredRequest,
): Promise<void> {
  await tx.run(
    `INSERT INTO registration_requests (account, address, asked_at, network, place)
      VALUES (?, ?, ?, ?, ?)`,
    account,
    address,
    askedAt,
    network,
    place,
  );
}

/** Counts the requests of a network. */
export async function countOfNetwork(tx: Reader, network: string): Promise<number> {
  const row = await tx.get<{ stored: number }>(
    'SELECT COUNT(*) AS stored FROM registration_requests WHERE network = ?',
    network,
  );
  return Number(row?.stored ?? 0);
}

/**
 * Removes the newest request of the network that has most, if its place is above `place`; returns
 * whether there was one.
 */
export async function deleteOfLargestNetwork(tx: Writer, place: number): Promise<boolean> {
  const row = await tx.get<{ account: string }>(
    `SELECT account FROM registration_requests WHERE place > ?
      ORDER BY place DESC, asked_at DESC LIMIT 1`,
    place,
  );
  return row !== undefined && (await deleteRequest(tx, row.account));
}

/** Removes an account's request; returns whether there was one. */
export async function deleteRequest(tx: Writer, account: string): Promise<boolean> {
  const removed = await tx.run('DELETE FROM registration_requests WHERE account = ?', account);
  return removed === 1;
}

/** Returns when the oldest of an address's requests was made, if it has `limit`. */
export async function fullSinceOfAddress(
  tx: Reader,
  address: string,
  limit: number,
): Promise<number | undefined> {
  const row = await tx.get<{ stored: number; oldest: number }>(
    `SELECT COUNT(*) AS stored, MIN(asked_at) AS oldest FROM
      (SELECT asked_at FROM registration_requests WHERE address = ?
        ORDER BY asked_at LIMIT ?) AS requests`,
    address,
    limit,
  );
  return row !== undefined && row.stored >= limit ? row.oldest : undefined;
}

/** Returns when the oldest request was made, if there are `limit`. */
export async function fullSince(tx: Reader, limit: number): Promise<number | undefined> {
  const row = await tx.get<{ stored: number; oldest: number }>(
    `SELECT COUNT(*) AS stored, MIN(asked_at) AS oldest FROM
      (SELECT asked_at FROM registration_requests ORDER BY asked_at LIMIT ?) AS requests`,
    limit,
  );
  return row !== undefined && row.stored >= limit ? row.oldest : undefined;
}

/** Removes up to `batchSize` requests made before a time; returns how many. */
export async function deleteRequestsBefore(
  tx: Writer,
  before: number,
  batchSize: number,
): Promise<number> {
  return await tx.run(
    `DELETE FROM registration_requests WHERE account IN
      (SELECT account FROM registration_requests WHERE asked_at <= ?
        ORDER BY asked_at LIMIT ?)`,
    before,
    batchSize,
  );
}

/** Returns when the oldest request was made. */
export async function oldestRequest(tx: Reader): Promise<number | undefined> {
  const row = await tx.get<{ askedAt: number }>(
    'SELECT asked_at AS "askedAt" FROM registration_requests ORDER BY asked_at LIMIT 1',
  );
  return row?.askedAt;
}
