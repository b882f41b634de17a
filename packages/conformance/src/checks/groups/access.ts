/** The messages and keys that each device may read (05 §7.3, §10). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import {
  kindsOf,
  messagesOf,
  readChain,
  readEpochs,
  readHead,
  readKeyPage,
  rotatedByRelay,
} from '../../groups/group-reader.ts';
import { TestGroup } from '../../groups/test-group.ts';

const sync = checksOf('group.sync');
const keys = checksOf('group.key.sync');

/** Reads the sequences of the messages that a device may read. */
async function seenBy(group: TestGroup, by: TestAccount): Promise<string> {
  return messagesOf(await readChain(group, by)).join();
}

sync.check(
  'new-device',
  { source: '05 §10.2', title: 'gives a new device the whole chain, and messages from then on' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const later = withDevice(owner, 1);
    const first = await group.send(owner, 0);
    const chain = await readChain(group, later);
    assertEqual(chain.outcomes.length, 1, 'the creation, no message');
    const second = await group.send(owner, 0);
    assertEqual(await seenBy(group, later), `${second}`, 'the messages after its first call');
    assertEqual(await seenBy(group, later), `${second}`, 'the same messages after a later call');
    assertEqual(
      await seenBy(group, owner),
      `${first},${second}`,
      'the messages of the first device',
    );
  },
);

sync.check(
  'opens-nothing',
  { source: '05 §10.2', title: 'only successful group.subscribe and sync calls start access' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const later = withDevice(owner, 1);
    const group_id = group.groupId;
    await context.expectOk(later.caller, 'group.resolve', { group_id });
    await context.expectOk(later.caller, 'group.invite.list', { group_id });
    const { sequence } = await readHead(group, owner);
    const beyond = { group_id, after: sequence + 1_000 };
    await context.expectError(
      later.caller,
      { method: 'group.sync', params: beyond },
      'bad_request',
    );
    await context.expectError(
      later.caller,
      { method: 'group.key.sync', params: beyond },
      'bad_request',
    );
    await group.send(later, 0);
    assertEqual(await seenBy(group, later), '', 'no message: its own one came before its access');
    const own = await group.send(later, 0);
    assertEqual(await seenBy(group, later), `${own}`, 'the message after the start of its access');
  },
);

keys.check(
  'new-device',
  { source: '05 §10.2', title: 'gives a new device the keys of the current and later epochs' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 2 });
    const later = withDevice(owner, 1);
    const { epoch } = await readHead(group, owner);
    const { keys: first } = await readKeyPage(group, later);
    assertEqual(first.map((entry) => entry.epoch).join(), `${epoch}`, 'the current epoch alone');
    await group.rotate([owner, ...members]);
    assertEqual(
      (await readEpochs(group, later)).length,
      2,
      'the number of epochs after a rotation',
    );
    assertEqual(
      (await readEpochs(group, owner)).length,
      3,
      'the number of epochs of the first device',
    );
    const missed = await group.send(owner, (await readHead(group, owner)).epoch);
    assertEqual(
      await seenBy(group, later),
      `${missed}`,
      'reading keys starts access to messages, too',
    );
  },
);

keys.check(
  'removed-device',
  { source: '05 §7.3', title: 'changes the relay secret if a device that had it is removed' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 3 });
    const [ben] = members as [TestAccount];
    const before = await readHead(group, owner);
    await readChain(group, withDevice(ben, 1));
    await readEpochs(group, withDevice(ben, 2));
    await publishDevices(context, ben, [ben.device]);
    const chain = await rotatedByRelay(group, owner);
    assertConforms(chain.state.epoch > before.epoch, 'a greater epoch');
    assertEqual(chain.state.head, group.head, 'the head of the chain is the same');
    for (const by of [owner, ben]) {
      assertEqual(
        (await readEpochs(group, by)).at(-1),
        chain.state.epoch,
        'new keys for the other devices',
      );
    }
    const params = { group_id: group.groupId };
    for (const by of [withDevice(ben, 1), withDevice(ben, 2)]) {
      for (const method of ['group.sync', 'group.key.sync', 'group.resolve']) {
        await context.expectError(by.caller, { method, params }, 'unauthorized');
      }
      const message = group.message(by, chain.state.epoch);
      const sending = { method: 'group.message.send', params: message };
      await context.expectError(by.caller, sending, 'unauthorized');
    }
    await group.update({ name: 'as before' });
    await rotatedByRelay(group, owner);
  },
);

keys.check(
  'no-rotation',
  {
    source: '05 §7.3, §11.4',
    title: 'does not change a relay secret that the removed device did not have',
  },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 3 });
    const [ben] = members as [TestAccount];
    const [, laptop, tablet] = [0, 1, 2].map((index) => withDevice(ben, index)) as [
      TestAccount,
      TestAccount,
      TestAccount,
    ];
    const [older, closed] = [
      await TestGroup.create(context, owner),
      await TestGroup.create(context, owner),
    ];
    for (const each of [older, closed]) await each.admit(ben);
    for (const each of [group, older, closed]) await readEpochs(each, laptop);
    await older.rotate([owner, ben]);
    await closed.close();
    await readEpochs(older, tablet);
    await publishDevices(context, ben, [ben.device, tablet.device]);
    await rotatedByRelay(group, owner);
    // Removing a device with an older secret alone causes no rotation; removing this one does.
    await publishDevices(context, ben, [ben.device]);
    await rotatedByRelay(older, owner);
    const answer = await owner.caller.call('group.sync', { group_id: closed.groupId });
    if (!answer.ok) return;
    assertEqual(kindsOf(await readChain(closed, owner)).at(-1), 'group.close', 'no event after it');
  },
);

sync.check(
  'renewed-device',
  { source: '05 §10.3', title: 'access continues if the certificate is renewed' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    await readEpochs(group, laptop);
    const first = await group.send(owner, 0);
    const expiresAt = unixSeconds() + 40_000_000;
    const certificate = await owner.account.certify(laptop.device.signer, { expiresAt });
    const device = { ...laptop.device, certificate };
    await publishDevices(context, owner, [owner.device, device]);
    const second = await group.send(owner, 0);
    const again = { ...laptop, device, caller: await context.deviceSession(device) };
    assertEqual(
      await seenBy(group, again),
      `${first},${second}`,
      'messages from before and after the renewal',
    );
    assertEqual((await readEpochs(group, again)).join(), '0', 'the same epoch');
  },
);

sync.check(
  'kept',
  { source: '05 §10.3', title: "a role, a transfer or the owner's new key ends no access" },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    const [ben] = members as [TestAccount];
    const first = await group.send(owner, (await readHead(group, owner)).epoch);
    await group.setRole(ben, 'administrator');
    await group.transfer(ben);
    await group.rotate([owner, ben], group.keys.make());
    const second = await group.send(owner, (await readHead(group, owner)).epoch);
    for (const [by, epochs] of [
      [owner, 3],
      [ben, 2],
    ] as const) {
      assertEqual(await seenBy(group, by), `${first},${second}`, 'all messages');
      assertEqual((await readEpochs(group, by)).length, epochs, 'all epochs since the admission');
    }
  },
);

sync.check(
  're-enabled-device',
  { source: '05 §10.3', title: 'gives no access to the time in which a device was not valid' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    await readEpochs(group, laptop);
    const before = await group.send(owner, 0);
    await publishDevices(context, owner, [owner.device]);
    const { epoch } = (await rotatedByRelay(group, owner)).state;
    await group.send(owner, epoch);
    await publishDevices(context, owner, owner.devices);
    const again = { ...laptop, caller: await context.deviceSession(laptop.device) };
    assertEqual(
      await seenBy(group, again),
      `${before}`,
      'messages of the earlier range, not of the gap',
    );
    const after = await group.send(owner, epoch);
    assertEqual(
      await seenBy(group, again),
      `${before},${after}`,
      'messages of the earlier range and after the return',
    );
    assertEqual((await readEpochs(group, again)).join(), `0,${epoch}`, 'keys of both ranges');
  },
);

sync.check(
  're-enabled-soon',
  { source: '05 §10.3', title: 'gives no access to that time, however soon the device returns' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    // It gets no relay secret, so its removal causes no new epoch.
    assertEqual(await seenBy(group, laptop), '', 'no message yet');
    await publishDevices(context, owner, [owner.device]);
    await group.send(owner, 0);
    await publishDevices(context, owner, owner.devices);
    const again = { ...laptop, caller: await context.deviceSession(laptop.device) };
    assertEqual(await seenBy(group, again), '', 'no message sent while it was removed');
    const after = await group.send(owner, 0);
    assertEqual(await seenBy(group, again), `${after}`, 'the message after its return');
  },
);

sync.check(
  'sessions',
  { source: '05 §10.3', title: 'access outlives sessions and connections of its device' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    await readChain(group, laptop);
    const sequence = await group.send(owner, 0);
    const again = { ...laptop, caller: await context.deviceSession(laptop.device) };
    assertEqual(await seenBy(group, again), `${sequence}`, 'the message sent meanwhile');
  },
);

export const groupAccessChecks = [...sync.list, ...keys.list];
