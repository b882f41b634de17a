import { type GroupParams, type GroupSecretBox, ProtocolError } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Arrival } from '../chain/apply-event.ts';
import type { Deciding } from '../chain/write-event.ts';

/** A pending request as an approval looks at it. */
interface Approvable {
  /** The device that signed it. */
  readonly deviceId: string;
  /** The member key it asks for. */
  readonly memberKey: string;
  /** Of its Canonical JSON. */
  readonly digest: string;
}

/**
 * What an approval brings its accounts (05 §13.15, §13.23): the boxes are for the secret in force;
 * each account's request is there, is the one that was verified, and asks for the approved key.
 *
 * @param pending by account, as the transaction reads them
 * @param verified what `verifyRecords` found before
 * @throws ProtocolError `state_conflict`, `not_found`
 */
export function arrivalsOf(
  params: GroupParams<'group.application.approve'>,
  { group }: Pick<Deciding, 'group'>,
  requests: {
    readonly pending: ReadonlyMap<string, Approvable>;
    readonly verified: ReadonlyMap<string, string>;
  },
): ReadonlyMap<string, Arrival> {
  const { approval, client_secret_commitment, client_secret_boxes: boxes } = params;
  if (client_secret_commitment !== group.stored.commitment) {
    throw conflict('the commitment is not the current one');
  }
  const arrivals = new Map<string, Arrival>();
  for (const { account, member_encryption_public_key: key } of approval.members) {
    const request = requests.pending.get(account);
    if (request === undefined) throw noRequest();
    if (request.memberKey !== key) throw conflict('a key is not the one asked for');
    if (request.digest !== requests.verified.get(account)) throw conflict('a request was replaced');
    const { deviceId } = request;
    arrivals.set(account, { deviceId, box: canonicalJson(boxes[account] as GroupSecretBox) });
  }
  return arrivals;
}

/** An account has nothing that could be approved or rejected. */
export function noRequest(): ProtocolError {
  return new ProtocolError('not_found', 'an account has no pending request');
}

function conflict(reason: string): ProtocolError {
  return new ProtocolError('state_conflict', reason);
}
