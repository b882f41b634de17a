/** What people do. */
import { ProtocolError } from '@posthouse/protocol';
import type { Resident } from '../clients/resident.ts';
import type { World } from '../world.ts';
import { actInChannels } from './channels.ts';
import { actInGroups } from './groups.ts';

/** Longest milliseconds between two things that a person does. */
const longestPause = 4_000;

/** Lives until the world ends; several things at once. */
export async function live(world: World, resident: Resident): Promise<void> {
  await Promise.all([act(world, resident), act(world, resident), stayConnected(world, resident)]);
}

async function act(world: World, resident: Resident): Promise<void> {
  const { chance, scheduler } = world;
  while (!world.isEnding) {
    await scheduler.pause(chance.number() * longestPause);
    await chance.weighted<() => Promise<void>>([
      [6, () => sendMail(world, resident)],
      [5, () => readMail(world, resident)],
      [1, () => changeDevices(world, resident)],
      [world.homes.length > 1 ? 1 : 0, () => move(world, resident)],
      [6, () => actInGroups(world, resident)],
      [4, () => actInChannels(world, resident)],
    ])();
  }
}

async function stayConnected(world: World, resident: Resident): Promise<void> {
  const { chance, scheduler } = world;
  while (!world.isEnding) {
    const relay = chance.is(0.7) ? resident.home : chance.pick(world.homes);
    await world.connect(resident, chance.pick([...resident.devices]), relay);
    await scheduler.pause(chance.number() * longestPause);
  }
}

async function sendMail(world: World, from: Resident): Promise<void> {
  const { chance, residents } = world;
  const to = chance.pick(residents.filter((other) => other !== from));
  const device = chance.pick([...from.devices]);
  const senders = chance.is(0.5) ? [...from.devices] : [];
  const removed = [...to.person.devices.keys()].filter((name) => !to.devices.has(name)).slice(0, 3);
  // Also boxes for devices that are removed, and for no others.
  const boxes = chance.weighted([
    [6, [...to.devices]],
    [1, [...to.devices, ...removed]],
    [1, removed.length > 0 ? removed : [...to.devices]],
  ]);
  await world.mail.send(from, to, { device, boxes, senders });
}

async function readMail(world: World, owner: Resident): Promise<void> {
  const { chance } = world;
  const device = chance.pick([...owner.devices]);
  const reader = world.reader(owner, device);
  const { relay } = owner.home;
  await unlessRemoved(world, { owner, device }, () =>
    chance.is(0.2) ? reader.readAgain(relay) : reader.readOn(relay, 1 + chance.below(5)),
  );
}

/** Calls as a device that may be removed, or an account that may move, meanwhile. */
async function unlessRemoved(
  { journal }: World,
  { owner, device }: { readonly owner: Resident; readonly device: string },
  call: () => Promise<void>,
): Promise<void> {
  const { home, isMoving } = owner;
  try {
    await call();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code } = error;
    const hasMoved = isMoving || owner.isMoving || owner.home !== home;
    const isOver = hasMoved || !owner.devices.has(device);
    journal.must(
      isOver && ['unauthorized', 'device_unknown'].includes(code),
      () => `${owner.name}'s ${device} is refused with ${code}`,
    );
  }
}

/** Moves to another relay. */
async function move({ chance, hints, homes, journal }: World, owner: Resident): Promise<void> {
  await owner.alone(async () => {
    const next = chance.pick(homes.filter((home) => home !== owner.home));
    hints.doubt(owner.agents);
    await owner.moveTo(next);
    hints.doubt(owner.agents);
    journal.record(`${owner.name} moved to ${next.relay.name}`);
  });
}

/** Adds a device, or removes one and shows that it is nothing any more. */
async function changeDevices(world: World, owner: Resident): Promise<void> {
  const { chance } = world;
  await owner.alone(async () => {
    const [, ...others] = [...owner.devices];
    if (others.length < 2 && chance.is(0.6)) await addDevice(world, owner);
    else if (others.length > 0) await removeDevice(world, owner, chance.pick(others));
  });
}

async function addDevice(world: World, owner: Resident): Promise<void> {
  const device = `tablet ${owner.byDeviceId.size}`;
  await owner.makeDevice(device);
  const devices = [...owner.devices, device];
  await owner.person.publishState(await owner.person.state({ devices }));
  owner.devices.add(device);
  world.journal.record(`${owner.name} has a ${device}`);
}

async function removeDevice(world: World, owner: Resident, device: string): Promise<void> {
  const { journal, scheduler, hints } = world;
  const agent = owner.agent(device);
  owner.devices.delete(device);
  hints.doubt([agent]);
  const names = [...owner.devices];
  await owner.person.publishState(await owner.person.state({ devices: names }));
  owner.removed.set(device, scheduler.milliseconds);
  hints.remove(agent, owner.home.relay);
  journal.record(`${owner.name}'s ${device} is removed`);
  const { relay } = owner.home;
  const code = await agent.call(relay, 'message.timeline.sync', {}).then(
    () => 'ok',
    (error: ProtocolError) => error.code,
  );
  journal.must(
    ['unauthorized', 'device_unknown'].includes(code),
    () => `the removed ${device} of ${owner.name} reads: ${code}`,
  );
}
