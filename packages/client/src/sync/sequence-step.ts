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
  { after, reason, method }: { after: number; reason: MisbehaviourReason; method: string },
): void {
  let last = after;
  for (const { sequence } of events) {
    if (sequence - last > maxSequenceStep) {
      throw new RelayMisbehaviour(reason, `sequence ${sequence} after ${last}`, { method });
    }
    last = sequence;
  }
}
