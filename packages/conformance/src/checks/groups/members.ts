/** The end of memberships: leaving, removal, bans (05 §9, §13.17 to §13.20). */
import { canonicalJson, type JsonObject } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { type Scene, sceneOf } from '../../groups/group-fixture.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { idsOf } from '../../groups/group-objects.ts';
import {
  demandAgreement,
  eventOf,
  kindsOf,
  messagesOf,
  readChain,
  readEpochs,
  resolveGroup,
  withoutTrace,
} from '../../groups/group-reader.ts';

const leave = checksOf('group.member.leave');
const remove = checksOf('group.member.remove');
const ban = checksOf('group.member.ban');
const unban = checksOf('group.member.unban');

/** The ways to end memberships: method, kind of event, and the act. */
const ways = [
  [leave, 'group.member.leave', ({ group }: Scene, [ben]: [Resident]) => group.leave(ben)],
  [remove, 'group.member.removal', ({ group }: Scene, gone: [Resident]) => group.remove(gone)],
  [ban, 'group.member.ban', ({ group }: Scene, gone: [Resident]) => group.ban(gone)],
] as const;

for (const [{ check }, kind, act] of ways) {
  check(
    'ends-membership',
    { source: '05 §9.1, §9.2, §7.2', title: 'ends a membership in one event and a new epoch' },
    async (stage) => {
      const scene = await sceneOf(stage, { members: 2 });
      const { group, owner, members } = scene;
      const [ben, cem] = members as [Resident, Resident];
      const { state: before } = await readChain(group, owner);
      await act(scene, [ben]);
      const chain = await readChain(group, cem);
      demandAgreement(group, chain);
      demand(kindsOf(chain).at(-1) === kind, 'the event');
      demand(chain.state.sequence > before.sequence, 'appended');
      demand(chain.outcomes.length === 3, 'one event, no other for the same');
      demand(chain.state.epoch > before.epoch, 'a greater epoch');
      demand(!chain.state.members.has(ben.account.id), 'no member any more');
      demand(chain.state.bans.has(ben.account.id) === kind.endsWith('ban'), 'banned by a ban');
      demand((await resolveGroup(group, cem)).member_count === 2, 'the state counts the rest');
      demand((await readEpochs(group, cem)).at(-1) === chain.state.epoch, 'new keys for the rest');
    },
  );

  check(
    'closes-access',
    { source: '05 §9.1, §10.3', title: 'refuses the former member everything from then on' },
    async (stage) => {
      const scene = await sceneOf(stage, { members: 1, devices: 2 });
      const { group, members } = scene;
      const [ben] = members as [Resident];
      await act(scene, [ben]);
      const group_id = group.groupId;
      for (const caller of ben.callers) {
        for (const method of ['group.sync', 'group.key.sync', 'group.resolve']) {
          await stage.fail(caller, { method, params: { group_id } }, 'forbidden');
        }
      }
      const params = group.message(ben, 2);
      await stage.fail(ben.caller, { method: 'group.message.send', params }, 'forbidden');
    },
  );

  check(
    'rejoins-anew',
    { source: '05 §10.3, §9.2', title: 'gives nothing back to whoever is admitted again' },
    async (stage) => {
      const scene = await sceneOf(stage, { members: 1 });
      const { group, owner, members } = scene;
      const [ben] = members as [Resident];
      const { epoch } = (await readChain(group, ben)).state;
      await group.send(owner, epoch);
      await group.setRole(ben, 'administrator');
      await act(scene, [ben]);
      if (kind === 'group.member.ban') await group.unban([ben]);
      await group.admit(ben);
      const chain = await readChain(group, ben);
      demand(chain.state.members.get(ben.account.id)?.role === 'member', 'an ordinary member');
      demand(messagesOf(chain).length === 0, 'no message of the time before');
      demand((await readEpochs(group, ben)).join() === String(chain.state.epoch), 'nor its keys');
    },
  );

  check(
    'ends-recovery',
    { source: '05 §9.3', title: 'deletes the recovery request of the member' },
    async (stage) => {
      const scene = await sceneOf(stage, { members: 1 });
      const { group, owner, members } = scene;
      const [ben] = members as [Resident];
      await group.requestRecovery(ben);
      await act(scene, [ben]);
      demand((await readRecoveries(group, owner)).requests.length === 0, 'it is gone');
      if (kind === 'group.member.ban') await group.unban([ben]);
      await group.admit(ben);
      demand((await readRecoveries(group, owner)).requests.length === 0, 'and does not come back');
    },
  );
}

leave.check(
  'owner',
  { source: '05 §6, §13.17', title: 'is forbidden to the owner' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage, { members: 1 });
    const params = group.link('group.member.leave', { account: owner.account.id });
    await stage.fail(owner.caller, { method: 'group.member.leave', params }, 'forbidden');
  },
);

leave.check(
  'another',
  { source: '05 §13.17', title: 'is forbidden in the name of another member' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 2 });
    const [ben, cem] = members as [Resident, Resident];
    const params = group.link('group.member.leave', { account: cem.account.id }, ben);
    await withoutTrace(group, owner, () =>
      stage.fail(ben.caller, { method: 'group.member.leave', params }, 'forbidden'),
    );
  },
);

leave.check(
  'repeat',
  { source: '05 §13.17', title: 'is forbidden when repeated' },
  async (stage) => {
    const { group, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const params = group.link('group.member.leave', { account: ben.account.id }, ben);
    await group.write('group.member.leave', params, { by: ben });
    await stage.fail(ben.caller, { method: 'group.member.leave', params }, 'forbidden');
  },
);

/** Who may not be a target, of removals and of bans (05 §6). */
for (const [{ check }, method, kind] of [
  [remove, 'group.member.remove', 'group.member.removal'],
  [ban, 'group.member.ban', 'group.member.ban'],
] as const) {
  check(
    'targets',
    { source: '05 §6', title: 'is forbidden for the owner, and for administrators by their like' },
    async (stage) => {
      const { group, owner, members, administrators } = await sceneOf(stage, {
        members: 1,
        administrators: 2,
      });
      const [ben, ada, amy] = [...members, ...administrators] as [Resident, Resident, Resident];
      const calls = (by: Resident, ...batches: Resident[][]) =>
        batches.map((people, index) => {
          const params = group.link(kind, { accounts: idsOf(people) }, by);
          return [`batch ${index}`, params] as const;
        });
      const codes = ['forbidden'] as const;
      await withoutTrace(group, owner, async () => {
        await refusesAll({ by: owner, method, codes }, calls(owner, [owner], [ben, owner]));
        const byAda = calls(ada, [owner], [amy], [ada], [ben, amy]);
        await refusesAll({ by: ada, method, codes }, byAda);
      });
      const body = group.link(kind, { accounts: idsOf([amy, ben]) });
      await group.write(method, body);
      demand((await readChain(group, owner)).state.members.size === 2, 'both are gone');
    },
  );

  check(
    'batch',
    { source: '05 §7.2', title: 'ends several memberships in one event and one epoch' },
    async (stage) => {
      const { group, owner, members } = await sceneOf(stage, { members: 3 });
      const { state: before } = await readChain(group, owner);
      const facts = { accounts: idsOf(members), note: 'spring cleaning' };
      const body = group.link(kind, facts);
      await group.write(method, body);
      const { state, outcomes } = await readChain(group, owner);
      demand(state.members.size === 1, 'all are gone');
      demand(outcomes.length === 3 && state.epoch > before.epoch, 'one event');
      const event = eventOf(outcomes.at(-1) as (typeof outcomes)[0]);
      demand(canonicalJson(event.payload) === canonicalJson(body), 'unchanged');
    },
  );
}

remove.check(
  'nonmember',
  { source: '05 §13.18', title: 'is state_conflict, whole, where one target is no member' },
  async (stage) => {
    const { group, owner, members, strangers } = await sceneOf(stage, { members: 1, strangers: 1 });
    const accounts = idsOf([...members, ...strangers]);
    const params = group.link('group.member.removal', { accounts });
    await withoutTrace(group, owner, () =>
      stage.fail(owner.caller, { method: 'group.member.remove', params }, 'state_conflict'),
    );
    await group.remove(members);
    const again = group.link('group.member.removal', { accounts: idsOf(members) });
    const call = { method: 'group.member.remove', params: again };
    await stage.fail(owner.caller, call, 'state_conflict');
  },
);

const batches = [
  [remove, 'group.member.remove', 'group.member.removal'],
  [ban, 'group.member.ban', 'group.member.ban'],
  [unban, 'group.member.unban', 'group.member.unban'],
] as const;

for (const [{ check }, method, kind] of batches) {
  check(
    'batch-form',
    { source: '05 §4.4', title: 'refuses a batch of nobody, and an account named twice' },
    async (stage) => {
      const { group, owner, members } = await sceneOf(stage, { members: 1 });
      const [id] = idsOf(members) as [string];
      const foreign = id.replace(/^neo:\d+/, 'neo:1');
      const calls: [string, JsonObject][] = Object.entries({
        nobody: [],
        'an account twice': [id, id],
        'an account of another network': [foreign],
      }).map(([what, accounts]) => [what, group.link(kind, { accounts })]);
      await refusesAll({ by: owner, method, codes: ['bad_request'] }, calls);
    },
  );
}

export const groupMemberChecks = [...leave.list, ...remove.list, ...ban.list, ...unban.list];
