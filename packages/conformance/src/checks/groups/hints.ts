/** Whom each method tells what (05 §15, §19; 02 §12.6, §12.7). */
import type { GroupMethodName } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { type Check, checksOf } from '../../check.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { type GroupFixture, groupFixture } from '../../groups/group-fixture.ts';
import { type ExpectedHints, GroupListeners } from '../../groups/group-listeners.ts';
import { idsOf, newSecret } from '../../groups/group-objects.ts';
import { readHead } from '../../groups/group-reader.ts';

/** Owner, administrator, two members, somebody outside. */
interface Participants extends GroupFixture {
  readonly ada: TestAccount;
  readonly ben: TestAccount;
  readonly cem: TestAccount;
  readonly eve: TestAccount;
}

interface HintCase {
  /** What comes before anybody listens. */
  before?(cast: Participants): Promise<unknown>;
  act(cast: Participants): Promise<unknown>;
  expected(cast: Participants): ExpectedHints;
}

const all = ({ owner, ada, ben, cem }: Participants) => [owner, ada, ben, cem];
const managers = ({ owner, ada }: Participants) => [owner, ada];
const timelineToAll = (cast: Participants): ExpectedHints => ({ timeline: all(cast) });
const toManagers = (cast: Participants): ExpectedHints => ({ applications: managers(cast) });
const requestRecovery = ({ group, ben }: Participants) => group.requestRecovery(ben);
const applied = async ({ group, eve }: Participants) => group.apply(eve, await group.invite());

/** Names the accounts of people in a group. */
const batch = ({ group }: Participants, ...people: TestAccount[]): JsonObject => {
  return { group_id: group.groupId, accounts: idsOf(people) };
};

/** The request of the first member is deleted when its membership ends, in each of these ways. */
const recoveryDeleted = (cast: Participants): ExpectedHints => {
  const { owner, ada, cem } = cast;
  return { timeline: [owner, ada, cem], recoveries: managers(cast) };
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
      act: async (cast) => {
        const { group, ada, ben } = cast;
        await group.setRole(ada, 'member');
        await group.setRole(ben, 'administrator');
        await applied(cast);
      },
      expected: (cast) => ({ ...timelineToAll(cast), applications: [cast.owner, cast.ben] }),
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
      act: (cast) =>
        cast.context.expectOk(cast.ada.caller, 'group.application.reject', batch(cast, cast.eve)),
      expected: toManagers,
    },
  },
  'group.application.approve': {
    admitted: {
      before: applied,
      act: ({ group, eve }) => group.approve([eve]),
      expected: (cast) => ({ ...timelineToAll(cast), ...toManagers(cast) }),
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
      expected: (cast) => ({ ...timelineToAll(cast), ...toManagers(cast) }),
    },
    outside: { act: ({ group, eve }) => group.ban([eve]), expected: timelineToAll },
  },
  'group.member.unban': {
    event: { act: ({ group, eve }) => group.unban([eve]), expected: timelineToAll },
  },
  'group.member.recovery.submit': {
    member: {
      act: requestRecovery,
      expected: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
    },
    replaced: {
      before: requestRecovery,
      act: requestRecovery,
      expected: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
    },
    administrator: {
      act: ({ group, ada }) => group.requestRecovery(ada),
      expected: (cast) => ({ recoveries: managers(cast) }),
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
      expected: (cast) => ({ ...timelineToAll(cast), recoveries: [...managers(cast), cast.ben] }),
    },
  },
  'group.member.recovery.reject': {
    rejected: {
      before: requestRecovery,
      act: (cast) =>
        cast.context.expectOk(
          cast.ada.caller,
          'group.member.recovery.reject',
          batch(cast, cast.ben),
        ),
      expected: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
    },
    withdrawn: {
      before: requestRecovery,
      act: (cast) =>
        cast.context.expectOk(
          cast.ben.caller,
          'group.member.recovery.reject',
          batch(cast, cast.ben),
        ),
      expected: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
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
      act: (cast) => cast.group.rotate(all(cast)),
      expected: timelineToAll,
    },
    'owner-key-with-request': {
      before: ({ group, owner }) => group.requestRecovery(owner),
      act: (cast) => cast.group.rotate(all(cast), cast.group.keys.make()),
      expected: (cast) => ({ ...timelineToAll(cast), recoveries: [cast.owner] }),
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
    // The invitation that admitted these people is revoked with the others.
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
        title: `tells those who are to know, and nobody else (${word})`,
        transports: ['wss'],
      },
      async (context) => {
        const cast = await participants(context);
        await before?.(cast);
        const listeners = await GroupListeners.of(cast.group, all(cast));
        await listeners.expectHints(() => act(cast), expected(cast));
      },
    );
  }
  return list;
}

/** A call made before, to be repeated as it is. */
type Repeated = (
  cast: Participants,
) => Promise<{ readonly by: TestAccount; readonly params: JsonObject }>;

/** Repeats that change nothing (05 §13.13, §13.21, §13.28). */
const repeats: Readonly<Partial<Record<GroupMethodName, Repeated>>> = {
  'group.application.submit': async (cast) => ({ by: cast.eve, params: await applied(cast) }),
  'group.member.recovery.submit': async (cast) => ({
    by: cast.ben,
    params: await requestRecovery(cast),
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
      title: 'an identical repeat tells nobody',
      transports: ['wss'],
    },
    async (context) => {
      const cast = await participants(context);
      const { by, params } = await repeat(cast);
      const listeners = await GroupListeners.of(cast.group, all(cast));
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
