import type { ErrorCode } from '@posthouse/protocol';
import { assertConforms, Violation } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { TestChannel } from './test-channel.ts';

/** Posts at most before the concurrent change must have taken effect. */
const maxPosts = 500;

/** Publishes posts until the relay refuses one with `code`; returns the number accepted. */
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
