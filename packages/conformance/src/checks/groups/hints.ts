/** The hints that each method causes, and the accounts that get them (05 §15, §19; 02 §12). */
import type { GroupMethodName } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { type Check, checksOf } from '../../check.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { type GroupFixture, groupFixture } from '../../groups/group-fixture.ts';
import { type ExpectedHints, GroupListeners } from '../../groups/group-listeners.ts';
import { idsOf, newSecret } from '../../groups/group-objects.ts';
import { readHead } from '../../groups/group-reader.ts';

/** A group with owner, administrator and two members, and an account outside. */
interface Participants extends GroupFixture {
  readonly ada: TestAccount;
  readonly ben: TestAccount;
  readonly cem: TestAccount;
  readonly eve: TestAccount;
}

interface HintCase {
  /** Calls made before the accounts subscribe. */
  before?(participating: Participants): Promise<unknown>;
  act(participating: Participants): Promise<unknown>;
  expected(participating: Participants): ExpectedHints;
}

const all = ({ owner, ada, ben, cem }: Participants) => [owner, ada, ben, cem];
const managers = ({ owner, ada }: Participants) => [owner, ada];
const timelineToAll = (participating: Participants): ExpectedHints => ({
  timeline: all(participating),
});
const toManagers = (participating: Participants): ExpectedHints => ({
  applications: managers(participating),
});
const requestRecovery = ({ group, ben }: Participants) => group.requestRecovery(ben);
const applied = async ({ group, eve }: Participants) => group.apply(eve, await group.invite());

/** Builds the parameters that name accounts of a group. */
const batch = ({ group }: Participants, ...accounts: TestAccount[]): JsonObject => {
  return { group_id: group.groupId, accounts: idsOf(accounts) };
};

/** The hints if a membership ends and its recovery request is deleted. */
const recoveryDeleted = (participating: Participants): ExpectedHints => {
  const { owner, ada, cem } = participating;
  return { timeline: [owner, ada, cem], recoveries: managers(participating) };
};

const cases: Readonly<Partial<Record<GroupMethodName, Readonly<Record<string, HintCase>>>>> = {
  'group.update': {
    event: { act: ({ group }) => group.update({ name: 'x' }), expected: timelineToAll },
  },
  'group.role.update': {
    event: {
      act: ({ group, ben }) => group.setRole(ben, 'administrator'),
      expected: timelineToAll,
    },
    'roles-of-now': {
      act: async (participating) => {
        const { group, ada, ben } = participating;
        await group.setRole(ada, 'member');
        await group.setRole(ben, 'administrator');
        await applied(participating);
      },
      expected: (participating) => ({
        ...timelineToAll(participating),
        applications: [participating.owner, participating.ben],
      }),
    },
  },
  'group.owner.transfer': {
    event: { act: ({ group, ada }) => group.transfer(ada), expected: timelineToAll },
  },
  'group.invite.create': { nothing: { act: ({ group }) => group.invite(), expected: () => ({}) } },
  'group.invite.revoke': {
    'with-application': {
      before: applied,
      act: async ({ context, group, owner }) => revokeAll(context, group.groupId, owner),
      expected: toManagers,
    },
    'without-application': {
      before: ({ group }) => group.invite(),
      act: async ({ context, group, owner }) => revokeAll(context, group.groupId, owner),
      expected: () => ({}),
    },
  },
  'group.application.submit': {
    new: { act: applied, expected: toManagers },
    replaced: { before: applied, act: applied, expected: toManagers },
  },
  'group.application.reject': {
    deleted: {
      before: applied,
      act: (participating) =>
        participating.context.expectOk(
          participating.ada.caller,
          'group.application.reject',
          batch(participating, participating.eve),
        ),
      expected: toManagers,
    },
  },
  'group.application.approve': {
    admitted: {
      before: applied,
      act: ({ group, eve }) => group.approve([eve]),
      expected: (participating) => ({
        ...timelineToAll(participating),
        ...toManagers(participating),
      }),
    },
  },
  'group.member.leave': {
    event: { act: ({ group, ben }) => group.leave(ben), expected: timelineToOthers },
    'with-request': {
      before: requestRecovery,
      act: ({ group, ben }) => group.leave(ben),
      expected: recoveryDeleted,
    },
  },
  'group.member.remove': {
    event: { act: ({ group, ben }) => group.remove([ben]), expected: timelineToOthers },
    'with-request': {
      before: requestRecovery,
      act: ({ group, ben }) => group.remove([ben]),
      expected: recoveryDeleted,
    },
    'administrator-with-request': {
      before: ({ group, ada }) => group.requestRecovery(ada),
      act: ({ group, ada }) => group.remove([ada]),
      expected: ({ owner, ben, cem }) => ({ timeline: [owner, ben, cem], recoveries: [owner] }),
    },
  },
  'group.member.ban': {
    event: { act: ({ group, ben }) => group.ban([ben]), expected: timelineToOthers },
    'with-request': {
      before: requestRecovery,
      act: ({ group, ben }) => group.ban([ben]),
      expected: recoveryDeleted,
    },
    'with-application': {
      before: applied,
      act: ({ group, eve }) => group.ban([eve]),
      expected: (participating) => ({
        ...timelineToAll(participating),
        ...toManagers(participating),
      }),
    },
    outside: { act: ({ group, eve }) => group.ban([eve]), expected: timelineToAll },
  },
  'group.member.unban': {
    event: { act: ({ group, eve }) => group.unban([eve]), expected: timelineToAll },
  },
  'group.member.recovery.submit': {
    member: {
      act: requestRecovery,
      expected: (participating) => ({
        recoveries: [...managers(participating), participating.ben],
      }),
    },
    replaced: {
      before: requestRecovery,
      act: requestRecovery,
      expected: (participating) => ({
        recoveries: [...managers(participating), participating.ben],
      }),
    },
    administrator: {
      act: ({ group, ada }) => group.requestRecovery(ada),
      expected: (participating) => ({ recoveries: managers(participating) }),
    },
    owner: {
      act: ({ group, owner }) => group.requestRecovery(owner),
      expected: ({ owner }) => ({ recoveries: [owner] }),
    },
  },
  'group.member.recovery.approve': {
    event: {
      before: requestRecovery,
      act: ({ group, ben }) => group.recover([ben]),
      expected: (participating) => ({
        ...timelineToAll(participating),
        recoveries: [...managers(participating), participating.ben],
      }),
    },
  },
  'group.member.recovery.reject': {
    rejected: {
      before: requestRecovery,
      act: (participating) =>
        participating.context.expectOk(
          participating.ada.caller,
          'group.member.recovery.reject',
          batch(participating, participating.ben),
        ),
      expected: (participating) => ({
        recoveries: [...managers(participating), participating.ben],
      }),
    },
    withdrawn: {
      before: requestRecovery,
      act: (participating) =>
        participating.context.expectOk(
          participating.ben.caller,
          'group.member.recovery.reject',
          batch(participating, participating.ben),
        ),
      expected: (participating) => ({
        recoveries: [...managers(participating), participating.ben],
      }),
    },
  },
  'group.secret.rotation.prepare': {
    nothing: {
      act: ({ group, owner }) => group.prepare(group.prepareParams(newSecret(), [owner])),
      expected: () => ({}),
    },
  },
  'group.secret.rotation.commit': {
    event: {
      before: requestRecovery,
      act: (participating) => participating.group.rotate(all(participating)),
      expected: timelineToAll,
    },
    'owner-key-with-request': {
      before: ({ group, owner }) => group.requestRecovery(owner),
      act: (participating) =>
        participating.group.rotate(all(participating), participating.group.keys.make()),
      expected: (participating) => ({
        ...timelineToAll(participating),
        recoveries: [participating.owner],
      }),
    },
  },
  'group.message.send': {
    event: {
      act: async ({ group, ben }) => group.send(ben, (await readHead(group, ben)).epoch),
      expected: timelineToAll,
    },
  },
};

function timelineToOthers({ owner, ada, cem }: Participants): ExpectedHints {
  return { timeline: [owner, ada, cem] };
}

async function revokeAll(
  context: TestContext,
  group_id: string,
  { caller }: TestAccount,
): Promise<void> {
  const list = await context.expectOk(caller, 'group.invite.list', { group_id });
  const { invites } = list as unknown as { invites: { invite: { invite_id: string } }[] };
  for (const { invite } of invites) {
    const params = { group_id, invite_id: invite.invite_id };
    // The invitation that admitted these accounts is revoked with the others.
    await context.expectOk(caller, 'group.invite.revoke', params);
  }
}

async function participants(context: TestContext): Promise<Participants> {
  const fixture = await groupFixture(context, { administrators: 1, members: 2, strangers: 1 });
  const [ada] = fixture.administrators as [TestAccount];
  const [ben, cem] = fixture.members as [TestAccount, TestAccount];
  const [eve] = fixture.strangers as [TestAccount];
  return { ...fixture, ada, ben, cem, eve };
}

function hintChecks(
  method: GroupMethodName,
  hintCases: Readonly<Record<string, HintCase>>,
): readonly Check[] {
  const { check, list } = checksOf(method);
  for (const [word, { before, act, expected }] of Object.entries(hintCases)) {
    check(
      `hints-${word}`,
      {
        source: '05 §15, §19',
        title: `notifies the permitted accounts and no others (${word})`,
        transports: ['wss'],
      },
      async (context) => {
        const participating = await participants(context);
        await before?.(participating);
        const listeners = await GroupListeners.of(participating.group, all(participating));
        await listeners.expectHints(() => act(participating), expected(participating));
      },
    );
  }
  return list;
}

/** Makes a call, to be repeated unchanged. */
type Repeated = (
  participating: Participants,
) => Promise<{ readonly by: TestAccount; readonly params: JsonObject }>;

/** Repeats that change nothing (05 §13.13, §13.21, §13.28). */
const repeats: Readonly<Partial<Record<GroupMethodName, Repeated>>> = {
  'group.application.submit': async (participating) => ({
    by: participating.eve,
    params: await applied(participating),
  }),
  'group.member.recovery.submit': async (participating) => ({
    by: participating.ben,
    params: await requestRecovery(participating),
  }),
  'group.message.send': async ({ context, group, ben }) => {
    const params = group.message(ben, (await readHead(group, ben)).epoch);
    await context.expectOk(ben.caller, 'group.message.send', params);
    return { by: ben, params };
  },
};

function repeatChecks(method: GroupMethodName, repeat: Repeated): readonly Check[] {
  const { check, list } = checksOf(method);
  check(
    'hints-repeat',
    {
      source: '05 §13.13, §13.21, §13.28',
      title: 'an identical repeat causes no hint',
      transports: ['wss'],
    },
    async (context) => {
      const participating = await participants(context);
      const { by, params } = await repeat(participating);
      const listeners = await GroupListeners.of(participating.group, all(participating));
      await listeners.expectHints(() => context.expectOk(by.caller, method, params), {});
    },
  );
  return list;
}

export const groupHintChecks: readonly Check[] = [
  ...Object.entries(cases).flatMap(([method, some]) => hintChecks(method as GroupMethodName, some)),
  ...Object.entries(repeats).flatMap(([method, made]) =>
    repeatChecks(method as GroupMethodName, made),
  ),
];
