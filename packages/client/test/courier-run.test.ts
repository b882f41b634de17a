/** Parts of `courier` that need no relay: programs that are ended, names, notes. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import type { AccountSession } from '../src/courier/client-session.ts';
import { hostedNote } from '../src/courier/event-notes.ts';
import { namesOf } from '../src/courier/names.ts';
import { runProgram } from '../src/courier/run-program.ts';

test('what a program left in the background ends with it, also if it ignores TERM', async () => {
  const ended = Promise.withResolvers<void>();
  const stop = new AbortController();
  // The connection lasts as long as the process in the background.
  await using server = createServer((socket) => {
    socket.on('close', () => ended.resolve()).on('error', () => {});
    stop.abort();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const child = `process.on('SIGTERM', () => {}); require('node:net').connect(${port}, '127.0.0.1').on('error', () => {})`;
  const failure = await runProgram({
    program: '"$1" -e "$2" > /dev/null 2>&1 & wait',
    args: [process.execPath, child],
    ...{ isShell: true, env: process.env, input: '', timeout: 60_000, signal: stop.signal },
  });
  expect(failure).toBe('ended by SIGTERM');
  await ended.promise;
});

test('a profile that cannot be read is asked for once by a command', async () => {
  let asked = 0;
  const account = {
    id: 'neo:me',
    contacts: { list: async () => [] },
    profiles: {
      resolve: async () => {
        asked += 1;
        throw new Error('unreachable');
      },
    },
  };
  const session = {
    account,
    out: { isJson: false, showsIds: false },
    signal: new AbortController().signal,
  } as unknown as AccountSession;
  for (let time = 0; time < 3; time += 1) {
    expect((await namesOf(session, (name) => name('neo:peer')))('neo:peer')).toBe('neo:peer');
  }
  expect(asked).toBe(1);
});

test('a person is told that events were removed before they were read', async () => {
  const session = {} as AccountSession;
  expect(await hostedNote(session, { kind: 'events-missed' })).toContain('removed');
});
