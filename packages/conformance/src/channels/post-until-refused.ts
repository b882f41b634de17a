import type { ErrorCode } from '@posthouse/protocol';
import { demand, Violation } from '../assert.ts';
import type { Resident } from '../fixtures/test-context.ts';
import type { ChannelActors } from './test-channel.ts';

/** Posts that are tried at the most until something that goes on meanwhile has ended them. */
const most = 500;

/** Publishes one post after the other until the relay refuses one; says how many it took. */
export async function postUntil(
  channel: ChannelActors,
  by: Resident,
  code: ErrorCode,
): Promise<number> {
  for (let count = 0; count < most; count += 1) {
    const answer = await by.caller.call('channel.post', channel.publication({}, by));
    if (answer.ok) continue;
    demand(answer.code === code, `${code} expected, not ${answer.code}`);
    return count;
  }
  throw new Violation(`${code} within ${most} posts`);
}
