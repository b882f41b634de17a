/** `posthouse account export` and `POST /admin/v1/account/export`: the file, and its way there. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { accountSigner } from '@posthouse/protocol';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { network } from '../support/modules.ts';
import { patience } from '../support/patience.ts';
import { AdminRelay, right } from './admin-relay.ts';

let admin: AdminRelay;
const folder = temporaryFolder();
const { account } = accountSigner(network, new Uint8Array(32).fill(1));
const records = 300;

beforeAll(async () => {
  admin = await AdminRelay.start();
  await admin.relay.context.storage.write('test', async (tx) => {
    await tx.run('INSERT INTO device_states VALUES (?, 1, \'{"revision":1}\')', account);
    await tx.run(
      "INSERT INTO message_envelopes VALUES ('e', 9999999999, ?)",
      `{"text":"${'x'.repeat(9_000)}"}`,
    );
    for (let sequence = 1; sequence <= records; sequence += 1) {
      await tx.run(
        "INSERT INTO timeline_records VALUES (?, ?, 1, 9999999999, 'e', 'c', 1, '')",
        ...[account, sequence],
      );
    }
  });
});
afterAll(async () => {
  killAll();
  await admin[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const file = (name: string) => join(folder.path, name);
const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

test('the command writes the same file through the running relay as from the database', async () => {
  const to = file('running.jsonl');
  const { code, output } = await admin.command('account', 'export', account, '--to', to);
  expect([code, output]).toEqual([0, `exported: ${to}, ${records + 3} lines\n`]);
  const direct = file('direct.jsonl');
  const { ended } = posthouse(
    ['account', 'export', account, '--to', direct, '--data', admin.data.path],
    admin.data.environment,
  );
  expect(await ended).toBe(0);
  const [running, read] = [to, direct].map((path) => linesOf(readFileSync(path, 'utf8')));
  expect(running?.slice(1)).toEqual(read?.slice(1));
  expect(running?.[0]).toEqual({ ...read?.[0], exported_at: expect.any(Number) });
  expect(read?.at(-1)).toEqual({ kind: 'end', lines: { device_state: 1, message: records } });
  expect([to, direct].map((path) => statSync(path).mode & 0o777)).toEqual([0o600, 0o600]);
});

test('a file that is there stays, and an account that is not here makes none', async () => {
  const to = file('there.jsonl');
  writeFileSync(to, 'mine');
  const refused = await admin.command('account', 'export', account, '--to', to);
  expect([refused.code, refused.errors]).toEqual([
    ...[1, `${to} exists already: give another name, or remove it\n`],
  ]);
  expect(readFileSync(to, 'utf8')).toBe('mine');
  const { account: stranger } = accountSigner(network, new Uint8Array(32).fill(9));
  const none = await admin.command('account', 'export', stranger, '--to', file('none.jsonl'));
  expect([none.code, none.errors]).toEqual([1, `${stranger}: this relay keeps nothing of it\n`]);
  expect(readdirSync(folder.path).filter((name) => name.startsWith('none'))).toEqual([]);
});

test('Ctrl+C in the middle leaves no file and no folder, and the relay stops reading', async () => {
  const { storage } = admin.relay.context;
  const longRead = storage.longRead.bind(storage);
  const held = Promise.withResolvers<void>();
  let statements = 0;
  let ended: unknown;
  storage.longRead = async (work) => {
    const reading = longRead((tx) =>
      work({
        get: (...given) => tx.get(...given),
        all: async (sql, ...given) => {
          statements += 1;
          // In the middle of the messages.
          if (sql.includes('FROM message_envelopes')) await held.promise;
          return await tx.all(sql, ...given);
        },
      }),
    );
    ended = await reading.then(
      () => 'whole',
      (error) => (error as Error).message,
    );
    return await reading;
  };
  const to = file('stopped.jsonl');
  const {
    child,
    output,
    ended: exit,
  } = posthouse(['account', 'export', account, '--to', to, '--data', admin.data.path], {
    ...admin.data.environment,
    ...admin.environment,
  });
  await vi.waitUntil(
    () => readdirSync(folder.path).includes('stopped.jsonl.partial') && statements > 5,
    patience,
  );
  child.kill('SIGINT');
  expect([await exit, output.errors]).toEqual([
    1,
    expect.stringMatching(/stopped: nothing was made/),
  ]);
  held.resolve();
  await vi.waitUntil(() => ended !== undefined, patience);
  storage.longRead = longRead;
  expect(ended).toBe('the caller is gone');
  expect(readdirSync(folder.path).filter((name) => name.startsWith('stopped'))).toEqual([]);
});

test('0041: over HTTP only for a caller that accepts lines', async () => {
  const body = JSON.stringify({ account });
  const refused = await admin.send('/admin/v1/account/export', { headers: right, body });
  expect([refused.status, refused.value]).toEqual([
    ...[400, { code: 'bad_request', message: expect.stringContaining('application/x-ndjson') }],
  ]);
  const headers = { ...right, accept: 'application/x-ndjson' };
  const { text } = await admin.send('/admin/v1/account/export', { headers, body });
  const lines = linesOf(text);
  const lined = lines.filter(({ item }) => item !== undefined);
  expect(lined).toHaveLength(records + 3);
  expect(lines.at(-1)).toEqual({
    status: 200,
    value: { account, lines: { device_state: 1, message: records } },
  });
});
