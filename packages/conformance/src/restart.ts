/** Restarts the relay under test, by a command of its operator. */
import { execFile } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { TestContext } from './fixtures/test-context.ts';
import type { Target } from './target.ts';

/** Seconds in which the command must end, and then the relay answer. */
const commandTime = 60;
const startTime = 60;

/**
 * Runs a command that restarts the relay, and waits until the relay answers.
 *
 * @param command for the shell; the relay must have stopped when it ends
 * @throws Error if the command fails, or the relay does not answer in time
 */
export async function restartBy(command: string, target: Target): Promise<void> {
  await promisify(execFile)('/bin/sh', ['-c', command], { timeout: commandTime * 1_000 });
  await untilAnswers(target);
}

/** Waits until the relay answers. @throws Error if it does not in time */
async function untilAnswers(target: Target): Promise<void> {
  const deadline = Date.now() + startTime * 1_000;
  for (;;) {
    try {
      await using _ = await TestContext.open(target, 'https');
      return;
    } catch (cause) {
      if (Date.now() > deadline) {
        throw new Error(`the relay does not answer ${startTime} s after its restart`, { cause });
      }
      await setTimeout(250);
    }
  }
}
