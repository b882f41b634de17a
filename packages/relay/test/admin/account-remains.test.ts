/** What is left of a deleted account anywhere in the database, against the list of what may be. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { deleteAccount } from '../../src/admin/delete-account.ts';
import { accountTables } from '../../src/admin/inventory/account-tables.ts';
import { BlobFolder } from '../../src/blobs/folder.ts';
import { blobRetentionJob } from '../../src/blobs/index.ts';
import { temporaryFolder } from '../support/folder.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';
import { furnish } from './furnished-account.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const cem = relay.person('cem');

/** Jobs that remove what a deletion ended, in any order. */
const jobs = ['messages.delivery', 'messages.retention', 'accounts.inactive-devices'];

/** Tables with a row that names the account, or a device of it, in any column. */
async function tablesOfAnn(): Promise<string[]> {
  const ids = [ann.account, ...ann.deviceIds('phone', 'laptop')];
  const tables = Object.entries(await relay.dump());
  return tables.flatMap(([name, rows]) => {
    const text = JSON.stringify(rows);
    return ids.some((id) => text.includes(id)) ? [name] : [];
  });
}

const kept = accountTables
  .filter((one) => one.stays !== undefined || 'others' in one)
  .map(({ table }) => table)
  .toSorted();
const tables = accountTables.map(({ table }) => table).toSorted();

test('the account is named in no table but those of which the inventory says why', async () => {
  await furnish(relay, { ann, ben, cem });
  expect(await tablesOfAnn()).toEqual(tables);
  const { clock, context } = relay;
  await deleteAccount(context.storage, ann.account, { now: clock.now(), limits: context.limits });
  for (const job of jobs) await relay.runJob(job);
  using folder = temporaryFolder();
  const blobs = new BlobFolder(folder.path);
  await blobs.open();
  await blobRetentionJob(blobs).run(context, new AbortController().signal, () => ({
    [Symbol.dispose]() {},
  }));
  expect(await tablesOfAnn()).toEqual(kept);
});

test('a table that an account has something in, by which column whatever, is in the inventory', async () => {
  const { storage } = relay.context;
  const columns = await storage.read((tx) =>
    tx.all<{ table_name: string; column_name: string }>(storage.catalogueSql),
  );
  const names =
    /^(?:account|after_account|owner|creator|inviter|invitee|sender|recipient|moderators|device_id|signer_device_id)$/;
  const found = columns.filter(({ column_name }) => names.test(column_name));
  expect(new Set(tables)).toEqual(
    new Set(tables).union(new Set(found.map((one) => one.table_name))),
  );
});

test('docs/operations.md names each table in which a deleted account stays, and no other', () => {
  const path = new URL('../../../../docs/operations.md', import.meta.url);
  const [, section = ''] = readFileSync(path, 'utf8').split('in these tables and no others:');
  const [list = ''] = section.split('###');
  const named = [...list.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name);
  expect(named.toSorted()).toEqual(kept);
});
