/** Concurrent writes of chain events, messages and creations, and concurrent reads. */
import { createGroupSecret } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { onlyOne, type RacingCall } from '../fixtures/races.ts';
import { type GroupRaces, rounds, type TableGrowth } from './group-races.ts';

export function testChainRaces(races: () => GroupRaces): void {
  test('05 §5.2: of many events on the same head exactly one is accepted', async () => {
    const { race, counts, expectGrowth, expectLast, found, links, ann, ben, cem, dora, emil, fay } =
      races();
    const group = await found([ben, cem, dora], [emil]);
    const outsider = `${fay.account}`;
    for (let round = 0; round < rounds; round += 1) {
      const before = await counts(group);
      const calls = links(group, [
        { by: ann, kind: 'group.update', facts: { name: `ann ${round}` } },
        { by: ann, device: 'laptop', kind: 'group.update', facts: { name: `laptop ${round}` } },
        { by: ann, kind: 'group.role.update', facts: { account: emil.account, role: 'member' } },
        ...[ben, cem, dora].map((by) => ({
          by,
          kind: 'group.member.unban' as const,
          facts: { accounts: [outsider] },
        })),
      ]);
      const winner = onlyOne(await race(...calls));
      await expectGrowth(group, before, { group_events: 1 });
      await expectLast(group, calls[winner]?.params as JsonObject);
    }
  });

  test('05 §5.2: also if each would begin an epoch, end access and delete', async () => {
    const {
      ground,
      race,
      rowsOf,
      counts,
      expectGrowth,
      expectLast,
      found,
      links,
      ann,
      ben,
      cem,
      dora,
      emil,
    } = races();
    for (let round = 0; round < rounds; round += 1) {
      const group = await found([ben, cem], [dora, emil]);
      await group.requestRecovery(emil);
      const recovery = group.approval([emil], { kind: 'group.member.recovery.approval' });
      const secret = createGroupSecret(nodeRandom);
      const preparation = group.preparation(secret);
      await ground.call('group.secret.rotation.prepare', preparation, { session: ann.session() });
      const before = await counts(group);
      const [removal, ban, leave, commit] = links(group, [
        {
          by: ben,
          kind: 'group.member.removal',
          facts: { accounts: [dora.account] },
          method: 'group.member.remove',
        },
        { by: cem, kind: 'group.member.ban', facts: { accounts: [dora.account] } },
        { by: emil, kind: 'group.member.leave', facts: { account: emil.account } },
        {
          by: ann,
          kind: 'group.secret.rotation',
          facts: { client_secret_commitment: preparation.client_secret_commitment },
          method: 'group.secret.rotation.commit',
        },
      ]) as [RacingCall, RacingCall, RacingCall, RacingCall];
      const approve = { by: ann, method: 'group.member.recovery.approve', params: recovery };
      const calls = [removal, ban, leave, commit, approve];
      const order = [...calls.slice(round % 5), ...calls.slice(0, round % 5)];
      const winner = order[onlyOne(await race(...order))] as RacingCall;
      const growths = new Map<RacingCall, TableGrowth>([
        [removal, { group_members: -1, group_boxes: -1 }],
        [ban, { group_members: -1, group_boxes: -1, group_bans: 1 }],
        [leave, { group_members: -1, group_boxes: -1, group_recoveries: -1 }],
        [commit, { group_stagings: -1 }],
        // The staged box goes, the new one comes.
        [approve, { group_recoveries: -1, group_intervals: 1 }],
      ]);
      const growth = { ...growths.get(winner), group_events: 1, group_epochs: 1 };
      await expectGrowth(group, before, growth);
      const body = winner === approve ? recovery.approval : winner.params;
      await expectLast(group, body as JsonObject);
      const open = (await rowsOf(group, 'group_intervals')).filter(
        ({ message_to }) => message_to === null,
      );
      const members = await rowsOf(group, 'group_members');
      expect(open.map(({ account }) => account).toSorted()).toEqual(
        members.map(({ account }) => account).toSorted(),
      );
    }
  });

  test('05 §13.5: closing races with everything else', async () => {
    const { race, rowsOf, counts, expectGrowth, found, links, ann, ben, cem, fay } = races();
    const group = await found([ben], [cem]);
    const before = await counts(group);
    const calls = links(group, [
      { by: ann, kind: 'group.close', facts: {} },
      { by: ben, kind: 'group.member.unban', facts: { accounts: [fay.account] } },
      { by: ann, device: 'laptop', kind: 'group.close', facts: {} },
    ]);
    const message = group.message(cem, 1);
    const codes = await race(...calls, { by: cem, method: 'group.message.send', params: message });
    const winner = onlyOne(codes.slice(0, 3));
    const [row] = await rowsOf(group, 'groups');
    expect(row?.status).toBe(winner === 1 ? 'active' : 'closed');
    const messages = codes[3] === 'ok' ? 1 : 0;
    if (winner === 1) expect(codes[3]).toBe('ok');
    await expectGrowth(group, before, { group_events: 1, group_messages: messages });
    if (winner === 1) return;
    const events = await rowsOf(group, 'group_events');
    expect(events.at(-1)?.sequence).toBe(row?.sequence);
  });

  test('05 §13.28: one message sent twice concurrently is one event', async () => {
    const { race, counts, expectGrowth, found, ben } = races();
    const group = await found([], [ben]);
    for (let round = 0; round < rounds; round += 1) {
      const before = await counts(group);
      const message = group.message(ben, 1);
      const call = { by: ben, method: 'group.message.send', params: message };
      expect(await race(call, call, call, call)).toEqual(['ok', 'ok', 'ok', 'ok']);
      await expectGrowth(group, before, { group_messages: 1 });
    }
  });

  test('05 §13.28: of two messages with one ID one is accepted, in whatever group', async () => {
    const { race, counts, expectGrowth, found, ben } = races();
    const group = await found([], [ben]);
    const other = await found([], [ben]);
    const epoch = 1;
    for (let round = 0; round < rounds; round += 1) {
      const before = [await counts(group), await counts(other)] as const;
      const { message_id } = group.message(ben, epoch);
      const again = (of: TestGroup) => {
        const { device_signature: _, ...body } = of.message(ben, epoch);
        return of.sign({ ...body, message_id } as JsonObject, { by: ben });
      };
      const calls = [group, other, group, other].map((of) => ({
        by: ben,
        method: 'group.message.send',
        params: again(of),
      }));
      const winner = onlyOne(await race(...calls));
      const added = (index: number) => ({ group_messages: winner % 2 === index ? 1 : 0 });
      await expectGrowth(group, before[0], added(0));
      await expectGrowth(other, before[1], added(1));
    }
  });

  test('05 §13.2: of two creations with one ID one is accepted; others are not delayed', async () => {
    const { ground, race, counts, ann } = races();
    for (let round = 0; round < rounds; round += 1) {
      const fresh = Array.from({ length: 4 }, () => TestGroup.draft(ground, ann));
      const params = fresh.map((each) => each.params);
      const one = params[0] as object;
      const codes = await race(
        ...[one, one, one, ...params.slice(1)].map((each) => ({
          by: ann,
          method: 'group.create',
          params: each,
        })),
      );
      onlyOne(codes.slice(0, 3));
      expect(codes.slice(3)).toEqual(['ok', 'ok', 'ok']);
      for (const { group: made } of fresh) {
        expect(await counts(made)).toMatchObject({
          ...{ groups: 1, group_members: 1, group_events: 1, group_epochs: 1 },
          ...{ group_boxes: 1, group_intervals: 1 },
        });
      }
    }
  });

  test('05 §10.2: a device that reads several times at once has one interval', async () => {
    const { race, counts, expectGrowth, found, ann, ben } = races();
    const group = await found([], [ben]);
    await group.send(ben, 1);
    const before = await counts(group);
    const by = { by: ann, device: 'laptop' };
    const params = { group_id: group.groupId };
    const subscription = { group_ids: [group.groupId] };
    const codes = await race(
      { ...by, method: 'group.sync', params },
      { ...by, method: 'group.key.sync', params },
      { ...by, method: 'group.subscribe', params: subscription },
      { ...by, method: 'group.sync', params },
      { ...by, method: 'group.key.sync', params },
    );
    expect(codes).toEqual(['ok', 'ok', 'ok', 'ok', 'ok']);
    await expectGrowth(group, before, { group_intervals: 1 });
  });
}
