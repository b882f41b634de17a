import type { ErrorCode, JsonObject } from '@posthouse/protocol';
import { demand } from '../demand.ts';
import type { Resident } from '../stage.ts';

/** Who calls what, and how each call must end. */
export interface Refused {
  readonly by: Pick<Resident, 'caller'>;
  readonly method: string;
  readonly codes: readonly ErrorCode[];
}

/**
 * Makes one call after the other, each of which must be refused.
 * @param attempts parameters by what is wrong with them
 */
export async function refusesAll(
  { by, method, codes }: Refused,
  attempts: Iterable<readonly [what: string, params: JsonObject]>,
): Promise<void> {
  for (const [what, params] of attempts) {
    const answer = await by.caller.call(method, params);
    const expected = `${method} with ${what} is refused with ${codes.join(' or ')}`;
    demand(!answer.ok, expected);
    demand(codes.includes(answer.code), `${expected}, not ${answer.code}`);
  }
}
