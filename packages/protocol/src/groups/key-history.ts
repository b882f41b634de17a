/**
 * Which commitment and which member key were in force in each epoch, for one account: what boxes
 * of the past are opened and checked with (05 §7.5), and the proof that an epoch existed (§16).
 */
import { Counter, Sha256, type Static, Type, X25519PublicKey } from '../schema.ts';
import type { GroupEffects } from './chain/effects.ts';
import type { GroupOutcome } from './sync.ts';

/** Neighbouring epochs under one commitment and one member key. */
const GroupKeyPeriod = Type.Object({
  client_secret_commitment: Sha256,
  /** Absent if the account was no member. */
  member_encryption_public_key: Type.Optional(X25519PublicKey),
  /** Ascending; values may be skipped. */
  epochs: Type.Array(Counter, { minItems: 1 }),
});
type GroupKeyPeriod = Static<typeof GroupKeyPeriod>;

/** From the oldest period to the current one. Plain JSON, for storing. */
export type GroupKeyHistory = readonly GroupKeyPeriod[];

/** Commitment and key of one epoch. */
export type GroupEpochKeys = Omit<GroupKeyPeriod, 'epochs'>;

/**
 * Adds the epochs of a page to a key history. Epochs change with management events only, and those
 * are never pruned, so a verified chain knows every epoch of its group.
 *
 * @param account whose member key is followed
 * @param outcomes of `advanceGroup`, none left out
 * @example
 * const { outcomes } = advanceGroup(network, group, groupPage);
 * const history = extendKeyHistory(keyHistory, account, outcomes);
 */
export function extendKeyHistory(
  history: GroupKeyHistory,
  account: string,
  outcomes: readonly GroupOutcome[],
): GroupKeyHistory {
  const periods = history.map((period) => ({ ...period, epochs: [...period.epochs] }));
  for (const outcome of outcomes) {
    if (outcome.kind !== 'applied' || !outcome.effects.advancesEpoch) continue;
    const last = periods.at(-1);
    const { epoch } = outcome.verified.event;
    const next = keysAfter(last, account, outcome.effects);
    if (last !== undefined && sameKeys(last, next)) last.epochs.push(epoch);
    else periods.push({ ...next, epochs: [epoch] });
  }
  return periods;
}

/** Returns commitment and key of an epoch, or `undefined` if verified history has no such epoch. */
export function keysOfEpoch(history: GroupKeyHistory, epoch: number): GroupEpochKeys | undefined {
  return history.find((period) => hasEpoch(period.epochs, epoch));
}

function keysAfter(
  last: GroupEpochKeys | undefined,
  account: string,
  effects: GroupEffects,
): GroupEpochKeys {
  const commitment = effects.client_secret_commitment ?? last?.client_secret_commitment;
  if (commitment === undefined) throw new TypeError('a key history begins with the creation');
  const given = [...effects.joined, ...effects.rekeyed].find((each) => each.account === account);
  const left = effects.left.includes(account);
  const kept = left ? undefined : last?.member_encryption_public_key;
  const key = given?.member_encryption_public_key ?? kept;
  return {
    client_secret_commitment: commitment,
    ...(key !== undefined && { member_encryption_public_key: key }),
  };
}

export function sameKeys(a: GroupEpochKeys, b: GroupEpochKeys): boolean {
  return (
    a.client_secret_commitment === b.client_secret_commitment &&
    a.member_encryption_public_key === b.member_encryption_public_key
  );
}

/** Binary search: long histories have many epochs in few periods. */
function hasEpoch(epochs: readonly number[], epoch: number): boolean {
  let low = 0;
  let high = epochs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((epochs[middle] as number) < epoch) low = middle + 1;
    else high = middle;
  }
  return epochs[low] === epoch;
}
