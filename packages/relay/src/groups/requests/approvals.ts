import { type GroupParams, type GroupSecretBox, ProtocolError } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { ApprovedMember } from '../chain/apply-event.ts';
import type { LoadedGroup } from '../chain/load-group.ts';
import type { PendingRequest } from './request-store.ts';

/**
 * Checks an approval against the requests it approves (05 §13.15, §13.23): its boxes hold the
 * secret in force; each account has a request, which is the one that was verified and asks for the
 * approved key.
 *
 * @param requests `pending`: by account, as the transaction reads them; `verified`: what
 *   `verifyRequests` found before
 * @returns what the approval brings each account
 * @throws ProtocolError `state_conflict`, `not_found`
 */
export function approveRequests(
  params: GroupParams<'group.application.approve'>,
  { stored }: LoadedGroup,
  requests: {
    readonly pending: ReadonlyMap<string, PendingRequest>;
    readonly verified: ReadonlyMap<string, string>;
  },
): ReadonlyMap<string, ApprovedMember> {
  const { approval, client_secret_commitment, client_secret_boxes: boxes } = params;
  if (client_secret_commitment !== stored.commitment) {
    throw conflict('the commitment is not the current one');
  }
  const approved = new Map<string, ApprovedMember>();
  for (const { account, member_encryption_public_key: key } of approval.members) {
    const request = requests.pending.get(account);
    if (request === undefined) throw noRequest();
    if (request.memberKey !== key) throw conflict('a key is not the one asked for');
    if (request.digest !== requests.verified.get(account)) throw conflict('a request was replaced');
    const { deviceId } = request;
    approved.set(account, { deviceId, box: canonicalJson(boxes[account] as GroupSecretBox) });
  }
  return approved;
}

/** Makes the error for an account without a request that could be approved or rejected. */
export function noRequest(): ProtocolError {
  return new ProtocolError('not_found', 'an account has no pending request');
}

function conflict(reason: string): ProtocolError {
  return new ProtocolError('state_conflict', reason);
}
