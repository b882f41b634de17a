import {
  type GroupApplication,
  type GroupMemberRecoveryRequest,
  groupRecordSignatures,
} from '@posthouse/protocol';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import { digest } from '../../digest.ts';
import {
  type RequestKind,
  type RequestsOf,
  type RequestTexts,
  readRequestTexts,
} from './request-store.ts';

/** Requests may be as large as a write may be; so many are in memory at once. */
const batchSize = 16;

/** What an error calls a request of each kind. */
const names: Readonly<Record<RequestKind, string>> = {
  application: 'application',
  recovery: 'recovery request',
};

/**
 * Verifies stored requests again, as every approval must (05 §13.15, §13.23): account, certificate,
 * signature. The certificate may have expired since. The approval compares its requests with the
 * result inside its transaction, because they may change meanwhile.
 *
 * @returns digests of the verified requests, by account; accounts without a request are absent
 * @throws ProtocolError `invalid_signature`, `bad_request`
 */
export async function verifyRequests(
  context: RelayContext,
  { kind, groupId, accounts }: RequestsOf,
): Promise<ReadonlyMap<string, string>> {
  const verified = new Map<string, string>();
  for (let start = 0; start < accounts.length; start += batchSize) {
    const batch = accounts.slice(start, start + batchSize);
    const texts = await context.storage.read((tx) =>
      readRequestTexts(tx, { kind, groupId, accounts: batch }),
    );
    await Promise.all(
      [...texts].map(([account, request]) =>
        verifyRequest(context, names[kind], { account, ...request }),
      ),
    );
    for (const [account, { text }] of texts) verified.set(account, digest(text));
  }
  return verified;
}

async function verifyRequest(
  { network, verifier }: RelayContext,
  name: string,
  { account, text, certificate }: RequestTexts & { readonly account: string },
): Promise<void> {
  const checks = () =>
    groupRecordSignatures(network, {
      record: parseJson(text) as SignedRequest,
      account,
      certificate: parseJson(certificate),
    });
  await verifier.verifyOnce(`${account}\n${certificate}\n${text}`, checks, name);
}

type SignedRequest = (GroupApplication | GroupMemberRecoveryRequest) & JsonObject;
