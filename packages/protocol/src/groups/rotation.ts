/**
 * The staging of a client secret rotation, one per group: candidate boxes that a later signed
 * commit activates (05 §13.26, §13.27).
 */
import { badRequest, ProtocolError } from '../errors.ts';
import type { GroupClientSecretRotation } from './bodies.ts';
import type { GroupSecretBox } from './boxes.ts';
import { currentMember } from './chain/authority.ts';
import { checkGroupOpen, type GroupEffects } from './chain/effects.ts';
import type { GroupView } from './projection.ts';

/** What is prepared. Its parameters never change; another new commitment is another staging. */
export interface RotationStaging {
  /** The owner that began it. */
  readonly account: string;
  readonly base_commitment: string;
  readonly client_secret_commitment: string;
  /** Unix seconds; from then on there is no commit. */
  readonly expires_at: number;
  /** By account, current members only. */
  readonly boxes: ReadonlyMap<string, GroupSecretBox>;
}

/** Parameters of `group.secret.rotation.prepare` without the group. */
export interface RotationBatch {
  readonly base_commitment: string;
  readonly client_secret_commitment: string;
  readonly client_secret_boxes: Readonly<Record<string, GroupSecretBox>>;
}

/** Who prepares, and when. */
export interface RotationCall {
  /** Account of the session. */
  readonly account: string;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * The staging after one batch: a new one, or the same with more boxes. The staging given stays as
 * it is, also when the batch is refused.
 *
 * @param batch checked by `checkGroupRequest`
 * @param call `period` is the relay's staging period in seconds
 * @throws ProtocolError `forbidden`, `state_conflict`; `bad_request` where a box is for an account
 *   that is no current member
 * @example
 * const next = prepareRotation({ group, staging }, params, { account, now, period: 86_400 });
 */
export function prepareRotation(
  { group, staging }: { readonly group: GroupView; readonly staging: RotationStaging | undefined },
  batch: RotationBatch,
  call: RotationCall & { readonly period: number },
): RotationStaging {
  checkOwner(group, call.account);
  checkGroupOpen(group);
  if (batch.base_commitment !== group.client_secret_commitment) {
    throw conflict('base_commitment is not the current one');
  }
  const boxes = Object.entries(batch.client_secret_boxes);
  for (const [account] of boxes) {
    if (group.members.get(account) === undefined) {
      throw badRequest('client_secret_boxes', 'names an account that is no current member');
    }
  }
  const { base_commitment, client_secret_commitment } = batch;
  if (staging?.client_secret_commitment !== client_secret_commitment) {
    const expires_at = call.now + call.period;
    const { account } = call;
    return {
      account,
      base_commitment,
      client_secret_commitment,
      expires_at,
      boxes: new Map(boxes),
    };
  }
  if (staging.base_commitment !== base_commitment || staging.account !== call.account) {
    throw conflict('the fixed parameters differ');
  }
  if (call.now >= staging.expires_at) throw conflict('the preparation has expired');
  return { ...staging, boxes: new Map([...staging.boxes, ...boxes]) };
}

/**
 * The staging after a management event: boxes of members that left or changed their key go, the
 * rest and its expiry stay; a transfer of ownership or a rotation ends it (05 §13.26, §18).
 * @example
 * staging = staging && stagingAfter(staging, effects);
 */
export function stagingAfter(
  staging: RotationStaging,
  effects: GroupEffects,
): RotationStaging | undefined {
  if (effects.owner !== undefined || effects.client_secret_commitment !== undefined) {
    return undefined;
  }
  const gone = new Set([...effects.left, ...effects.rekeyed.map((member) => member.account)]);
  if (![...gone].some((account) => staging.boxes.has(account))) return staging;
  const boxes = new Map([...staging.boxes].filter(([account]) => !gone.has(account)));
  return { ...staging, boxes };
}

/**
 * Checks that a staging can be committed (05 §13.27). Rights of the signer and the head of the
 * chain are `decideGroupLink`'s; the caller asks that first.
 *
 * @returns the staging that is there
 * @throws ProtocolError `state_conflict`; a failure leaves the staging valid
 * @example
 * const effects = decideGroupLink(group, { kind, body }, account);
 * const { boxes } = checkRotationCommit({ group, staging }, body, { account, now });
 */
export function checkRotationCommit(
  { group, staging }: { readonly group: GroupView; readonly staging: RotationStaging | undefined },
  body: GroupClientSecretRotation,
  call: RotationCall,
): RotationStaging {
  if (staging === undefined) throw conflict('nothing is prepared');
  if (staging.account !== call.account) throw conflict('another owner prepared it');
  if (call.now >= staging.expires_at) throw conflict('the preparation has expired');
  if (staging.client_secret_commitment !== body.client_secret_commitment) {
    throw conflict('the commitment is not the prepared one');
  }
  if (staging.base_commitment !== group.client_secret_commitment) {
    throw conflict('the old commitment is no longer current');
  }
  // Boxes are of current members only, so that equal counts are equal sets.
  if (staging.boxes.size !== group.members.size) throw conflict('boxes do not cover all members');
  return staging;
}

function checkOwner(group: GroupView, account: string): void {
  if (currentMember(group, account).role !== 'owner') {
    throw new ProtocolError('forbidden', 'only the owner prepares a rotation');
  }
}

function conflict(reason: string): ProtocolError {
  return new ProtocolError('state_conflict', reason);
}
