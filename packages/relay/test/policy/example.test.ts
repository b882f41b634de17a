/** `deploy/policy.mjs`, the example of a program for `policy.command` (docs/operations.md). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay } from '../support/served-relay.ts';

const example = join(import.meta.dirname, '../../../../deploy/policy.mjs');

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
describe('policy: deploy/policy.mjs', () => {
  test('ends when the relay is killed', async () => {
    const relay = spawn(process.execPath, [
      '-e',
      `const { spawn } = require('node:child_process');
       const child = spawn(process.execPath, [${JSON.stringify(example)}], { detached: true });
       console.log(child.pid);
       child.stdin.write('{"id":1,"ask":"group"}\\n');
       child.stdout.on('data', () => console.log('answered'));`,
    ]);
    const output = createInterface({ input: relay.stdout })[Symbol.asyncIterator]();
    const pid = Number((await output.next()).value);
    expect((await output.next()).value).toBe('answered');
    relay.kill('SIGKILL');
    await once(relay, 'exit');
    await expect.poll(() => isRunning(pid), patience).toBe(false);
  });

  test('compares words with the text of posts and edits alone, however its file ends lines', async () => {
    using folder = temporaryFolder();
    const words = join(folder.path, 'words.txt');
    writeFileSync(words, ' Type\r\nsig\r\nsay "casino"\r\n\r\nback\\slash');
    const program = spawn(process.execPath, [example, words]);
    const answers = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
    const body = (words: string) => ({ $type: 'x', signature: 'sigType', body: text(words) });
    const questions: [post: object, allow: boolean][] = [
      [body('good day'), true],
      [body('he will SAY "Casino" soon'), false],
      [body('a back\\slash'), false],
      [body('this type'), false],
      [{ $type: 'type', target_sequence: 1, attachments: [] }, true],
      [{ $type: 'type', target_sequence: 1, body: null }, true],
      [{ target_sequence: 1, body: text('a sign') }, false],
    ];
    for (const [id, [post]] of questions.entries()) {
      program.stdin.write(`${JSON.stringify({ id, ask: 'post', account: 'a', post })}\n`);
    }
    for (const [id, [, allow]] of questions.entries()) {
      expect(JSON.parse(String((await answers.next()).value))).toEqual({ id, allow });
    }
    program.stdin.end();
    await once(program, 'exit');
  });

  test('refuses posts with its words at a whole relay, which says that it runs and ends it', async () => {
    using folder = temporaryFolder();
    const words = join(folder.path, 'words.txt');
    writeFileSync(words, 'casino\n');
    const relay = await ServedRelay.start({
      policy: { command: [process.execPath, example, words] },
      operations: { listen: '127.0.0.1:0' },
    });
    try {
      const ann = await relay.register('ann');
      const channel = await TestChannel.create(relay, ann);
      await channel.post({ body: text('good day') });
      await expect(channel.post({ body: text('Casino!') })).rejects.toMatchObject({
        code: 'forbidden',
      });
      for (const name of ['ben', 'cat']) await relay.register(name);
      await expect(relay.register('dan')).rejects.toMatchObject({ code: 'forbidden' });
      const health = await fetch(`${relay.server.operations}/health`);
      expect(await health.json()).toMatchObject({ status: 'ok', policy: 'ok' });
    } finally {
      await relay[Symbol.asyncDispose]();
    }
  });
});
