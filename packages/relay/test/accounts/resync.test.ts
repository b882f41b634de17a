import { expect, test } from 'vitest';
import { accounts } from '../../src/accounts/index.ts';
import type { Notice } from '../../src/dispatch/notice.ts';
import { messages } from '../../src/messages/index.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);

/** Returns the notices that the modules accounts and messages make for clients that missed some. */
const resync = async (...people: Person[]): Promise<Notice[]> =>
  await relay.context.storage.read(async (tx) => {
    const at = { relayId: relay.relayId, now: relay.clock.now() };
    const of = people.map(({ account }) => account);
    const found = await Promise.all(
      [accounts, messages].map(({ accountResync }) => accountResync?.(tx, of, at)),
    );
    return found.flatMap((notices) => notices ?? []);
  });

const kinds = async (...people: Person[]) =>
  (await resync(...people)).map(({ kind }) => kind).sort();

const note = () => relay.call('message.send', ann.message(ann), { session: ann.session() });

test('the notices have the current device state and the head, for the currently valid devices', async () => {
  const state = await ann.state();
  await ann.publishState(state);
  await note();
  await note();
  const found = await resync(ann);
  const sorted = found.map((notice) =>
    'deviceIds' in notice ? { ...notice, deviceIds: notice.deviceIds.toSorted() } : notice,
  );
  expect(sorted).toEqual([
    {
      kind: 'device-state',
      account: ann.account,
      revision: state.revision,
      deviceIds: ann.deviceIds(),
    },
    ann.timelineNotice(1),
  ]);
});

test('exactly the requested accounts get notices', async () => {
  const ben = await Person.register(relay, 'ben');
  const accountsOf = (notices: Notice[]) =>
    notices.map((notice) => ('account' in notice ? notice.account : ''));
  expect(accountsOf(await resync(ann, ben)).sort()).toEqual([ann.account, ben.account].sort());
  expect(accountsOf(await resync(ben))).toEqual([ben.account]);
  expect(await resync(new Person(relay, 'carl'))).toEqual([]);
});

test('04 §19: a timeline that never had a record gives no notice', async () => {
  expect(await kinds(ann)).toEqual(['device-state']);
  await note();
  expect(await kinds(ann)).toEqual(['device-state', 'timeline']);
});

test('a removed device and one whose certificate expired are not among the device IDs', async () => {
  await ann.addDevice('watch', { expiresAt: relay.clock.now() + 10 });
  await ann.publishState(await ann.state({ devices: ['phone', 'watch'] }));
  relay.clock.advance(10);
  expect(await resync(ann)).toMatchObject([{ deviceIds: ann.deviceIds('phone') }]);
});

test('02 §12.2: an account that is at home elsewhere, or nowhere any more, gets no notice', async () => {
  await note();
  const write = (sql: string, ...values: (string | number)[]) =>
    relay.context.storage.write(`account:${ann.account}`, (tx) => tx.run(sql, ...values));
  await write('UPDATE account_routes SET conflict = 1');
  expect(await resync(ann)).toEqual([]);
  await write('UPDATE account_routes SET conflict = 0, relay_id = ?', `0x${'11'.repeat(20)}`);
  expect(await resync(ann)).toEqual([]);
  await write('UPDATE account_routes SET relay_id = ?', relay.relayId);
  expect(await kinds(ann)).toEqual(['device-state', 'timeline']);
  await write('UPDATE account_routes SET expires_at = ?', relay.clock.now());
  expect(await resync(ann)).toEqual([]);
});
