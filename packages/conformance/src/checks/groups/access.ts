/** Which messages and keys each device is given (05 §7.3, §10). */

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

/** Messages a device sees, by their sequences. */
async function seenBy(group: TestGroup, by: TestAccount): Promise<string> {
  return messagesOf(await readChain(group, by)).join();
}

sync.check(
  'new-device',
  { source: '05 §10.2', title: 'gives a new device the whole chain, messages from now on' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const later = withDevice(owner, 1);
    const first = await group.send(owner, 0);
    const chain = await readChain(group, later);
    assertEqual(chain.outcomes.length, 1, 'the creation, no message');
    const second = await group.send(owner, 0);
    assertEqual(await seenBy(group, later), `${second}`, 'what came after its first call');
    assertEqual(await seenBy(group, later), `${second}`, 'a later call moves nothing');
    assertEqual(await seenBy(group, owner), `${first},${second}`, 'both for the first device');
  },
);

sync.check(
  'opens-nothing',
  { source: '05 §10.2', title: 'only subscribing and synchronising open access, and no failure' },
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
    assertEqual(await seenBy(group, later), '', 'its own message came before its access');
    const own = await group.send(later, 0);
    assertEqual(await seenBy(group, later), `${own}`, 'the next is behind it');
  },
);

keys.check(
  'new-device',
  { source: '05 §10.2', title: 'gives a new device the current epoch and those that follow' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1, devices: 2 });
    const later = withDevice(owner, 1);
    const { epoch } = await readHead(group, owner);
    const { keys: first } = await readKeyPage(group, later);
    assertEqual(first.map((entry) => entry.epoch).join(), `${epoch}`, 'the current epoch alone');
    await group.rotate([owner, ...members]);
    assertEqual((await readEpochs(group, later)).length, 2, 'and the next');
    assertEqual((await readEpochs(group, owner)).length, 3, 'the first device has all');
    const missed = await group.send(owner, (await readHead(group, owner)).epoch);
    assertEqual(await seenBy(group, later), `${missed}`, 'keys open access to messages too');
  },
);

keys.check(
  'removed-device',
  { source: '05 §7.3', title: 'changes the relay secret when a device that had it is removed' },
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
      assertEqual((await readEpochs(group, by)).at(-1), chain.state.epoch, 'new keys for the rest');
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
  { source: '05 §7.3, §11.4', title: 'keeps a relay secret that the removed device did not have' },
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
    // The one who had an older secret of this group gave no reason; the other, now, does.
    await publishDevices(context, ben, [ben.device]);
    await rotatedByRelay(older, owner);
    const answer = await owner.caller.call('group.sync', { group_id: closed.groupId });
    if (!answer.ok) return;
    assertEqual(kindsOf(await readChain(closed, owner)).at(-1), 'group.close', 'nothing behind it');
  },
);

sync.check(
  'renewed-device',
  { source: '05 §10.3', title: 'goes on for a device whose certificate is renewed' },
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
    assertEqual(await seenBy(group, again), `${first},${second}`, 'messages of before and since');
    assertEqual((await readEpochs(group, again)).join(), '0', 'in the same epoch');
  },
);

sync.check(
  'kept',
  { source: '05 §10.3', title: "a role, a transfer or the owner's new key takes nothing away" },
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
  { source: '05 §10.3', title: 'adds nothing of the time in which a device was not valid' },
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
    assertEqual(await seenBy(group, again), `${before}`, 'the earlier range, not the gap');
    const after = await group.send(owner, epoch);
    assertEqual(await seenBy(group, again), `${before},${after}`, 'and what follows');
    assertEqual((await readEpochs(group, again)).join(), `0,${epoch}`, 'keys of both ranges');
  },
);

sync.check(
  're-enabled-soon',
  { source: '05 §10.3', title: 'adds nothing of that time, however soon the device is back' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    // It is given no relay secret, so that its removal costs no epoch.
    assertEqual(await seenBy(group, laptop), '', 'nothing yet');
    await publishDevices(context, owner, [owner.device]);
    await group.send(owner, 0);
    await publishDevices(context, owner, owner.devices);
    const again = { ...laptop, caller: await context.deviceSession(laptop.device) };
    assertEqual(await seenBy(group, again), '', 'not what was sent meanwhile');
    const after = await group.send(owner, 0);
    assertEqual(await seenBy(group, again), `${after}`, 'what follows');
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
