/**
 * What must hold when many devices call concurrently, whichever process each of them calls. The test
 * file chooses the processes.
 */

import { createGroupSecret, managementHash } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { readChain, readKeys, verified } from '../fixtures/group-reader.ts';
import type { Person } from '../fixtures/person.ts';
import {
  onlyOne,
  Races,
  type RacingCall,
  type RelayProcesses,
  type Rows,
} from '../fixtures/races.ts';
import { network } from '../support/in-process-relay.ts';

const rounds = 6;

export function describeRaces(open: () => Promise<RelayProcesses>): void {
  let place: RelayProcesses;
  let course: Races;
  let ground: Races['ground'];
  let ann: Person;
  let ben: Person;
  let cem: Person;
  let dora: Person;
  let emil: Person;
  let fay: Person;

  beforeAll(async () => {
    place = await open();
    course = new Races(place);
    ground = course.ground;
    ann = await ground.register('ann', ['phone', 'laptop']);
    [ben, cem, dora, emil, fay] = (await Promise.all(
      ['ben', 'cem', 'dora', 'emil', 'fay'].map((name) => ground.register(name)),
    )) as [Person, Person, Person, Person, Person];
  });
  afterAll(() => place[Symbol.asyncDispose]());

  const race = (...calls: readonly RacingCall[]) => course.race(...calls);

  /** Rows of a table that are about a group. */
  const rowsOf = async ({ groupId }: TestGroup, table: string): Promise<Rows> => {
    return (await course.rows(table)).filter(({ group_id }) => group_id === groupId);
  };
  const tables = [
    'groups',
    'group_members',
    'group_bans',
    'group_events',
    'group_messages',
    'group_epochs',
    'group_boxes',
    'group_intervals',
    'group_invites',
    'group_applications',
    'group_recoveries',
    'group_stagings',
  ] as const;
  const counts = async (group: TestGroup) => {
    const entries = tables.map(async (table) => [table, (await rowsOf(group, table)).length]);
    return Object.fromEntries(await Promise.all(entries)) as Record<
      (typeof tables)[number],
      number
    >;
  };

  /** What a call of the winner alone would have added, and nothing else. */
  const expectGrowth = async (
    group: TestGroup,
    before: Awaited<ReturnType<typeof counts>>,
    growth: Partial<typeof before>,
  ) => {
    const wanted = Object.fromEntries(
      tables.map((table) => [table, before[table] + (growth[table] ?? 0)]),
    );
    expect(await counts(group)).toEqual(wanted);
  };

  /** The body that was accepted, as the last event of the chain. */
  const expectLast = async (group: TestGroup, body: JsonObject) => {
    const last = (await rowsOf(group, 'group_events')).at(-1);
    expect(last?.payload).toBe(canonicalJson(body));
    const [row] = await rowsOf(group, 'groups');
    expect(row?.chain_head).toBe(managementHash(network, body as never));
    expect(row?.sequence).toBe(last?.sequence);
    expect(row?.epoch).toBe(last?.epoch);
    const { state } = await readChain(ground, group, ann);
    expect([state.head, state.sequence, state.epoch, state.members.size]).toEqual([
      ...[row?.chain_head, row?.sequence, row?.epoch, row?.member_count],
    ]);
    group.head = state.head;
  };

  /** Ann's group, with some others of whom the first are its administrators. */
  const found = async (admins: readonly Person[], members: readonly Person[] = []) => {
    const group = await TestGroup.create(ground, ann);
    if (admins.length + members.length > 0) await group.admit(...admins, ...members);
    for (const person of admins) await group.setRole(person, 'administrator');
    return group;
  };
  const links = (
    group: TestGroup,
    some: readonly {
      readonly by: Person;
      readonly device?: string;
      readonly kind: Parameters<TestGroup['link']>[0];
      readonly facts: object;
      readonly method?: string;
    }[],
  ) =>
    some.map(({ by, device = 'phone', kind, facts, method = kind }) => {
      const params = group.link(kind, facts as never, { by, device });
      return { by, device, method, params };
    });

  test('05 §5.2: of many events on the same head exactly one is accepted', async () => {
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
      const growths = new Map<RacingCall, Parameters<typeof expectGrowth>[2]>([
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

  test('05 §8.3, §13.15: of two approvals for the last place one is accepted', async () => {
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
      expect(await race({ by: ann, method: 'group.application.approve', params })).toEqual([
        'state_conflict',
      ]);
    }
  });

  test('05 §13.17, §13.18: a concurrent leave and removal end a membership once', async () => {
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

  test('05 §13.2: of two creations with one ID one is accepted; others are not delayed', async () => {
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

  test('05 §13.9, §13.12: an invitation is created once and revoked once', async () => {
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
