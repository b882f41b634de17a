import type { ErrorCode } from '@posthouse/protocol';
import { assertConforms, Violation } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { TestChannel } from './test-channel.ts';

/** Posts that are tried at the most until something that goes on meanwhile has ended them. */
const maxPosts = 500;

/** Publishes one post after the other until the relay refuses one; says how many it took. */
export async function postUntilRefused(
  channel: TestChannel,
  by: TestAccount,
  code: ErrorCode,
): Promise<number> {
  for (let count = 0; count < maxPosts; count += 1) {
    const answer = await by.caller.call('channel.post', channel.postParams({}, by));
    if (answer.ok) continue;
    assertConforms(answer.code === code, `${code} expected, not ${answer.code}`);
    return count;
  }
  throw new Violation(`${code} within ${maxPosts} posts`);
}
