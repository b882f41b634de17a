/** Which messages and keys each device is given (05 §7.3, §10). */
import { checksOf } from '../check.ts';
import { demand } from '../demand.ts';
import type { GroupActors } from '../group-actors.ts';
import {
  kindsOf,
  messagesOf,
  readChain,
  readEpochs,
  readHead,
  readKeyPage,
} from '../group-reader.ts';
import { at, sceneOf } from '../group-scene.ts';
import { eventually } from '../patience.ts';
import type { Resident, Stage } from '../stage.ts';

const sync = checksOf('group.sync');
const keys = checksOf('group.key.sync');

/** Publishes the devices that somebody has from now on. */
async function keepDevices(
  { account, caller }: Resident,
  devices: Resident['devices'],
  stage: Stage,
) {
  await stage.succeed(caller, 'device.state.publish', await account.state(devices));
}

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
    await keepDevices(ben, [ben.device], stage);
    const chain = await eventually('a rotation by the relay', async () => {
      const read = await readChain(group, owner);
      return kindsOf(read).includes('group.key.rotated') ? read : undefined;
    });
    demand(chain.state.epoch > before.epoch, 'a greater epoch');
    demand(chain.state.head === group.head, 'the head of the chain is the same');
    for (const by of [owner, ben]) {
      demand((await readEpochs(group, by)).at(-1) === chain.state.epoch, 'new keys for the rest');
    }
    const rotations = kindsOf(await readChain(group, owner)).filter(
      (kind) => kind === 'group.key.rotated',
    );
    demand(rotations.length === 1, 'none for the device that had no keys');
    const params = { group_id: group.groupId };
    for (const { caller } of [at(ben, 1), at(ben, 2)]) {
      for (const method of ['group.sync', 'group.key.sync', 'group.resolve']) {
        await stage.fail(caller, { method, params }, 'unauthorized');
      }
    }
    await group.update({ name: 'as before' });
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
    await keepDevices(owner, [owner.device], stage);
    const epoch = await eventually('a rotation by the relay', async () => {
      const head = await readHead(group, owner);
      return head.epoch > 0 ? head.epoch : undefined;
    });
    await group.send(owner, epoch);
    await keepDevices(owner, owner.devices, stage);
    const again = { ...laptop, caller: await stage.member(laptop.device) };
    demand((await seenBy(group, again)) === `${before}`, 'the earlier range, not the gap');
    const after = await group.send(owner, epoch);
    demand((await seenBy(group, again)) === `${before},${after}`, 'and what follows');
    demand((await readEpochs(group, again)).join() === `0,${epoch}`, 'keys of both ranges');
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
