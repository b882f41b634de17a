/** Concurrent approvals, leaves, removals, invitations and requests. */
import { createGroupSecret } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { readKeys, verified } from '../fixtures/group-reader.ts';
import { onlyOne } from '../fixtures/races.ts';
import { type GroupRaces, rounds } from './group-races.ts';

export function testMemberRaces(races: () => GroupRaces): void {
  test('05 §8.3, §13.15: of two approvals for the last place one is accepted', async () => {
    const { ground, race, rowsOf, counts, expectGrowth, expectLast, ann, ben, cem, dora } = races();
    for (let round = 0; round < rounds; round += 1) {
      const group = await TestGroup.create(ground, ann, { member_capacity: 3 });
      await group.admit(ben);
      await group.setRole(ben, 'administrator');
      const invite = await group.invite({ max_uses: 1 });
      const free = await group.invite();
      // Both rest on the last use in some rounds, on the last place in others.
      const [first, second] = round % 2 === 0 ? [invite, invite] : [free, free];
      await group.apply(cem, first);
      await group.apply(dora, second);
      const before = await counts(group);
      const calls = [
        { by: ann, method: 'group.application.approve', params: group.approval([cem]) },
        {
          by: ben,
          method: 'group.application.approve',
          params: group.approval([dora], { by: ben }),
        },
      ];
      const winner = onlyOne(await race(...calls));
      await expectGrowth(group, before, {
        ...{ group_events: 1, group_epochs: 1, group_members: 1, group_boxes: 1 },
        ...{ group_intervals: 1, group_applications: -1 },
      });
      const { params: won } = calls[winner] as { params: { approval: object } };
      await expectLast(group, won.approval as JsonObject);
      const invites = await rowsOf(group, 'group_invites');
      expect(invites.find(({ invite_id }) => invite_id === first.invite_id)?.uses).toBe(1);
      // Signed anew on the head there is now, the other one meets what the first has used up.
      const loser = winner === 0 ? dora : cem;
      const params = group.approval([loser], { by: ann });
      const [code] = await race({ by: ann, method: 'group.application.approve', params });
      // A job deletes the applications of a used invitation.
      const applications = await rowsOf(group, 'group_applications');
      const isDeleted = !applications.some(({ account }) => account === loser.account);
      expect(isDeleted ? ['state_conflict', 'not_found'] : ['state_conflict']).toContain(code);
      if (round % 2 === 1) expect([isDeleted, code]).toEqual([false, 'state_conflict']);
    }
  });

  test('05 §13.17, §13.18: a concurrent leave and removal end a membership once', async () => {
    const { race, counts, expectGrowth, expectLast, found, links, ben, cem } = races();
    for (let round = 0; round < rounds; round += 1) {
      const group = await found([ben], [cem]);
      const before = await counts(group);
      const calls = links(group, [
        { by: cem, kind: 'group.member.leave', facts: { account: cem.account } },
        {
          by: ben,
          kind: 'group.member.removal',
          facts: { accounts: [cem.account] },
          method: 'group.member.remove',
        },
      ]);
      const order = round % 2 === 0 ? calls : calls.toReversed();
      const codes = await race(...order);
      const winner = codes.indexOf('ok');
      expect(codes.filter((code) => code === 'ok')).toHaveLength(1);
      // Who is out already learns nothing of the head.
      const isLeave = order[1 - winner] === calls[0];
      expect(codes[1 - winner]).toBe(isLeave ? 'forbidden' : 'state_conflict');
      await expectGrowth(group, before, { group_events: 1, group_epochs: 1, group_members: -1 });
      await expectLast(group, order[winner]?.params as JsonObject);
    }
  });

  test('05 §13.27: of a concurrent rotation and admission both are accepted in some order, or one', async () => {
    const { ground, race, rowsOf, counts, expectGrowth, expectLast, found, ann, ben, cem } =
      races();
    for (let round = 0; round < rounds; round += 1) {
      const group = await found([ben]);
      const invite = await group.invite();
      await group.apply(cem, invite);
      const secret = createGroupSecret(nodeRandom);
      const preparation = group.preparation(secret);
      const session = ann.session();
      await ground.call('group.secret.rotation.prepare', preparation, { session });
      const before = await counts(group);
      const approval = group.approval([cem], { by: ben });
      const body = group.rotation(secret);
      const calls = [
        { by: ann, method: 'group.secret.rotation.commit', params: body },
        { by: ben, method: 'group.application.approve', params: approval },
      ];
      const isRotated = onlyOne(await race(...calls)) === 0;
      if (isRotated) {
        await expectGrowth(group, before, { group_events: 1, group_epochs: 1, group_stagings: -1 });
        await expectLast(group, body as unknown as JsonObject);
        group.secret = secret;
      } else {
        await expectGrowth(group, before, {
          ...{ group_events: 1, group_epochs: 1, group_members: 1, group_boxes: 1 },
          ...{ group_intervals: 1, group_applications: -1 },
        });
        await expectLast(group, approval.approval as unknown as JsonObject);
        // The preparation lacks the new member's box, and may be completed.
        const late = {
          by: ann,
          method: 'group.secret.rotation.commit',
          params: group.rotation(secret),
        };
        expect(await race(late)).toEqual(['state_conflict']);
      }
      // Every member opens the secret in force with its present keys.
      const keys = verified(await readKeys(ground, group, ben));
      expect([...keys.keys()].at(-1)).toBe((await rowsOf(group, 'groups'))[0]?.epoch);
    }
  });

  test('05 §13.9, §13.12: an invitation is created once and revoked once', async () => {
    const { race, counts, expectGrowth, found, ann } = races();
    const group = await found([]);
    const invite = group.invitation();
    const before = await counts(group);
    const create = { by: ann, method: 'group.invite.create', params: invite };
    onlyOne(await race(create, create, create));
    await expectGrowth(group, before, { group_invites: 1 });
    const params = { group_id: group.groupId, invite_id: invite.invite_id };
    const revoke = { by: ann, method: 'group.invite.revoke', params };
    onlyOne(await race(revoke, revoke, revoke));
  });

  test('05 §13.12, §13.15: a concurrent revocation and approval never use a revoked invitation', async () => {
    const { race, rowsOf, counts, expectGrowth, found, ann, ben, cem } = races();
    for (let round = 0; round < rounds; round += 1) {
      const group = await found([ben]);
      const invite = await group.invite();
      await group.apply(cem, invite);
      const before = await counts(group);
      const params = { group_id: group.groupId, invite_id: invite.invite_id };
      const revoke = { by: ann, method: 'group.invite.revoke', params };
      const approve = {
        by: ben,
        method: 'group.application.approve',
        params: group.approval([cem], { by: ben }),
      };
      const order = round % 2 === 0 ? [revoke, approve] : [approve, revoke];
      const codes = await race(...order);
      const code = codes[order.indexOf(approve)];
      expect(codes[order.indexOf(revoke)]).toBe('ok');
      const [stored] = (await rowsOf(group, 'group_invites')).filter(
        ({ invite_id }) => invite_id === invite.invite_id,
      );
      expect(stored?.revoked).toBe(1);
      expect(['ok', 'state_conflict']).toContain(code);
      expect(stored?.uses).toBe(code === 'ok' ? 1 : 0);
      const growth = {
        ...{ group_events: 1, group_epochs: 1, group_members: 1, group_boxes: 1 },
        ...{ group_intervals: 1, group_applications: -1 },
      };
      await expectGrowth(group, before, code === 'ok' ? growth : {});
    }
  });

  test('05 §13.13, §13.21: an account has one application and one recovery request', async () => {
    const { race, rowsOf, counts, expectGrowth, found, ben, cem } = races();
    const group = await found([], [ben]);
    const invite = await group.invite();
    const before = await counts(group);
    const applications = Array.from({ length: 3 }, () => group.application(cem, invite));
    const requests = Array.from({ length: 3 }, () => group.recoveryRequest(ben));
    const codes = await race(
      ...applications.map((params) => ({ by: cem, method: 'group.application.submit', params })),
      ...requests.map((params) => ({ by: ben, method: 'group.member.recovery.submit', params })),
    );
    for (const code of codes) expect(['ok', 'state_conflict']).toContain(code);
    expect(codes.slice(0, 3)).toContain('ok');
    expect(codes.slice(3)).toContain('ok');
    await expectGrowth(group, before, { group_applications: 1, group_recoveries: 1 });
    const [application] = await rowsOf(group, 'group_applications');
    expect(applications.map((each) => canonicalJson(each))).toContain(application?.application);
  });
}
