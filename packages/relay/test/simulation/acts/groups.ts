/** What people do in groups. */
import { managementHash, ProtocolError } from '@posthouse/protocol';
import { network } from '../../support/modules.ts';
import { ofDevice } from '../checks/changes.ts';
import type { Club } from '../checks/club.ts';
import type { Resident } from '../clients/resident.ts';
import type { World } from '../world.ts';

/** Groups of one simulation. */
const maxGroups = 3;

export async function actInGroups(world: World, by: Resident): Promise<void> {
  const { chance } = world;
  const own = world.clubs.filter(({ members }) => members.has(by));
  if (world.clubs.length < maxGroups && (own.length === 0 || chance.is(0.1))) {
    await world.foundClub(by);
    return;
  }
  if (own.length === 0) return;
  const club = chance.pick(own);
  await chance.weighted<() => Promise<void>>([
    [6, () => club.send(by, chance.pick([...by.devices]))],
    [4, () => readGroup(world, club, by)],
    [club.owner === by ? 12 : 0, () => manage(world, club)],
  ])();
}

async function readGroup(world: World, club: Club, by: Resident): Promise<void> {
  const { chance, journal } = world;
  const device = chance.pick([...by.devices]);
  const wasMember = club.members.has(by) && !club.changing.has(by);
  try {
    await club.read(by, device, 1 + chance.below(20));
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    const { code } = error;
    const isMember = wasMember && club.members.has(by) && !club.changing.has(by);
    const isExpected =
      (!isMember && code === 'forbidden') ||
      ((!by.devices.has(device) || by.isUncertainAt(club.host.relay)) && ofDevice.includes(code));
    journal.must(isExpected, () => `${by.name} cannot read a group: ${code}`);
  }
}

/** A change of the chain by the owner. */
async function manage(world: World, club: Club): Promise<void> {
  const { chance, residents } = world;
  const { group, owner } = club;
  const others = [...club.members].filter((member) => member !== owner);
  const outsiders = residents.filter((one) => !club.members.has(one) && !club.changing.has(one));
  await chance.weighted<() => Promise<void>>([
    [outsiders.length > 0 ? 6 : 0, () => admit(world, club, chance.pick(outsiders))],
    [others.length > 0 ? 5 : 0, () => dismiss(world, club, chance.pick(others))],
    [1, async () => void (await club.change(() => group.rotate()))],
    [
      1,
      async () => void (await club.change(() => group.update({ name: `club ${chance.below(9)}` }))),
    ],
    [1, () => race(world, club)],
  ])();
}

async function admit(world: World, club: Club, who: Resident): Promise<void> {
  const { hints, journal } = world;
  const topic = { kind: 'group', id: club.id } as const;
  club.changing.add(who);
  hints.reopen([...who.byDeviceId.values()], topic);
  const { banned, group } = club;
  const isDone = await club.change(async () => {
    if (banned.has(who)) await group.unban([who.person]);
    banned.delete(who);
    await group.admit(who.person);
  });
  if (isDone) {
    club.members.add(who);
    journal.record(`${who.name} joined ${club.id}`);
    hints.resume(who.agents, topic);
  }
  if (club.isWritable) club.changing.delete(who);
}

async function ban({ banned, group }: Club, who: Resident): Promise<void> {
  banned.add(who);
  await group.ban([who.person]);
}

/** Ends a membership, and shows that it is over. */
async function dismiss(world: World, club: Club, who: Resident): Promise<void> {
  const { chance, hints, journal } = world;
  const { group } = club;
  if (club.changing.has(who)) return;
  const isWatching = chance.is(0.5);
  if (isWatching) {
    who.agent('phone').close();
    await world.connect(who, 'phone', club.host);
    if (club.changing.has(who) || !club.members.has(who)) return;
  }
  club.changing.add(who);
  const agents = [...who.byDeviceId.values()];
  const topic = { kind: 'group', id: club.id } as const;
  hints.doubt(agents, topic);
  const end = chance.weighted([
    [4, () => group.remove([who.person])],
    [3, () => group.leave(who.person)],
    [3, () => ban(club, who)],
  ]);
  if (!(await club.change(end))) return;
  club.members.delete(who);
  hints.end(agents, topic);
  journal.record(`${who.name} is no member of ${club.id}`);
  const code = await who
    .agent('phone')
    .call(club.host.relay, 'group.sync', { group_id: club.id })
    .then(
      () => 'ok',
      (error: ProtocolError) => error.code,
    );
  journal.must(ofDevice.includes(code), () => `${who.name} is no member and reads: ${code}`);
  club.changing.delete(who);
  if (!isWatching) return;
  // The subscription of the connection holds again, and there is something to tell.
  await admit(world, club, who);
  await club.send(club.owner, 'phone');
}

/** Two changes of the same head at once: one of them is accepted. */
async function race({ chance, journal }: World, club: Club): Promise<void> {
  const { group, owner, host } = club;
  await club.change(async () => {
    const links = ['one', 'two'].map((name) =>
      group.link('group.update', { name: `${name} ${chance.below(1_000)}` }),
    );
    const codes = await Promise.all(
      links.map((link) =>
        host.call('group.update', link, { session: owner.person.session() }).then(
          () => 'ok',
          (error: ProtocolError) => error.code,
        ),
      ),
    );
    const winner = links[codes.indexOf('ok')];
    journal.must(
      winner !== undefined && codes.includes('state_conflict'),
      () => `two changes of one head are answered ${codes.join(' and ')}`,
    );
    if (winner !== undefined) group.head = managementHash(network, winner as never);
  });
}
