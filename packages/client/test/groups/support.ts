/** Accounts with two devices each, and groups of them. */
import type { Account } from '../../src/index.ts';
import type { RelayWithClients } from '../support/relay-with-clients.ts';

/** Lists the texts of a group's messages on one device. */
export async function groupTexts(account: Account, groupId: string): Promise<string[]> {
  const rows = await account.groups.listMessages(groupId);
  return rows.map((row) => row.body?.text ?? '');
}

/** Adds another device to an account; both devices know each other. */
export async function anotherDevice(
  world: RelayWithClients,
  account: Account,
  options: Parameters<RelayWithClients['client']>[0] = {},
): Promise<Account> {
  const client = await world.client(options);
  const request = await client.requestDevice(account.publicKey);
  const approval = await account.devices.approve(request);
  const device = await client.completeDevice(approval, { accountPublicKey: account.publicKey });
  await exchange(device, account);
  return device;
}

/** Runs the pending tasks of both devices, and syncs both. */
export async function exchange(...devices: readonly Account[]): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    for (const device of devices) await device.sync();
  }
}

/** Admits accounts to a group by one public invitation. */
export async function admit(
  owner: Account,
  groupId: string,
  applicants: readonly Account[],
): Promise<void> {
  const { text } = await owner.groups.invite(groupId);
  for (const applicant of applicants) await applicant.groups.join(text);
  await owner.groups.approve(
    groupId,
    applicants.map(({ id }) => id),
  );
  for (const applicant of applicants) await applicant.sync();
}

/** Creates a group with an owner and members. */
export async function club(
  owner: Account,
  members: readonly Account[] = [],
  name = 'Club',
): Promise<string> {
  const { id } = await owner.groups.create({ name });
  if (members.length > 0) await admit(owner, id, members);
  return id;
}
