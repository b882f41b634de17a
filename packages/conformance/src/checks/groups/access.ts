/** Which messages and keys each device is given (05 §7.3, §10). */

import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { at, keepDevices } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import {
  kindsOf,
  messagesOf,
  readChain,
  readEpochs,
  readHead,
  readKeyPage,
  rotatedByRelay,
} from '../../groups/group-reader.ts';
import { GroupActors } from '../../groups/test-group.ts';

const sync = checksOf('group.sync');
const keys = checksOf('group.key.sync');

/** Messages a device sees, by their sequences. */
async function seenBy(group: GroupActors, by: Resident): Promise<string> {
  return messagesOf(await readChain(group, by)).join();
}

sync.check(
  'new-device',
  { source: '05 §10.2', title: 'gives a new device the whole chain, messages from now on' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const later = at(owner, 1);
    const first = await group.send(owner, 0);
    const chain = await readChain(group, later);
    demand(chain.outcomes.length === 1, 'the creation, no message');
    const second = await group.send(owner, 0);
    demand((await seenBy(group, later)) === `${second}`, 'what came after its first call');
    demand((await seenBy(group, later)) === `${second}`, 'a later call moves nothing');
    demand((await seenBy(group, owner)) === `${first},${second}`, 'both for the first device');
  },
);

sync.check(
  'opens-nothing',
  { source: '05 §10.2', title: 'only subscribing and synchronising open access, and no failure' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const later = at(owner, 1);
    const group_id = group.groupId;
    await stage.succeed(later.caller, 'group.resolve', { group_id });
    await stage.succeed(later.caller, 'group.invite.list', { group_id });
    const { sequence } = await readHead(group, owner);
    const beyond = { group_id, after: sequence + 1_000 };
    await stage.fail(later.caller, { method: 'group.sync', params: beyond }, 'bad_request');
    await stage.fail(later.caller, { method: 'group.key.sync', params: beyond }, 'bad_request');
    await group.send(later, 0);
    demand((await seenBy(group, later)) === '', 'its own message came before its access');
    const own = await group.send(later, 0);
    demand((await seenBy(group, later)) === `${own}`, 'the next is behind it');
  },
);

keys.check(
  'new-device',
  { source: '05 §10.2', title: 'gives a new device the current epoch and those that follow' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1, devices: 2 });
    const later = at(owner, 1);
    const { epoch } = await readHead(group, owner);
    const { keys: first } = await readKeyPage(group, later);
    demand(first.map((entry) => entry.epoch).join() === `${epoch}`, 'the current epoch alone');
    await group.rotate([owner, ...members]);
    demand((await readEpochs(group, later)).length === 2, 'and the next');
    demand((await readEpochs(group, owner)).length === 3, 'the first device has all');
    const missed = await group.send(owner, (await readHead(group, owner)).epoch);
    demand((await seenBy(group, later)) === `${missed}`, 'keys open access to messages too');
  },
);

keys.check(
  'removed-device',
  { source: '05 §7.3', title: 'changes the relay secret when a device that had it is removed' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1, devices: 3 });
    const [ben] = members as [Resident];
    const before = await readHead(group, owner);
    await readChain(group, at(ben, 1));
    await readEpochs(group, at(ben, 2));
    await keepDevices(stage, ben, [ben.device]);
    const chain = await rotatedByRelay(group, owner);
    demand(chain.state.epoch > before.epoch, 'a greater epoch');
    demand(chain.state.head === group.head, 'the head of the chain is the same');
    for (const by of [owner, ben]) {
      demand((await readEpochs(group, by)).at(-1) === chain.state.epoch, 'new keys for the rest');
    }
    const params = { group_id: group.groupId };
    for (const by of [at(ben, 1), at(ben, 2)]) {
      for (const method of ['group.sync', 'group.key.sync', 'group.resolve']) {
        await stage.fail(by.caller, { method, params }, 'unauthorized');
      }
      const message = group.message(by, chain.state.epoch);
      const sending = { method: 'group.message.send', params: message };
      await stage.fail(by.caller, sending, 'unauthorized');
    }
    await group.update({ name: 'as before' });
    await rotatedByRelay(group, owner);
  },
);

keys.check(
  'no-rotation',
  { source: '05 §7.3, §11.4', title: 'keeps a relay secret that the removed device did not have' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1, devices: 3 });
    const [ben] = members as [Resident];
    const [, laptop, tablet] = [0, 1, 2].map((index) => at(ben, index)) as [
      Resident,
      Resident,
      Resident,
    ];
    const [older, closed] = [
      await GroupActors.found(stage, owner),
      await GroupActors.found(stage, owner),
    ];
    for (const each of [older, closed]) await each.admit(ben);
    for (const each of [group, older, closed]) await readEpochs(each, laptop);
    await older.rotate([owner, ben]);
    await closed.close();
    await readEpochs(older, tablet);
    await keepDevices(stage, ben, [ben.device, tablet.device]);
    await rotatedByRelay(group, owner);
    // The one who had an older secret of this group gave no reason; the other, now, does.
    await keepDevices(stage, ben, [ben.device]);
    await rotatedByRelay(older, owner);
    const answer = await owner.caller.call('group.sync', { group_id: closed.groupId });
    if (!answer.ok) return;
    demand(kindsOf(await readChain(closed, owner)).at(-1) === 'group.close', 'nothing behind it');
  },
);

sync.check(
  'renewed-device',
  { source: '05 §10.3', title: 'goes on for a device whose certificate is renewed' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const laptop = at(owner, 1);
    await readEpochs(group, laptop);
    const first = await group.send(owner, 0);
    const expiresAt = unixSeconds() + 40_000_000;
    const certificate = await owner.account.certify(laptop.device.signer, { expiresAt });
    const device = { ...laptop.device, certificate };
    await keepDevices(stage, owner, [owner.device, device]);
    const second = await group.send(owner, 0);
    const again = { ...laptop, device, caller: await stage.member(device) };
    demand((await seenBy(group, again)) === `${first},${second}`, 'messages of before and since');
    demand((await readEpochs(group, again)).join() === '0', 'in the same epoch');
  },
);

sync.check(
  'kept',
  { source: '05 §10.3', title: "a role, a transfer or the owner's new key takes nothing away" },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const first = await group.send(owner, (await readHead(group, owner)).epoch);
    await group.setRole(ben, 'administrator');
    await group.transfer(ben);
    await group.rotate([owner, ben], group.keys.make());
    const second = await group.send(owner, (await readHead(group, owner)).epoch);
    for (const [by, epochs] of [
      [owner, 3],
      [ben, 2],
    ] as const) {
      demand((await seenBy(group, by)) === `${first},${second}`, 'all messages');
      demand((await readEpochs(group, by)).length === epochs, 'all epochs since the admission');
    }
  },
);

sync.check(
  're-enabled-device',
  { source: '05 §10.3', title: 'adds nothing of the time in which a device was not valid' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const laptop = at(owner, 1);
    await readEpochs(group, laptop);
    const before = await group.send(owner, 0);
    await keepDevices(stage, owner, [owner.device]);
    const { epoch } = (await rotatedByRelay(group, owner)).state;
    await group.send(owner, epoch);
    await keepDevices(stage, owner, owner.devices);
    const again = { ...laptop, caller: await stage.member(laptop.device) };
    demand((await seenBy(group, again)) === `${before}`, 'the earlier range, not the gap');
    const after = await group.send(owner, epoch);
    demand((await seenBy(group, again)) === `${before},${after}`, 'and what follows');
    demand((await readEpochs(group, again)).join() === `0,${epoch}`, 'keys of both ranges');
  },
);

sync.check(
  're-enabled-soon',
  { source: '05 §10.3', title: 'adds nothing of that time, however soon the device is back' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const laptop = at(owner, 1);
    // It is given no relay secret, so that its removal costs no epoch.
    demand((await seenBy(group, laptop)) === '', 'nothing yet');
    await keepDevices(stage, owner, [owner.device]);
    await group.send(owner, 0);
    await keepDevices(stage, owner, owner.devices);
    const again = { ...laptop, caller: await stage.member(laptop.device) };
    demand((await seenBy(group, again)) === '', 'not what was sent meanwhile');
    const after = await group.send(owner, 0);
    demand((await seenBy(group, again)) === `${after}`, 'what follows');
  },
);

sync.check(
  'sessions',
  { source: '05 §10.3', title: 'access outlives sessions and connections of its device' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { devices: 2 });
    const laptop = at(owner, 1);
    await readChain(group, laptop);
    const sequence = await group.send(owner, 0);
    const again = { ...laptop, caller: await stage.member(laptop.device) };
    demand((await seenBy(group, again)) === `${sequence}`, 'the message sent meanwhile');
  },
);

export const groupAccessChecks = [...sync.list, ...keys.list];
