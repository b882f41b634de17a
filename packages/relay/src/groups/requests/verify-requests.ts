/** Signed records outside the timeline as they are stored: applications and recovery requests. */
import {
  type GroupApplication,
  type GroupMemberRecoveryRequest,
  groupRecordSignatures,
} from '@posthouse/protocol';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import { digest } from '../../digest.ts';
import type { Reader } from '../../storage/types.ts';

/** A record with the certificate it was accepted with, both Canonical JSON. */
export interface StoredRecord {
  readonly account: string;
  readonly record: string;
  readonly certificate: string;
}

/** Records may be as large as a write may be; this many are in memory at once. */
const atOnce = 16;

/**
 * Verifies stored records again, as every approval must (05 §13.15, §13.23): account, certificate,
 * signature. Whether a certificate is still valid is not judged. An approval holds its accounts
 * against the result in its transaction, for records may change meanwhile.
 *
 * @param what names the kind of record
 * @returns digests of the verified records, by account; those without a record are not in it
 * @throws ProtocolError `invalid_signature`, `bad_request`
 */
export async function verifyRecords(
  context: RelayContext,
  what: string,
  {
    accounts,
    read,
  }: {
    readonly accounts: readonly string[];
    readonly read: (tx: Reader, account: string) => Promise<StoredRecord | undefined>;
  },
): Promise<ReadonlyMap<string, string>> {
  const verified = new Map<string, string>();
  for (let start = 0; start < accounts.length; start += atOnce) {
    const some = accounts.slice(start, start + atOnce);
    const found = await context.storage.read((tx) =>
      Promise.all(some.map((account) => read(tx, account))),
    );
    const stored = found.filter((each) => each !== undefined);
    await Promise.all(stored.map((each) => verifyRecord(context, each, what)));
    for (const { account, record } of stored) verified.set(account, digest(record));
  }
  return verified;
}

async function verifyRecord(
  { network, verifier }: RelayContext,
  { account, record, certificate }: StoredRecord,
  what: string,
): Promise<void> {
  const checks = () =>
    groupRecordSignatures(network, {
      record: parseJson(record) as SignedRecord,
      account,
      certificate: parseJson(certificate),
    });
  await verifier.verifyOnce(`${account}\n${certificate}\n${record}`, checks, what);
}

type SignedRecord = (GroupApplication | GroupMemberRecoveryRequest) & JsonObject;
