/** The first phase of a rotation: boxes of a new client secret (05 §13.26). */
import { canonicalJson, type JsonObject } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import type { Resident } from '../../fixtures/test-context.ts';
import { sceneOf } from '../../groups/group-fixture.ts';
import { newSecret } from '../../groups/group-objects.ts';
import { readChain, readEpochs, readKeyPage, withoutTrace } from '../../groups/group-reader.ts';
import { refusesCommit } from './rotation.ts';

const prepare = checksOf('group.secret.rotation.prepare');
const method = 'group.secret.rotation.prepare';

prepare.check(
  'stages',
  { source: '05 §13.26', title: 'counts accounts with a box, and changes nothing else' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 2 });
    const [ben, cem] = members as [Resident, Resident];
    const secret = newSecret();
    await withoutTrace(group, owner, async () => {
      const first = await group.prepare(group.preparation(secret, [owner, ben]));
      demand(first.prepared === 2, 'two boxes');
      const again = await group.prepare(group.preparation(secret, [ben]));
      demand(again.prepared === 2, 'a box in place of another counts once');
      const all = await group.prepare(group.preparation(secret, [cem]));
      demand(all.prepared === 3, 'three boxes');
      demand(again.expires_at === first.expires_at, 'the end is fixed at the beginning');
      demand(all.expires_at === first.expires_at, 'and no batch moves it');
    });
    const { state } = await readChain(group, owner);
    demand(state.client_secret_commitment === group.commitment, 'the old commitment is in force');
  },
);

prepare.check(
  'replaces',
  { source: '05 §13.26', title: 'another commitment begins anew, without a box of the former' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [former, later] = [newSecret(), newSecret()];
    await group.prepare(group.preparation(former, [owner, ...members]));
    const begun = await group.prepare(group.preparation(later, [owner]));
    demand(begun.prepared === 1, 'one box');
    await refusesCommit(group, former);
    await refusesCommit(group, later);
    await group.prepare(group.preparation(later, members));
    await group.commit(later);
    await readEpochs(group, owner);
  },
);

prepare.check(
  'later-box',
  { source: '05 §13.26', title: 'a later box takes the place of the former of its account' },
  async (stage) => {
    const { group, owner, members } = await sceneOf(stage, { members: 1 });
    const [ben] = members as [Resident];
    const secret = newSecret();
    const whole = group.preparation(secret, [owner, ben]);
    const { client_secret_boxes: ofAnother } = group.preparation(newSecret(), [ben]);
    await group.prepare(whole);
    await group.prepare({ ...whole, client_secret_boxes: ofAnother ?? null });
    const again = group.preparation(secret, [ben]);
    await group.prepare(again);
    await group.commit(secret);
    await readEpochs(group, ben);
    const { keys } = await readKeyPage(group, ben);
    const [box] = Object.values(again.client_secret_boxes as JsonObject);
    const served = keys.at(-1)?.client_secret_box;
    demand(served !== undefined, 'a box of the new secret');
    demand(canonicalJson(served) === canonicalJson(box ?? null), 'the one that came last');
  },
);

prepare.check(
  'accounts',
  { source: '05 §13.26', title: 'refuses a batch with a box for nobody inside, and harms nothing' },
  async (stage) => {
    const { group, owner, members, strangers } = await sceneOf(stage, { members: 1, strangers: 1 });
    const [ben, eve] = [...members, ...strangers] as [Resident, Resident];
    const secret = newSecret();
    await group.prepare(group.preparation(secret, [owner, ben]));
    group.keys.activate(eve.account.id, group.keys.make());
    const params = group.preparation(secret, [eve]);
    const boxes = { client_secret_boxes: {} };
    const calls = [
      ['a nonmember', params],
      ['a member and a nonmember', group.preparation(secret, [owner, eve])],
      ['nobody', { ...params, ...boxes }],
      ['a nonmember and another secret', group.preparation(newSecret(), [owner, eve])],
    ] as const;
    await refusesAll({ by: owner, method: method, codes: ['bad_request'] }, calls);
    await group.commit(secret);
  },
);

prepare.check(
  'commitments',
  { source: '05 §13.26', title: 'refuses another base, and the commitment in force as the new' },
  async (stage) => {
    const { group, owner } = await sceneOf(stage);
    const secret = newSecret();
    const base_commitment = group.commitmentTo(newSecret());
    const outdated = group.preparation(secret, [owner], { facts: { base_commitment } });
    await stage.fail(owner.caller, { method: method, params: outdated }, 'state_conflict');
    const same = { client_secret_commitment: group.commitment };
    const unchanged = group.preparation(secret, [owner], { facts: same });
    await stage.fail(owner.caller, { method: method, params: unchanged }, 'bad_request');
    const old = { base_commitment: group.commitment };
    await group.rotate([owner]);
    const late = group.preparation(newSecret(), [owner], { facts: old });
    await stage.fail(owner.caller, { method: method, params: late }, 'state_conflict');
  },
);

export const groupStagingChecks = prepare.list;
