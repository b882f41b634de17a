/** One valid call of every group method, for the checks that all methods share. */

import { createGroupInviteId, type GroupMethodName } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { type GroupFixture, type GroupFixtureOptions, groupFixture } from './group-fixture.ts';
import { type ChainBodyKind, newSecret } from './group-objects.ts';
import { TestGroup } from './test-group.ts';

/** The part of the parameters that is signed: all, one member, or none. */
export type SignedPart = 'all' | 'create' | 'approval' | 'none';

/** Objects that a call refers to, made before the call. */
interface Prerequisites {
  readonly invite_id?: string;
  readonly secret?: Uint8Array;
}

interface CallTemplate {
  readonly signed: SignedPart;
  /** Whether the method writes; a closed group then refuses it. */
  readonly writes: boolean;
  /** Whether the signed part is a chain event, with `prev_hash`. */
  readonly chained?: true;
  /** The lowest role that may call it, if it requires one (05 §6). */
  readonly role?: 'owner' | 'administrator';
  readonly options?: GroupFixtureOptions;
  /** The caller; the owner by default. */
  caller?(fixture: GroupFixture): TestAccount;
  prepare?(fixture: GroupFixture): Promise<Prerequisites>;
  /** Builds well-formed parameters for any caller, permitted or not. */
  build(fixture: GroupFixture, by: TestAccount, prepared: Prerequisites): JsonObject;
}

const first = (accounts: readonly TestAccount[]) => accounts[0] as TestAccount;
const idOf = (accounts: readonly TestAccount[]) => first(accounts).account.id;

/** Describes a method whose parameters are a chain event. */
function chainCall(
  kind: ChainBodyKind,
  overrides: (
    fixture: GroupFixture,
    by: TestAccount,
  ) => Parameters<GroupFixture['group']['chainBody']>[1],
  role?: CallTemplate['role'],
): Pick<CallTemplate, 'signed' | 'writes' | 'chained' | 'role' | 'build'> {
  const build: CallTemplate['build'] = (fixture, by) =>
    fixture.group.chainBody(kind, overrides(fixture, by), by);
  return { signed: 'all', writes: true, chained: true, ...(role && { role }), build };
}

/** Describes a method whose parameters are unsigned and name a group. */
function unsignedCall(
  writes: boolean,
  overrides: (fixture: GroupFixture, prepared: Prerequisites) => JsonObject = () => ({}),
) {
  const build: CallTemplate['build'] = (fixture, _by, prepared) => {
    return { group_id: fixture.group.groupId, ...overrides(fixture, prepared) };
  };
  return { signed: 'none', writes, build } as const;
}

const invited: CallTemplate['prepare'] = async ({ group }) => {
  const { invite_id } = await group.invite();
  return { invite_id };
};
const applied: CallTemplate['prepare'] = async ({ group, strangers }) => {
  await group.apply(first(strangers), await group.invite());
  return {};
};
const recovering: CallTemplate['prepare'] = async ({ group, members }) => {
  await group.requestRecovery(first(members));
  return {};
};
const oneMember = { members: 1 };
const oneStranger = { strangers: 1 };
const byMember = ({ members }: GroupFixture) => first(members);
const inviteId = ({ invite_id = createGroupInviteId(nodeRandom) }: Prerequisites) => invite_id;

export const callTemplates: Readonly<Record<GroupMethodName, CallTemplate>> = {
  'group.create': {
    signed: 'create',
    writes: true,
    build: ({ context }, by) => TestGroup.draft(context, by).createParams,
  },
  'group.resolve': unsignedCall(false),
  'group.sync': unsignedCall(false),
  'group.close': chainCall('group.close', () => ({}), 'owner'),
  'group.update': chainCall('group.update', () => ({ name: 'new name' }), 'owner'),
  'group.role.update': {
    ...chainCall(
      'group.role.update',
      ({ members }) => ({
        account: idOf(members),
        role: 'administrator',
      }),
      'owner',
    ),
    options: oneMember,
  },
  'group.owner.transfer': {
    ...chainCall(
      'group.owner.transfer',
      ({ members }) => ({ new_owner_account: idOf(members) }),
      'owner',
    ),
    options: oneMember,
  },
  'group.invite.create': {
    signed: 'all',
    writes: true,
    build: ({ group }, by) => group.invitation({}, by),
  },
  'group.invite.resolve': {
    ...unsignedCall(false, (_scene, prepared) => ({ invite_id: inviteId(prepared) })),
    prepare: invited,
  },
  'group.invite.list': unsignedCall(false),
  'group.invite.revoke': {
    ...unsignedCall(true, (_scene, prepared) => ({ invite_id: inviteId(prepared) })),
    prepare: invited,
  },
  'group.application.submit': {
    signed: 'all',
    writes: true,
    options: oneStranger,
    caller: ({ strangers }) => first(strangers),
    prepare: invited,
    build: ({ group }, by, prepared) => {
      return group.application(by, { invite_id: inviteId(prepared) });
    },
  },
  'group.application.list': { ...unsignedCall(false), role: 'administrator' },
  'group.application.approve': {
    signed: 'approval',
    writes: true,
    chained: true,
    role: 'administrator',
    options: oneStranger,
    prepare: applied,
    build: ({ group, strangers }, by) => group.approvalParams([first(strangers)], { by }),
  },
  'group.application.reject': {
    ...unsignedCall(true, ({ strangers }) => ({ accounts: [idOf(strangers)] })),
    role: 'administrator',
    options: oneStranger,
    prepare: applied,
  },
  'group.member.leave': {
    ...chainCall('group.member.leave', (_scene, by) => ({ account: by.account.id })),
    options: oneMember,
    caller: byMember,
  },
  'group.member.remove': {
    ...chainCall(
      'group.member.removal',
      ({ members }) => ({ accounts: [idOf(members)] }),
      'administrator',
    ),
    options: oneMember,
  },
  'group.member.ban': {
    ...chainCall(
      'group.member.ban',
      ({ members }) => ({ accounts: [idOf(members)] }),
      'administrator',
    ),
    options: oneMember,
  },
  'group.member.unban': chainCall(
    'group.member.unban',
    ({ context }) => ({
      accounts: [context.account().id],
    }),
    'administrator',
  ),
  'group.member.recovery.submit': {
    signed: 'all',
    writes: true,
    options: oneMember,
    caller: byMember,
    build: ({ group }, by) => group.recoveryRequest(by),
  },
  'group.member.recovery.list': unsignedCall(false),
  'group.member.recovery.approve': {
    signed: 'approval',
    writes: true,
    chained: true,
    role: 'administrator',
    options: oneMember,
    prepare: recovering,
    build: ({ group, members }, by) => {
      return group.approvalParams([first(members)], { by, kind: 'group.member.recovery.approval' });
    },
  },
  'group.member.recovery.reject': {
    ...unsignedCall(true, ({ members }) => ({ accounts: [idOf(members)] })),
    options: oneMember,
    prepare: recovering,
  },
  'group.key.sync': unsignedCall(false),
  'group.secret.rotation.prepare': {
    signed: 'none',
    writes: true,
    role: 'owner',
    build: ({ group, owner }) => group.prepareParams(newSecret(), [owner]),
  },
  'group.secret.rotation.commit': {
    signed: 'all',
    writes: true,
    chained: true,
    role: 'owner',
    prepare: async ({ group, owner, administrators, members }) => {
      const secret = newSecret();
      await group.prepare(group.prepareParams(secret, [owner, ...administrators, ...members]));
      return { secret };
    },
    build: ({ group }, by, { secret = newSecret() }) => {
      return group.rotationBody(secret, { by });
    },
  },
  'group.message.send': {
    signed: 'all',
    writes: true,
    build: ({ group }, by) => group.message(by, 0),
  },
  'group.subscribe': {
    signed: 'none',
    writes: false,
    build: ({ group }) => ({ group_ids: [group.groupId] }),
  },
};

/** A group in which one method is ready to be called. */
export interface PreparedCall {
  readonly fixture: GroupFixture;
  readonly by: TestAccount;
  readonly params: JsonObject;
  /** Builds the call anew: signed by another account, or on the current head. */
  again(by?: TestAccount): JsonObject;
}

/** Prepares a group for a call of the method, with additional accounts if a check needs them. */
export async function prepareCall(
  context: TestContext,
  method: GroupMethodName,
  more: GroupFixtureOptions = {},
): Promise<PreparedCall> {
  const { options, caller, prepare, build } = callTemplates[method];
  const fixture = await groupFixture(context, {
    ...more,
    members: (options?.members ?? 0) + (more.members ?? 0),
    strangers: (options?.strangers ?? 0) + (more.strangers ?? 0),
  });
  const by = caller?.(fixture) ?? fixture.owner;
  const prepared = (await prepare?.(fixture)) ?? {};
  const again = (other = by) => build(fixture, other, prepared);
  return { fixture, by, params: again(), again };
}

/** Changes the signed part of the parameters and signs it again. */
export function changeAndSign(
  { fixture, by }: Pick<PreparedCall, 'fixture' | 'by'>,
  { params, signed }: { readonly params: JsonObject; readonly signed: SignedPart },
  change: (part: JsonObject) => JsonObject,
): JsonObject {
  if (signed === 'none') return change(params);
  if (signed === 'all') return fixture.group.sign(change(params), by);
  return { ...params, [signed]: fixture.group.sign(change(params[signed] as JsonObject), by) };
}
