/** Deletes an account that is at home here (posthouse account delete). */
import { ProtocolError } from '@posthouse/protocol';
import { endAccount, wasEverHere } from '../accounts/index.ts';
import { endBlobs } from '../blobs/index.ts';
import { type BlockOptions, blockBriefly } from '../blocks/index.ts';
import { deleteReportsBy } from '../channels/index.ts';
import { endDeliveries, endRecords } from '../messages/index.ts';
import {
  deleteClaim,
  deleteRequest,
  disallowAccount,
  registrations,
} from '../registration/index.ts';
import { endSessionsOf } from '../sessions/session-store.ts';
import { readBoundRelay } from '../storage/identity.ts';
import type { Storage, Writer } from '../storage/types.ts';
import type { VerbTools } from './verb.ts';

/** Rows of one transaction: others write in between. */
const batchSize = 500;
/** Seconds for which the account is refused: running processes end its sessions meanwhile. */
const refusedFor = 60;

/** What was deleted. */
export interface DeletedAccount {
  /** Records of its timeline. */
  readonly records: number;
  /** Attachments. */
  readonly blobs: number;
}

/**
 * Deletes an account: first its content, in small transactions, then, in one, all by which it is at
 * home here. If that is interrupted, the account is still here, and a repeat ends it. Jobs of the running
 * relay remove the rows and files of what was ended within minutes.
 *
 * @throws ProtocolError `not_found` if the account is not here; the reason of the signal
 */
export async function deleteAccount(
  storage: Storage,
  account: string,
  options: BlockOptions & Pick<VerbTools, 'progress' | 'signal'>,
): Promise<DeletedAccount> {
  const { now, progress, signal } = options;
  const owner = `account:${account}`;
  if (!(await storage.read((tx) => wasEverHere(tx, account)))) throw notHere(account);
  await blockBriefly(storage, { account, until: now + refusedFor }, options);
  let records = 0;
  let blobs = 0;
  const content = async (tx: Writer, after: number) => {
    const ended = await endRecords(tx, account, { after, now, limit: batchSize });
    records += ended?.count ?? 0;
    const ofBlobs = await endBlobs(tx, account, { now, limit: batchSize });
    blobs += ofBlobs;
    return { last: ended?.last, isAll: ended === undefined && ofBlobs === 0 };
  };
  let after = -1;
  for (let isAll = false; !isAll; ) {
    signal?.throwIfAborted();
    const from = after;
    const page = await storage.write(owner, (tx) => content(tx, from), { keepsFacts: true });
    progress?.({ step: 'deleting messages', done: records, total: undefined });
    after = page.last ?? after;
    ({ isAll } = page);
  }
  await storage.write([owner, registrations], async (tx) => {
    const relayId = (await readBoundRelay(tx)) ?? '';
    // What arrived until the account was refused everywhere: its sequences are higher.
    for (let from = after, isAll = false; !isAll; ) {
      const page = await content(tx, from);
      from = page.last ?? from;
      ({ isAll } = page);
    }
    await endDeliveries(tx, account, now);
    await deleteReportsBy(tx, account);
    await deleteClaim(tx, account);
    await deleteRequest(tx, account);
    await disallowAccount(tx, account);
    // It may have signed in again until the processes knew of the block.
    await endSessionsOf(tx, account);
    if (!(await endAccount(tx, account, { relayId, now }))) throw notHere(account);
  });
  return { records, blobs };
}

function notHere(account: string): ProtocolError {
  return new ProtocolError(
    'not_found',
    `${account} is not at home here: there is nothing to delete`,
  );
}
