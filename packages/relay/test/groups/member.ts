/** A group as a member's device verifies and reads it, with nothing but the client's functions. */
import {
  advanceGroup,
  checkGroupKeyPage,
  encodeBase64url,
  extendKeyHistory,
  type GroupKeyHistory,
  type GroupKeyPage,
  type GroupKeyResult,
  type GroupProjection,
  openGroupKeys,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { network } from '../support/modules.ts';
import type { Ground, Person } from '../support/people.ts';
import { privateKeyOf, type TestGroup } from './support.ts';

/** Which device reads, and what it asks for. */
export interface Reading {
  readonly device?: string;
  readonly after?: number;
  readonly limit?: number;
}

/** The verified chain from its beginning, and the keys of the account in each epoch. */
export async function readChain(
  world: Ground,
  group: TestGroup,
  person: Person,
  device = 'phone',
): Promise<{ readonly state: GroupProjection; readonly history: GroupKeyHistory }> {
  const { groupId: group_id } = group;
  const anchor = { group_id, relay_id: world.relayId };
  let state: GroupProjection | undefined;
  let history: GroupKeyHistory = [];
  for (;;) {
    const params = { group_id, after: state?.sequence ?? -1 };
    const answer = await world.call('group.sync', params, { session: person.session(device) });
    const page = verifyGroupSyncPage(network, answer, params);
    const advance = advanceGroup(network, state ?? anchor, page);
    if (advance.blocked !== undefined) throw advance.blocked.error;
    if (advance.group === undefined) throw new Error('the group has no beginning');
    state = advance.group;
    history = extendKeyHistory(history, person.account, advance.outcomes);
    if (!page.has_more) return { state, history };
  }
}

/** A page of `group.key.sync` as it came. */
export async function readPage(
  world: Ground,
  group: TestGroup,
  person: Person,
  { device = 'phone', ...params }: Reading = {},
): Promise<GroupKeyPage> {
  const request = { group_id: group.groupId, ...params };
  const session = person.session(device);
  const answer = await world.call('group.key.sync', request, { session });
  checkGroupKeyPage(answer, request);
  return answer;
}

/** A page of `group.key.sync`, opened against the verified chain. */
export async function readKeys(
  world: Ground,
  group: TestGroup,
  person: Person,
  reading: Reading = {},
): Promise<GroupKeyResult[]> {
  const { device = 'phone' } = reading;
  const page = await readPage(world, group, person, reading);
  const { history } = await readChain(world, group, person, device);
  const { deviceId, encryptionKey } = person.device(device);
  return openGroupKeys(network, page, {
    group_id: group.groupId,
    account: person.account,
    deviceId,
    history,
    devicePrivateKey: encryptionKey,
    memberPrivateKey: privateKeyOf,
  });
}

/** Epochs a page has, in their order; those marked with `*` came with a client secret box. */
export function shape({ keys }: GroupKeyPage): string {
  return keys.map(({ epoch, client_secret_box: box }) => `${epoch}${box ? '*' : ''}`).join(' ');
}

/** Epochs whose material verified, with the client secrets they hold, base64url. */
export function verified(results: readonly GroupKeyResult[]): Map<number, string> {
  const secrets = new Map<number, string>();
  for (const result of results) {
    if (result.status !== 'verified') throw new Error(`epoch ${result.epoch}: ${result.status}`);
    secrets.set(result.epoch, encodeBase64url(result.clientSecret));
  }
  return secrets;
}
