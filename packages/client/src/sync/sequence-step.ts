/** Steps between the sequences of timelines that relays and hosts assign. */
import { type MisbehaviourReason, RelayMisbehaviour } from '../errors.ts';

/**
 * Largest step between two sequences of a timeline. Restoring a relay raises its sequences by at most
 * 2^32 + 2^39; a larger step would only use the numbers up, of which there are 2^53 (04 §18.1).
 */
export const maxSequenceStep = 2 ** 40;

/**
 * Checks the steps between ascending sequences after a position, or between a group's epochs after the
 * known one, which a restored host raises as much (05 §7.2).
 * @throws RelayMisbehaviour with the reason
 */
export function checkSteps<Name extends 'sequence' | 'epoch'>(
  name: Name,
  events: readonly Readonly<Record<Name, number>>[],
  { after, reason, method }: { after: number; reason: MisbehaviourReason; method: string },
): void {
  let last = after;
  for (const { [name]: next } of events) {
    if (next - last > maxSequenceStep) {
      throw new RelayMisbehaviour(reason, `${name} ${next} after ${last}`, { method });
    }
    last = next;
  }
}
