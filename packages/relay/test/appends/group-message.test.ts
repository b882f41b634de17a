import { beforeEach, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import type { CallOptions } from '../support/in-process-relay.ts';
import { TwinRelays } from './twin-relays.ts';

const tables = ['groups', 'group_messages', 'group_sent', 'group_certificates', 'group_epochs'];
const relays = new TwinRelays();
let ann: Person;
let ben: Person;
let group: TestGroup;

beforeEach(async () => {
  ann = await Person.register(relays, 'ann');
  ben = await Person.register(relays, 'ben', ['phone', 'laptop']);
  group = await TestGroup.create(relays, ann);
  await group.admit(ben);
});

type Message = ReturnType<TestGroup['message']>;

/** A message, changed and signed again. */
function changed(message: Message, facts: Partial<Message>, by = ann): object {
  const { device_signature: _, ...body } = message;
  return group.sign({ ...body, ...facts }, { by });
}

async function send(message: object, by = ann, device = 'phone') {
  return await relays.callAlike('group.message.send', message, { session: by.session(device) });
}

test('05 §13.28: an append and a write accept the same messages and store the same rows', async () => {
  for (let count = 0; count < 3; count += 1) {
    expect(await send(group.message(ann, 1))).toEqual({ result: { sequence: 2 + 3 * count } });
    await send(group.message(ben, 1), ben);
    await send(group.message(ben, 1, 'laptop'), ben, 'laptop');
    relays.advance(1_800);
  }
  await relays.expectAlike(tables);
  expect(relays.appended).toBe(9);
  await group.rotate();
  await group.ban([ben]);
  expect(await send(group.message(ann, 3))).toMatchObject({ result: {} });
  await relays.expectAlike(tables);
});

test('05 §13.28: a repeat gets the same answer and stores nothing, another message is refused', async () => {
  const message = group.message(ann, 1);
  const first = await send(message);
  expect(await send(message)).toEqual(first);
  const { message_id } = message;
  expect(await send(changed(group.message(ann, 1), { message_id }))).toEqual({
    code: 'state_conflict',
  });
  const other = await TestGroup.create(relays, ann);
  const body = changed(other.message(ann, 0), { message_id });
  expect(await send(body)).toEqual({ code: 'state_conflict' });
  // The ID is the account's: another account may use the same.
  expect(await send(changed(group.message(ben, 1), { message_id }, ben), ben)).toMatchObject({
    result: {},
  });
  await relays.expectAlike(tables);
});

test('05 §13.28: what a write refuses is refused with the same code', async () => {
  const { authClockTolerance } = relays.appending.context.limits;
  const now = relays.clock.now();
  const eve = await Person.register(relays, 'eve');
  const codes = [
    await send(group.message(ann, 0)),
    await send(group.message(ann, 2)),
    await send({
      ...group.message(ann, 1),
      device_signature: group.message(ann, 1).device_signature,
    }),
    await send(changed(group.message(ann, 1), { created_at: now - authClockTolerance - 1 })),
    await send(changed(group.message(ann, 1), { created_at: now + authClockTolerance + 1 })),
    await send(group.message(eve, 1), eve),
  ].map((ending) => ('code' in ending ? ending.code : 'ok'));
  expect(codes).toEqual([
    ...['state_conflict', 'state_conflict', 'invalid_signature', 'clock_skew', 'clock_skew'],
    'forbidden',
  ]);
  expect(relays.appended).toBe(0);
});

/** At each relay, while the next signature is verified. */
function meanwhile(method: string, params: unknown, options: CallOptions): void {
  for (const relay of relays.both) {
    relay.meanwhile = async () => {
      // The call has signatures of its own.
      await relay.call(method, params, options);
    };
  }
}

test.each<[string, string, () => Promise<void>]>([
  [
    'the group is closed',
    'state_conflict',
    async () => meanwhile('group.close', group.link('group.close', {}), { session: ann.session() }),
  ],
  [
    'the sender is banned',
    'forbidden',
    async () => {
      const ban = group.link('group.member.ban', { accounts: [ben.account] });
      meanwhile('group.member.ban', ban, { session: ann.session() });
    },
  ],
  [
    'the sender leaves',
    'forbidden',
    async () => {
      const leave = group.link('group.member.leave', { account: ben.account }, { by: ben });
      meanwhile('group.member.leave', leave, { session: ben.session() });
    },
  ],
  [
    'the device is removed',
    'unauthorized',
    async () => {
      const state = await ben.state({ devices: ['laptop'] });
      meanwhile('device.state.publish', state, { session: ben.accountSession() });
    },
  ],
  [
    // The secret that the device knew is replaced first.
    'another device of the account is removed',
    'state_conflict',
    async () => {
      const state = await ben.state({ devices: ['phone'] });
      meanwhile('device.state.publish', state, { session: ben.accountSession() });
    },
  ],
])('05 §12.6: %s while the signature is verified', async (_what, code, arrange) => {
  await send(group.message(ben, 1), ben);
  for (const device of ['phone', 'laptop']) {
    const params = { group_id: group.groupId };
    await relays.call('group.key.sync', params, { session: ben.session(device) });
  }
  const message = group.message(ben, 1);
  await arrange();
  const ending = await send(message, ben);
  expect('code' in ending ? ending.code : 'ok').toBe(code);
  await relays.expectAlike(tables);
});

test('05 §12.6: a device that never read is removed while the signature is verified', async () => {
  const message = group.message(ben, 1, 'laptop');
  const state = await ben.state({ devices: ['phone'] });
  meanwhile('device.state.publish', state, { session: ben.accountSession() });
  expect(await send(message, ben, 'laptop')).toEqual({ code: 'unauthorized' });
  await relays.expectAlike(tables);
});

test('05 §7.3: access of a removed device ends before the next message is accepted', async () => {
  await relays.call(
    'group.key.sync',
    { group_id: group.groupId },
    { session: ben.session('laptop') },
  );
  const state = await ben.state({ devices: ['phone'] });
  await relays.call('device.state.publish', state, { session: ben.accountSession() });
  const { appended } = relays;
  // The secret that the device knew is replaced first.
  expect(await send(group.message(ann, 1))).toEqual({ code: 'state_conflict' });
  expect(await send(group.message(ann, 2))).toMatchObject({ result: {} });
  // The job has not run, but the device has no access to this group any more.
  expect(relays.appended).toBeGreaterThanOrEqual(appended);
  await relays.expectAlike(tables);
});

test('05 §5.4: nothing is appended above the highest safe sequence', async () => {
  for (const relay of relays.both) {
    await relay.context.storage.write(`group:${group.groupId}`, (tx) =>
      tx.run(
        'UPDATE groups SET sequence = ? WHERE group_id = ?',
        Number.MAX_SAFE_INTEGER - 1,
        group.groupId,
      ),
    );
  }
  expect(await send(group.message(ann, 1))).toEqual({
    result: { sequence: Number.MAX_SAFE_INTEGER },
  });
  expect(await send(group.message(ann, 1))).toEqual({ code: 'state_conflict' });
  await relays.expectAlike(tables);
});
