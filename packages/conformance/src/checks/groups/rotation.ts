/** The second phase of a rotation: the new client secret in force (05 §13.27). */

import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { at, keepDevices } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { type Scene, sceneOf } from '../../groups/group-fixture.ts';
import { readRecoveries } from '../../groups/group-lists.ts';
import { newSecret } from '../../groups/group-objects.ts';
import {
  demandAgreement,
  kindsOf,
  openKeys,
  readChain,
  readEpochs,
  readKeyPage,
  rotatedByRelay,
  withoutTrace,
} from '../../groups/group-reader.ts';
import type { GroupActors } from '../../groups/test-group.ts';

const commit = checksOf('group.secret.rotation.commit');
const method = 'group.secret.rotation.commit';

/** A commit that the relay must refuse, without giving up what is prepared. */
export async function refusesCommit(group: GroupActors, secret: Uint8Array): Promise<void> {
  const call = { method, params: group.rotation(secret) };
  await group.stage.fail(group.owner.caller, call, 'state_conflict');
}

commit.check(
  'activates',
  { source: '05 §13.27, §7.2', title: 'puts the new secret into force for everybody at once' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const { state: before } = await readChain(group, owner);
    await group.rotate([owner, ben]);
    for (const by of [owner, ben]) {
      const { state, history, outcomes } = await readChain(group, by);
      demandAgreement(group, { state });
      demand(kindsOf({ outcomes }).at(-1) === 'group.secret.rotation', 'the event');
      demand(state.epoch > before.epoch, 'a greater epoch');
      const page = await readKeyPage(group, by);
      const results = openKeys(group, by, { page, history });
      demand(results.at(-1)?.epoch === state.epoch, 'its keys are served');
      for (const { status } of results) demand(status === 'verified', 'old and new boxes open');
    }
    await refusesCommit(group, group.secret);
  },
);

commit.check(
  'owner-key',
  { source: '05 §13.27', title: 'replaces the key of the owner with the same event' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    await group.requestRecovery(owner);
    await group.requestRecovery(ben);
    await group.rotate([owner, ben]);
    demand((await readRecoveries(group, owner)).requests.length === 2, 'all without a new key');
    const key = group.keys.make();
    await group.rotate([owner, ben], key);
    const chain = await readChain(group, owner);
    const member = chain.state.members.get(owner.account.id);
    demand(member?.member_encryption_public_key === key.publicKey, 'the new key');
    demand((await readEpochs(group, owner)).length === 4, 'boxes of old and new keys open');
    const { requests } = await readRecoveries(group, owner);
    demand(requests.length === 1, "the owner's request is deleted, the other stays");
    demand(requests[0]?.request.account === ben.account.id, "the member's");
    await group.recover([ben]);
    await readEpochs(group, ben);
  },
);

commit.check(
  'same-owner-key',
  { source: '05 §4.10, §13.27', title: 'refuses the key that the owner has' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const secret = newSecret();
    await group.prepare(group.preparation(secret, [owner]));
    const params = group.rotation(secret, { ownerKey: group.keys.of(owner.account.id) });
    await stage.fail(owner.caller, { method, params }, 'bad_request');
    await group.commit(secret);
  },
);

commit.check(
  'nothing-staged',
  { source: '05 §13.27', title: 'is state_conflict without a preparation of that commitment' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    await withoutTrace(group, owner, async () => {
      await refusesCommit(group, newSecret());
      await group.prepare(group.preparation(newSecret(), [owner]));
      await refusesCommit(group, newSecret());
    });
  },
);

commit.check(
  'coverage',
  { source: '05 §13.26, §13.27', title: 'waits for a box of every member, also of those who come' },
  async (stage) => {
    const { group, owner, members, strangers } = await sceneOf(stage, { members: 1, strangers: 1 });
    const [eve] = strangers as [Resident];
    const secret = newSecret();
    await group.prepare(group.preparation(secret, [owner]));
    await refusesCommit(group, secret);
    await group.prepare(group.preparation(secret, members));
    await group.admit(eve);
    await withoutTrace(group, owner, () => refusesCommit(group, secret));
    const { prepared: count } = await group.prepare(group.preparation(secret, [eve]));
    demand(count === 3, 'all are prepared');
    await group.commit(secret);
    await readEpochs(group, eve);
  },
);

/** What takes the box of the first member away while a rotation is prepared. */
const losses: Readonly<Record<string, (scene: Scene, ben: Resident) => Promise<void>>> = {
  leave: ({ group }, ben) => group.leave(ben),
  removal: ({ group }, ben) => group.remove([ben]),
  ban: ({ group }, ben) => group.ban([ben]),
  recovery: async ({ group }, ben) => {
    await group.requestRecovery(ben);
    await group.recover([ben]);
  },
};

for (const [word, lose] of Object.entries(losses)) {
  commit.check(
    `after-${word}`,
    { source: '05 §13.26, §18', title: `goes on after a ${word}, without that member's old box` },
    async (stage) => {
      const scene = await sceneOf(stage, { members: 2 });
      const { group, owner, members } = scene;
      const [ben, cem] = members as [Resident, Resident];
      const secret = newSecret();
      await group.prepare(group.preparation(secret, [owner, ben, cem]));
      await lose(scene, ben);
      if (word === 'recovery') {
        await refusesCommit(group, secret);
        await group.prepare(group.preparation(secret, [ben]));
      } else {
        const { prepared: count } = await group.prepare(group.preparation(secret, [cem]));
        demand(count === 2, 'the box is gone');
      }
      await group.commit(secret);
      await readEpochs(group, cem);
      if (word === 'recovery') await readEpochs(group, ben);
    },
  );
}

commit.check(
  'undisturbed',
  {
    source: '05 §13.27',
    title: 'is not disturbed by messages, roles, bans outside, relay secrets',
  },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1, devices: 2 });
    const [ben] = members as [Resident];
    const secret = newSecret();
    await readEpochs(group, at(ben, 1));
    await group.prepare(group.preparation(secret, [owner, ben]));
    await keepDevices(stage, ben, [ben.device]);
    await rotatedByRelay(group, owner);
    await group.update({ name: 'other' });
    await group.setRole(ben, 'administrator');
    const stranger = { account: stage.account() } as Resident;
    await group.ban([stranger]);
    await group.unban([stranger]);
    await group.send(owner, (await readChain(group, owner)).state.epoch);
    await group.commit(secret);
    demandAgreement(group, await readChain(group, ben));
  },
);

commit.check(
  'rejoin',
  { source: '05 §13.26', title: 'gives no old box back to a member that left and came again' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const secret = newSecret();
    await group.prepare(group.preparation(secret, [owner, ben]));
    await group.leave(ben);
    await group.admit(ben);
    await refusesCommit(group, secret);
    await group.prepare(group.preparation(secret, [ben]));
    await group.commit(secret);
    await readEpochs(group, ben);
  },
);

export const groupRotationChecks = commit.list;
