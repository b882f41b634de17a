/** What the three lists have in common: cursors, pages, rights (05 §12.7). */

import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../../fixtures/test-context.ts';
import { type Scene, type SceneOptions, sceneOf } from '../../groups/group-fixture.ts';
import { type GroupListName, groupLists, readList } from '../../groups/group-lists.ts';

/** How a list gets records: one for each of the scene's members or strangers. */
interface Filling {
  readonly scene: SceneOptions;
  fill(scene: Scene): Promise<unknown>;
  /** Takes one record away. */
  drop(scene: Scene): Promise<unknown>;
}

const count = 5;

const fillings: Readonly<Record<GroupListName, Filling>> = {
  'group.invite.list': {
    scene: {},
    fill: ({ group }) => Promise.all(Array.from({ length: count }, () => group.invite())),
    drop: async ({ group, owner, stage }) => {
      const [invite_id] = (await readList('group.invite.list', group, owner)) as [string];
      const params = { group_id: group.groupId, invite_id };
      await stage.succeed(owner.caller, 'group.invite.revoke', params);
    },
  },
  'group.application.list': {
    scene: { strangers: count },
    fill: async ({ group, strangers }) => {
      const invite = await group.invite();
      await Promise.all(strangers.map((stranger) => group.apply(stranger, invite)));
    },
    drop: ({ group, owner, stage, strangers: [first] }) => {
      const params = { group_id: group.groupId, accounts: [(first as Resident).account.id] };
      return stage.succeed(owner.caller, 'group.application.reject', params);
    },
  },
  'group.member.recovery.list': {
    scene: { members: count },
    fill: ({ group, members }) =>
      Promise.all(members.map((member) => group.requestRecovery(member))),
    drop: ({ group, owner, stage, members: [first] }) => {
      const params = { group_id: group.groupId, accounts: [(first as Resident).account.id] };
      return stage.succeed(owner.caller, 'group.member.recovery.reject', params);
    },
  },
};

async function filled(stage: Stage, method: GroupListName, more: SceneOptions = {}) {
  const { scene: options, fill, drop } = fillings[method];
  const scene = await sceneOf(stage, { ...more, ...options });
  await fill(scene);
  return { ...scene, drop: () => drop(scene) };
}

function listChecks(method: GroupListName) {
  const { check, list } = checksOf(method);
  const read = groupLists[method];

  check(
    'empty',
    { source: '05 §12.7', title: 'is an empty page without next where there is nothing' },
    async (stage) => {
      const { group, owner } = await sceneOf(stage);
      const { keys, next } = await read(group, owner);
      demand(keys.length === 0 && next === undefined, 'an empty page, and its end');
    },
  );

  check(
    'traversal',
    { source: '05 §12.7', title: 'gives each record once, in the same order however it is read' },
    async (stage) => {
      const { group, owner } = await filled(stage, method);
      const whole = await readList(method, group, owner);
      demand(new Set(whole).size === count && whole.length === count, `${count} records`);
      for (const limit of [1, 2, count, Number.MAX_SAFE_INTEGER]) {
        const again = await readList(method, group, owner, limit);
        demand(again.join() === whole.join(), `the same in pages of ${limit}`);
      }
    },
  );

  check(
    'changing',
    { source: '05 §12.7', title: 'does not trip over a list that changes on the way' },
    async (stage) => {
      const { group, owner, drop } = await filled(stage, method);
      const { keys, next } = await read(group, owner, { limit: 2 });
      demand(next !== undefined, 'there is more');
      await drop();
      const answer = await owner.caller.call(method, { group_id: group.groupId, cursor: next });
      const gone = !answer.ok && answer.code === 'not_found';
      demand(answer.ok || gone, 'it goes on, or says that the cursor is gone');
      const left = await readList(method, group, owner);
      demand(left.length === count - 1, 'one less from the beginning');
      demand(keys.length <= 2, 'no more than asked for');
    },
  );

  check(
    'cursors',
    { source: '05 §12.7', title: 'refuses limits and cursors that are not its own' },
    async (stage) => {
      const { group, owner } = await filled(stage, method);
      const group_id = group.groupId;
      const { next } = await read(group, owner, { limit: 1 });
      demand(next !== undefined, 'there is more');
      const call = { by: owner, method };
      const wrong = [
        ['a limit of 0', { group_id, limit: 0 }],
        ['a negative limit', { group_id, limit: -1 }],
        ['a limit of 01', { group_id, limit: '01' }],
        ['an empty cursor', { group_id, cursor: '' }],
        ['a cursor of other characters', { group_id, cursor: `${next}/` }],
      ] as const;
      await refusesAll({ ...call, codes: ['bad_request'] }, wrong);
      // Its state may be gone, or its text invalid: both are said of a cursor nobody gave out.
      const foreign = [['a cursor nobody gave out', { group_id, cursor: 'A'.repeat(24) }]] as const;
      await refusesAll({ ...call, codes: ['bad_request', 'not_found'] }, foreign);
      const other = await sceneOf(stage);
      const elsewhere = { group_id: other.group.groupId, cursor: next };
      const calls = [['a cursor of another group', elsewhere]] as const;
      const codes = ['bad_request', 'not_found'] as const;
      await refusesAll({ by: other.owner, method, codes: [...codes, 'forbidden'] }, calls);
      for (const another of Object.keys(fillings).filter((name) => name !== method)) {
        const params = [['a cursor of another list', { group_id, cursor: next }]] as const;
        await refusesAll({ by: owner, method: another, codes: [...codes, 'forbidden'] }, params);
      }
    },
  );

  check(
    'right-lost',
    { source: '05 §12.7', title: 'is forbidden on the way to whoever may not read on' },
    async (stage) => {
      const { group, administrators } = await filled(stage, method, { administrators: 1 });
      const [ada] = administrators as [Resident];
      const { next } = await read(group, ada, { limit: 1 });
      demand(next !== undefined, 'there is more');
      await group.setRole(ada, 'member');
      const params = { group_id: group.groupId, cursor: next };
      await stage.fail(ada.caller, { method, params }, 'forbidden');
    },
  );

  check(
    'other-device',
    { source: '05 §12.3', title: 'is the same for every device of an account' },
    async (stage) => {
      const { group, owner } = await filled(stage, method, { devices: 2 });
      const [here, there] = [
        await readList(method, group, owner),
        await readList(method, group, at(owner, 1)),
      ];
      demand(here.join() === there.join(), 'the same records');
    },
  );
  return list;
}

export const groupListChecks = (Object.keys(fillings) as GroupListName[]).flatMap(listChecks);
