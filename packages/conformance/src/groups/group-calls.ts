/** One call of every group method that a relay must accept, for checks that all methods share. */
import { nodeRandom } from '@posthouse/primitives-node';
import { createGroupInviteId, type GroupMethodName, type JsonObject } from '@posthouse/protocol';
import type { Resident, Stage } from '../fixtures/test-context.ts';
import { type Scene, type SceneOptions, sceneOf } from './group-fixture.ts';
import { type LinkKind, newSecret } from './group-objects.ts';
import { GroupActors } from './test-group.ts';

/** Which part of the parameters is signed: all, a member, or nothing. */
export type SignedPart = 'all' | 'create' | 'approval' | 'none';

/** What a call refers to and was made before. */
interface Prepared {
  readonly invite_id?: string;
  readonly secret?: Uint8Array;
}

interface Recipe {
  readonly signed: SignedPart;
  /** Whether it writes, so that a closed group refuses it. */
  readonly writes: boolean;
  /** Whether its signed part is a link of the chain, with `prev_hash`. */
  readonly chained?: true;
  /** The role it takes, where it takes one (05 §6). */
  readonly role?: 'owner' | 'administrator';
  readonly options?: SceneOptions;
  /** Who may call; the owner by default. */
  caller?(scene: Scene): Resident;
  prepare?(scene: Scene): Promise<Prepared>;
  /** Parameters by anybody, complete and well-formed whether or not they may. */
  build(scene: Scene, by: Resident, prepared: Prepared): JsonObject;
}

const first = (people: readonly Resident[]) => people[0] as Resident;
const idOf = (people: readonly Resident[]) => first(people).account.id;

/** A method whose parameters are a chain body. */
function link(
  kind: LinkKind,
  facts: (scene: Scene, by: Resident) => Parameters<Scene['group']['link']>[1],
  role?: Recipe['role'],
): Pick<Recipe, 'signed' | 'writes' | 'chained' | 'role' | 'build'> {
  const build: Recipe['build'] = (scene, by) => scene.group.link(kind, facts(scene, by), by);
  return { signed: 'all', writes: true, chained: true, ...(role && { role }), build };
}

/** A method that is asked about a group and changes nothing signed. */
function plain(
  writes: boolean,
  facts: (scene: Scene, prepared: Prepared) => JsonObject = () => ({}),
) {
  const build: Recipe['build'] = (scene, _by, prepared) => {
    return { group_id: scene.group.groupId, ...facts(scene, prepared) };
  };
  return { signed: 'none', writes, build } as const;
}

const invited: Recipe['prepare'] = async ({ group }) => {
  const { invite_id } = await group.invite();
  return { invite_id };
};
const applied: Recipe['prepare'] = async ({ group, strangers }) => {
  await group.apply(first(strangers), await group.invite());
  return {};
};
const recovering: Recipe['prepare'] = async ({ group, members }) => {
  await group.requestRecovery(first(members));
  return {};
};
const oneMember = { members: 1 };
const oneStranger = { strangers: 1 };
const byMember = ({ members }: Scene) => first(members);
const inviteId = ({ invite_id = createGroupInviteId(nodeRandom) }: Prepared) => invite_id;

export const recipes: Readonly<Record<GroupMethodName, Recipe>> = {
  'group.create': {
    signed: 'create',
    writes: true,
    build: ({ stage }, by) => GroupActors.draft(stage, by).creation,
  },
  'group.resolve': plain(false),
  'group.sync': plain(false),
  'group.close': link('group.close', () => ({}), 'owner'),
  'group.update': link('group.update', () => ({ name: 'new name' }), 'owner'),
  'group.role.update': {
    ...link(
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
    ...link(
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
    ...plain(false, (_scene, prepared) => ({ invite_id: inviteId(prepared) })),
    prepare: invited,
  },
  'group.invite.list': plain(false),
  'group.invite.revoke': {
    ...plain(true, (_scene, prepared) => ({ invite_id: inviteId(prepared) })),
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
  'group.application.list': { ...plain(false), role: 'administrator' },
  'group.application.approve': {
    signed: 'approval',
    writes: true,
    chained: true,
    role: 'administrator',
    options: oneStranger,
    prepare: applied,
    build: ({ group, strangers }, by) => group.approval([first(strangers)], { by }),
  },
  'group.application.reject': {
    ...plain(true, ({ strangers }) => ({ accounts: [idOf(strangers)] })),
    role: 'administrator',
    options: oneStranger,
    prepare: applied,
  },
  'group.member.leave': {
    ...link('group.member.leave', (_scene, by) => ({ account: by.account.id })),
    options: oneMember,
    caller: byMember,
  },
  'group.member.remove': {
    ...link(
      'group.member.removal',
      ({ members }) => ({ accounts: [idOf(members)] }),
      'administrator',
    ),
    options: oneMember,
  },
  'group.member.ban': {
    ...link('group.member.ban', ({ members }) => ({ accounts: [idOf(members)] }), 'administrator'),
    options: oneMember,
  },
  'group.member.unban': link(
    'group.member.unban',
    ({ stage }) => ({
      accounts: [stage.account().id],
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
  'group.member.recovery.list': plain(false),
  'group.member.recovery.approve': {
    signed: 'approval',
    writes: true,
    chained: true,
    role: 'administrator',
    options: oneMember,
    prepare: recovering,
    build: ({ group, members }, by) => {
      return group.approval([first(members)], { by, kind: 'group.member.recovery.approval' });
    },
  },
  'group.member.recovery.reject': {
    ...plain(true, ({ members }) => ({ accounts: [idOf(members)] })),
    options: oneMember,
    prepare: recovering,
  },
  'group.key.sync': plain(false),
  'group.secret.rotation.prepare': {
    signed: 'none',
    writes: true,
    role: 'owner',
    build: ({ group, owner }) => group.preparation(newSecret(), [owner]),
  },
  'group.secret.rotation.commit': {
    signed: 'all',
    writes: true,
    chained: true,
    role: 'owner',
    prepare: async ({ group, owner, administrators, members }) => {
      const secret = newSecret();
      await group.prepare(group.preparation(secret, [owner, ...administrators, ...members]));
      return { secret };
    },
    build: ({ group }, by, { secret = newSecret() }) => {
      return group.rotation(secret, { by });
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

/** A scene in which a method is about to be called. */
export interface ReadyCall {
  readonly scene: Scene;
  readonly by: Resident;
  readonly params: JsonObject;
  /** The same call by somebody else, who signs it, or at another state of the chain. */
  again(by?: Resident): JsonObject;
}

/** Sets the scene for a method; with more people where a check asks for them. */
export async function readyFor(
  stage: Stage,
  method: GroupMethodName,
  more: SceneOptions = {},
): Promise<ReadyCall> {
  const { options, caller, prepare, build } = recipes[method];
  const scene = await sceneOf(stage, {
    ...more,
    members: (options?.members ?? 0) + (more.members ?? 0),
    strangers: (options?.strangers ?? 0) + (more.strangers ?? 0),
  });
  const by = caller?.(scene) ?? scene.owner;
  const prepared = (await prepare?.(scene)) ?? {};
  const again = (other = by) => build(scene, other, prepared);
  return { scene, by, params: again(), again };
}

/** The parameters with their signed part changed, and signed again by a device. */
export function resigned(
  { scene, by }: Pick<ReadyCall, 'scene' | 'by'>,
  { params, signed }: { readonly params: JsonObject; readonly signed: SignedPart },
  change: (part: JsonObject) => JsonObject,
): JsonObject {
  if (signed === 'none') return change(params);
  if (signed === 'all') return scene.group.sign(change(params), by);
  return { ...params, [signed]: scene.group.sign(change(params[signed] as JsonObject), by) };
}
