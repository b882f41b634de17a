import { beforeEach, describe, expect, test, vi } from 'vitest';
import { TestChannel } from '../fixtures/channel.ts';
import { Connections } from '../fixtures/connections.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readPage } from '../fixtures/group-reader.ts';
import { Person } from '../fixtures/person.ts';
import { signIn } from '../fixtures/sign-in.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { patience } from '../support/patience.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const wired = wiredRelays(2);
const [home, host] = wired.relays as [InProcessRelay, InProcessRelay];
const day = 86_400;
/** At home at the host. */
let ann: Person;
/** At home elsewhere, signed in at the host with both devices. */
let ben: Person;
let group: TestGroup;

beforeEach(async () => {
  ann = await Person.register(host, 'ann');
  ben = await Person.register(home, 'ben', ['phone', 'laptop']);
  await signIn(host, ben);
  await signIn(host, ben, 'laptop');
  group = await TestGroup.create(host, ann);
  await group.admit(ben);
  await readPage(host, group, ben, { device: 'phone' });
  await readPage(host, group, ben, { device: 'laptop' });
});

const intervals = async (device: string) =>
  (await host.rows('group_intervals'))
    .filter(({ device_id }) => device_id === ben.device(device).deviceId)
    .map(({ message_to }) => (message_to === null ? 'open' : 'closed'));
const epoch = async () => (await host.rows('groups')).map((row) => row.epoch);
/** The laptop is no part of the account any more. */
const removeLaptop = async () => ben.publishState(await ben.state({ devices: ['phone'] }));
const sync = (device: string) =>
  host.codeOf('group.sync', { group_id: group.groupId }, { session: ben.session(device) });
async function ask(): Promise<void> {
  await host.runJob('accounts.remote-devices');
  await host.runJob('accounts.inactive-devices');
}

describe('05 §1.2, 06 §1.2: accounts at home elsewhere use groups and channels', () => {
  test('they create a group, invite, and post; connections are notified', async () => {
    const own = await TestGroup.create(host, ben);
    await own.admit(ann);
    const connections = new Connections(host);
    const listening = await connections.withGroups(ben, own);
    const sequence = await own.send(ann, 1);
    await own.send(ben, 1, 'phone');
    await vi.waitFor(
      () => expect(listening.hints()).toContainEqual(['timeline', sequence + 1]),
      patience,
    );
  });

  test('they create a channel, follow and post', async () => {
    const channel = await TestChannel.create(host, ben, { moderators: [ann.account] });
    await channel.post(undefined, { by: ben, device: 'laptop' });
    await channel.post(undefined, { by: ann });
    expect(await channel.sequences({}, { by: ben })).toEqual([0, 1, 2]);
  });

  test('an event keeps the certificate that its device signed in with', async () => {
    const channel = await TestChannel.create(host, ben);
    const { certificate } = ben.device('phone');
    const { signer_certificate } = (await channel.resolve(undefined, { by: ann })) as never;
    expect(signer_certificate).toEqual(certificate);
  });
});

describe('05 §7.3, §10.3: a device removed at its home relay', () => {
  test('loses its access here, and the group gets a new secret', async () => {
    const [before] = await epoch();
    await removeLaptop();
    await home.runJob('accounts.status-hints');
    await ask();
    expect(await intervals('laptop')).toEqual(['closed']);
    expect(await intervals('phone')).toEqual(['open']);
    expect(await epoch()).toEqual([(before as number) + 1]);
    expect(await sync('laptop')).toBe('unauthorized');
    expect(await sync('phone')).toBe('ok');
  });

  test('keeps its access while its home relay cannot be reached, which is asked again', async () => {
    await removeLaptop();
    await home.runJob('accounts.status-hints');
    wired.cut(host, home);
    await ask();
    expect(await intervals('laptop')).toEqual(['open']);
    expect(await sync('laptop')).toBe('temporarily_unavailable');
    wired.heal();
    host.clock.advance(30);
    await ask();
    expect(await intervals('laptop')).toEqual(['closed']);
  });

  test('loses its access within a day if the hint was lost', async () => {
    wired.cut(home, host);
    await removeLaptop();
    wired.advance(day - 1);
    await ask();
    expect(await intervals('laptop')).toEqual(['open']);
    wired.advance(1);
    await ask();
    expect(await intervals('laptop')).toEqual(['closed']);
    expect(await intervals('phone')).toEqual(['open']);
  });

  test('loses its access when its certificate ends, but a renewed one keeps it', async () => {
    const end = home.clock.now() + 1_000;
    await ben.addDevice('phone', { expiresAt: end });
    await ben.addDevice('laptop', { expiresAt: end });
    await ben.publishState();
    await home.runJob('accounts.status-hints');
    await ask();
    await ben.addDevice('phone');
    await ben.publishState();
    wired.cut(home, host);
    wired.advance(1_000);
    await ask();
    expect(await intervals('laptop')).toEqual(['closed']);
    expect(await intervals('phone')).toEqual(['open']);
    expect(await sync('phone')).toBe('ok');
  });

  test('is asked for at the new home relay if the account came from here', async () => {
    await group.admit(await Person.register(host, 'cem', ['phone', 'laptop']));
    const guest = await Person.register(host, 'dan', ['phone', 'laptop']);
    await group.admit(guest);
    await readPage(host, group, guest, { device: 'laptop' });
    guest.devices.delete('phone');
    const { deviceId } = guest.device('laptop');
    await guest.moveTo(home);
    await ask();
    const open = (await host.rows('group_intervals')).filter(
      ({ account, message_to }) => account === guest.account && message_to === null,
    );
    expect(open.map(({ device_id }) => device_id)).toEqual([deviceId]);
  });
});
