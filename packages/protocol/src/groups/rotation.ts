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

/** The fixed members of a preparation; another new commitment is another preparation. */
export interface RotationTerms {
  /** The owner that began it. */
  readonly account: string;
  readonly base_commitment: string;
  readonly client_secret_commitment: string;
  /** Unix seconds; from then on there is no commit. */
  readonly expires_at: number;
}

/** A preparation as stored. The boxes are stored elsewhere: to decide, their number is enough. */
export interface RotationStaging extends RotationTerms {
  /** Accounts that have a box, all of them current members. */
  readonly boxCount: number;
}

/** Parameters of `group.secret.rotation.prepare` without the group. */
export interface RotationBatch {
  readonly base_commitment: string;
  readonly client_secret_commitment: string;
  readonly client_secret_boxes: Readonly<Record<string, GroupSecretBox>>;
}

/** The preparing account, and the time. */
export interface RotationCall {
  /** Account of the session. */
  readonly account: string;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Decides on one batch: it begins a preparation, without the boxes of an earlier one, or continues
 * the present one. Then boxes are stored by account, and a later box replaces an earlier one. If a
 * batch is refused, the preparation stays as it is.
 *
 * @param batch checked by `checkGroupParams`
 * @param call `period` is the relay's staging period in seconds
 * @returns the preparation that goes on, or the terms of the one that begins
 * @throws ProtocolError `forbidden`, `state_conflict`; `bad_request` if a box is for an account
 *   that is no current member
 * @example
 * const call = { account, now, period: 86_400 };
 * const { continued, begun } = prepareRotation({ group, staging }, rotationBatch, call);
 */
export function prepareRotation<S extends RotationTerms>(
  { group, staging }: { readonly group: GroupView; readonly staging: S | undefined },
  batch: RotationBatch,
  call: RotationCall & { readonly period: number },
):
  | { readonly continued: S; readonly begun?: undefined }
  | { readonly continued?: undefined; readonly begun: RotationTerms } {
  checkOwner(group, call.account);
  checkGroupOpen(group);
  const { base_commitment, client_secret_commitment } = batch;
  if (base_commitment !== group.client_secret_commitment) {
    throw conflict('base_commitment is not the current one');
  }
  for (const account of Object.keys(batch.client_secret_boxes)) {
    if (group.members.get(account) === undefined) {
      throw badRequest('client_secret_boxes', 'names an account that is no current member');
    }
  }
  const { account, now } = call;
  if (staging?.client_secret_commitment !== client_secret_commitment) {
    const expires_at = now + call.period;
    return { begun: { account, base_commitment, client_secret_commitment, expires_at } };
  }
  if (staging.base_commitment !== base_commitment || staging.account !== account) {
    throw conflict('the fixed parameters differ');
  }
  if (now >= staging.expires_at) throw conflict('the preparation has expired');
  return { continued: staging };
}

/**
 * Returns the effect of a management event on a preparation: a transfer of ownership or a rotation
 * ends it, boxes of members that left or changed their key are removed, everything else stays (05
 * §13.26, §18).
 * @example
 * const { ends, withoutBoxOf } = stagingAfter(effects);
 */
export function stagingAfter(effects: GroupEffects): {
  readonly ends: boolean;
  readonly withoutBoxOf: readonly string[];
} {
  const rekeyed = effects.rekeyed.map(({ account }) => account);
  return {
    ends: effects.owner !== undefined || effects.client_secret_commitment !== undefined,
    withoutBoxOf: [...effects.left, ...rekeyed],
  };
}

/**
 * Checks that a preparation can be committed (05 §13.27). Rights of the signer and the head of the
 * chain are `decideChainEvent`'s; the caller asks that first.
 *
 * @returns the preparation that is there
 * @throws ProtocolError `state_conflict`; a failure leaves the preparation valid
 * @example
 * const prepared = checkRotationCommit({ group, staging }, rotation, { account, now });
 */
export function checkRotationCommit<S extends RotationStaging>(
  { group, staging }: { readonly group: GroupView; readonly staging: S | undefined },
  body: GroupClientSecretRotation,
  call: RotationCall,
): S {
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
  if (staging.boxCount !== group.members.size) throw conflict('boxes do not cover all members');
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
