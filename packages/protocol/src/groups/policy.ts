/** Limits of a relay that are not part of the chain; clients do not check them (05 §8.3, §13). */
import { badRequest, ProtocolError } from '../errors.ts';

/**
 * Checks a capacity against `max_group_members`. Creations and increases must fit; keeping or
 * lowering is allowed under a cap that was lowered meanwhile (05 §8.3, §13.6).
 *
 * @param rule `current` is absent at creation
 * @throws ProtocolError `bad_request`
 * @example
 * checkCapacityCap(500, { current: group.member_capacity, cap: 1_000 });
 */
export function checkCapacityCap(
  capacity: number,
  { current = 0, cap }: { readonly current?: number; readonly cap: number },
): void {
  if (capacity > current && capacity > cap) throw badRequest('member_capacity', `over ${cap}`);
}

/**
 * Checks the number of bans after an operation. One that adds none passes under any cap (05
 * §13.19).
 *
 * @param rule `present` bans before, `added` by the operation: `effects.banned.length`
 * @throws ProtocolError `state_conflict`
 * @example
 * checkBanCap({ present: group.bans.size, added: effects.banned.length, cap: 1_000 });
 */
export function checkBanCap(rule: {
  readonly present: number;
  readonly added: number;
  readonly cap: number;
}): void {
  if (rule.added > 0 && rule.present + rule.added > rule.cap) {
    throw new ProtocolError('state_conflict', 'too many bans');
  }
}
