/** Steps between the sequences of timelines that relays and hosts assign. */
import { type MisbehaviourReason, RelayMisbehaviour } from '../errors.ts';

/**
 * Largest step between two sequences of a timeline. Restoring a relay raises its sequences by at most
 * 2^32 + 2^39; a larger step would only use the numbers up, of which there are 2^53 (04 §18.1).
 */
export const maxSequenceStep = 2 ** 40;

/**
 * Checks the steps between ascending sequences after a position.
 * @throws RelayMisbehaviour with the reason
 */
export function checkSequenceSteps(
  events: readonly { readonly sequence: number }[],
  { after, ...of }: { after: number; reason: MisbehaviourReason; method: string },
): void {
  let last = after;
  for (const { sequence } of events) {
    checkStep('sequence', { last, next: sequence, ...of });
    last = sequence;
  }
}

/**
 * Checks the steps between the epochs of a group's events, which a restored host raises as much (05 §7.2).
 * @param after the known epoch
 * @throws RelayMisbehaviour `invalid_group_page`
 */
export function checkEpochSteps(
  events: readonly { readonly epoch: number }[],
  { after, method }: { readonly after: number; readonly method: string },
): void {
  let last = after;
  for (const { epoch } of events) {
    checkStep('epoch', { last, next: epoch, reason: 'invalid_group_page', method });
    last = epoch;
  }
}

function checkStep(
  what: string,
  step: { last: number; next: number; reason: MisbehaviourReason; method: string },
): void {
  const { last, next, reason, method } = step;
  if (next - last <= maxSequenceStep) return;
  throw new RelayMisbehaviour(reason, `${what} ${next} after ${last}`, { method });
}
