/** `posthouse account` as an operator types it, with a stopped relay. */
import { accountSigner } from '@posthouse/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData, rowsOf } from '../support/engine.ts';
import { network } from '../support/modules.ts';

let data: RelayData;
beforeEach(async () => {
  data = await RelayData.withSchema();
});
afterEach(async () => {
  killAll();
  await data[Symbol.asyncDispose]();
});

async function account(...args: string[]) {
  const { ended, output } = posthouse(['account', ...args, '--data', data.path], {
    ...data.environment,
    POSTHOUSE_LIMITS_ALLOWED_ACCOUNTS: '2',
  });
  const code = await ended;
  return { code, output: output.text, errors: output.errors };
}

const id = (byte: number) => accountSigner(network, new Uint8Array(32).fill(byte)).account;
const [ann, ben, cem] = [id(1), id(2), id(3)];
const rows = async (table: string) => {
  await using storage = await data.open();
  return await rowsOf(storage, table);
};

/** Stores the request of an account. */
async function ask(by: string): Promise<void> {
  await using storage = await data.open();
  await storage.write('registration', (tx) =>
    tx.run(
      'INSERT INTO registration_requests (account, address, asked_at) VALUES (?, ?, ?)',
      ...([by, '192.0.2.1', 1_700_000_000] as const),
    ),
  );
}

test('03 §4.3: lets accounts in, approves those that wait, and lists both', async () => {
  expect(await account('waiting')).toEqual({
    code: 0,
    output: '',
    errors: 'no account is waiting\n',
  });
  await ask(ann);
  expect((await account('waiting')).output).toMatch(
    new RegExp(`^asked +address +account\n2023-11-14T22:13:20Z +192.0.2.1 +${ann}\n$`),
  );
  expect(JSON.parse((await account('waiting', '--json')).output)).toEqual({
    ...{ account: ann, address: '192.0.2.1', asked_at: 1_700_000_000 },
  });
  expect(await account('approve', ben)).toEqual({
    code: 1,
    output: '',
    errors: `${ben} is not waiting: see posthouse account waiting, or use posthouse account allow\n`,
  });
  expect(await account('reject', ben)).toEqual({
    code: 1,
    output: '',
    errors: `${ben} is not waiting: see posthouse account waiting\n`,
  });
  await ask(cem);
  expect(await account('reject', cem)).toMatchObject({ code: 0, output: `${cem} is rejected\n` });
  await ask(cem);
  expect(await account('reject', '--address', '192.0.2.0/24')).toMatchObject({
    ...{ code: 0, output: '2 accounts that asked from 192.0.2.0/24 are rejected\n' },
  });
  await ask(ann);
  expect(await rows('registration_requests')).toMatchObject([{ account: ann }]);
  expect(await account('approve', ann, '--log', 'warn')).toEqual({
    code: 0,
    output: `${ann} is let in\n`,
    errors: expect.stringMatching(
      new RegExp(`^.*"verb":"account approve","subject":"${ann}","by":"command".*\n$`),
    ),
  });
  expect(await rows('registration_requests')).toEqual([]);
  expect(await account('allow', ben)).toMatchObject({ code: 0, output: `${ben} is let in\n` });
  expect(await account('allow', ben)).toMatchObject({ code: 0, output: `${ben} is let in\n` });
  expect(await account('allow', cem)).toEqual({
    code: 1,
    output: '',
    errors:
      '2 accounts are let in and not here yet: disallow some, or raise limits.allowedAccounts\n',
  });
  const allowed = (await account('allowed', '--json')).output.trim().split('\n');
  const accounts = allowed.map((line) => (JSON.parse(line) as { account: string }).account);
  expect(accounts.toSorted()).toEqual([ann, ben].toSorted());
  expect(await account('disallow', ann)).toMatchObject({ code: 0 });
  expect(await account('disallow', ann)).toEqual({
    code: 1,
    output: '',
    errors: `${ann} is not let in: see posthouse account allowed\n`,
  });
  for (const args of [
    [],
    ['allow'],
    ['allow', 'ann'],
    ['approve', '0x01'],
    ['nonsense'],
    ['reject'],
  ]) {
    expect(await account(...args)).toMatchObject({ code: 2, output: '' });
  }
  expect(await rows('registration_allowed')).toMatchObject([{ account: ben }]);
  {
    await using storage = await data.open();
    await storage.write(`account:${cem}`, (tx) =>
      tx.run('INSERT INTO device_states (account, revision, state) VALUES (?, 1, ?)', cem, '{}'),
    );
  }
  expect(await account('allow', cem)).toEqual({
    ...{ code: 0, output: `${cem} is here already: it needs no right\n`, errors: '' },
  });
  expect(await rows('registration_allowed')).toMatchObject([{ account: ben }]);
});

test('deletes an account that is here, after a confirmation', async () => {
  await using storage = await data.open();
  await storage.write(`account:${ann}`, (tx) =>
    tx.run('INSERT INTO device_states (account, revision, state) VALUES (?, 1, ?)', ann, '{}'),
  );
  const channel = `chan_${'d'.repeat(21)}A`;
  await storage.write('test', (tx) =>
    tx.run(
      `INSERT INTO channels (channel_id, creator, moderators, status, revision, head, needed_until)
        VALUES (?, ?, '[]', 'active', 1, 0, 0)`,
      ...[channel, ann],
    ),
  );
  await storage[Symbol.asyncDispose]();
  const refused = await account('delete', ann);
  expect(refused).toMatchObject({
    ...{ code: 1, output: '' },
    errors: expect.stringContaining('not deleted: answer y, or give --yes'),
  });
  expect(refused.errors).toContain(`  channel  ${channel}  owner\n`);
  expect(await account('delete', ann, '--yes')).toMatchObject({
    ...{ code: 0, output: `${ann} is deleted, with 0 of its messages and 0 attachments\n` },
  });
  expect(await rows('device_states')).toEqual([]);
  expect(await account('delete', ann, '--yes')).toMatchObject({
    ...{ code: 1, errors: `${ann} is not at home here: there is nothing to delete\n` },
  });
});
