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
interface Cast extends GroupFixture {
  readonly ada: TestAccount;
  readonly ben: TestAccount;
  readonly cem: TestAccount;
  readonly eve: TestAccount;
}

interface Case {
  /** What comes before anybody listens. */
  before?(cast: Cast): Promise<unknown>;
  act(cast: Cast): Promise<unknown>;
  heard(cast: Cast): ExpectedHints;
}

const all = ({ owner, ada, ben, cem }: Cast) => [owner, ada, ben, cem];
const managers = ({ owner, ada }: Cast) => [owner, ada];
const everybody = (cast: Cast): ExpectedHints => ({ timeline: all(cast) });
const toManagers = (cast: Cast): ExpectedHints => ({ applications: managers(cast) });
const asked = ({ group, ben }: Cast) => group.requestRecovery(ben);
const applied = async ({ group, eve }: Cast) => group.apply(eve, await group.invite());

/** Names the accounts of people in a group. */
const batch = ({ group }: Cast, ...people: TestAccount[]): JsonObject => {
  return { group_id: group.groupId, accounts: idsOf(people) };
};

/** The request of the first member is deleted when its membership ends, in each of these ways. */
const gone = (cast: Cast): ExpectedHints => {
  const { owner, ada, cem } = cast;
  return { timeline: [owner, ada, cem], recoveries: managers(cast) };
};

const cases: Readonly<Partial<Record<GroupMethodName, Readonly<Record<string, Case>>>>> = {
  'group.update': {
    event: { act: ({ group }) => group.update({ name: 'x' }), heard: everybody },
  },
  'group.role.update': {
    event: { act: ({ group, ben }) => group.setRole(ben, 'administrator'), heard: everybody },
    'roles-of-now': {
      act: async (cast) => {
        const { group, ada, ben } = cast;
        await group.setRole(ada, 'member');
        await group.setRole(ben, 'administrator');
        await applied(cast);
      },
      heard: (cast) => ({ ...everybody(cast), applications: [cast.owner, cast.ben] }),
    },
  },
  'group.owner.transfer': {
    event: { act: ({ group, ada }) => group.transfer(ada), heard: everybody },
  },
  'group.invite.create': { nothing: { act: ({ group }) => group.invite(), heard: () => ({}) } },
  'group.invite.revoke': {
    'with-application': {
      before: applied,
      act: async ({ context, group, owner }) => revokeAll(context, group.groupId, owner),
      heard: toManagers,
    },
    'without-application': {
      before: ({ group }) => group.invite(),
      act: async ({ context, group, owner }) => revokeAll(context, group.groupId, owner),
      heard: () => ({}),
    },
  },
  'group.application.submit': {
    new: { act: applied, heard: toManagers },
    replaced: { before: applied, act: applied, heard: toManagers },
  },
  'group.application.reject': {
    deleted: {
      before: applied,
      act: (cast) =>
        cast.context.expectOk(cast.ada.caller, 'group.application.reject', batch(cast, cast.eve)),
      heard: toManagers,
    },
  },
  'group.application.approve': {
    admitted: {
      before: applied,
      act: ({ group, eve }) => group.approve([eve]),
      heard: (cast) => ({ ...everybody(cast), ...toManagers(cast) }),
    },
  },
  'group.member.leave': {
    event: { act: ({ group, ben }) => group.leave(ben), heard: rest },
    'with-request': { before: asked, act: ({ group, ben }) => group.leave(ben), heard: gone },
  },
  'group.member.remove': {
    event: { act: ({ group, ben }) => group.remove([ben]), heard: rest },
    'with-request': { before: asked, act: ({ group, ben }) => group.remove([ben]), heard: gone },
    'administrator-with-request': {
      before: ({ group, ada }) => group.requestRecovery(ada),
      act: ({ group, ada }) => group.remove([ada]),
      heard: ({ owner, ben, cem }) => ({ timeline: [owner, ben, cem], recoveries: [owner] }),
    },
  },
  'group.member.ban': {
    event: { act: ({ group, ben }) => group.ban([ben]), heard: rest },
    'with-request': { before: asked, act: ({ group, ben }) => group.ban([ben]), heard: gone },
    'with-application': {
      before: applied,
      act: ({ group, eve }) => group.ban([eve]),
      heard: (cast) => ({ ...everybody(cast), ...toManagers(cast) }),
    },
    outside: { act: ({ group, eve }) => group.ban([eve]), heard: everybody },
  },
  'group.member.unban': {
    event: { act: ({ group, eve }) => group.unban([eve]), heard: everybody },
  },
  'group.member.recovery.submit': {
    member: { act: asked, heard: (cast) => ({ recoveries: [...managers(cast), cast.ben] }) },
    replaced: {
      before: asked,
      act: asked,
      heard: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
    },
    administrator: {
      act: ({ group, ada }) => group.requestRecovery(ada),
      heard: (cast) => ({ recoveries: managers(cast) }),
    },
    owner: {
      act: ({ group, owner }) => group.requestRecovery(owner),
      heard: ({ owner }) => ({ recoveries: [owner] }),
    },
  },
  'group.member.recovery.approve': {
    event: {
      before: asked,
      act: ({ group, ben }) => group.recover([ben]),
      heard: (cast) => ({ ...everybody(cast), recoveries: [...managers(cast), cast.ben] }),
    },
  },
  'group.member.recovery.reject': {
    rejected: {
      before: asked,
      act: (cast) =>
        cast.context.expectOk(
          cast.ada.caller,
          'group.member.recovery.reject',
          batch(cast, cast.ben),
        ),
      heard: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
    },
    withdrawn: {
      before: asked,
      act: (cast) =>
        cast.context.expectOk(
          cast.ben.caller,
          'group.member.recovery.reject',
          batch(cast, cast.ben),
        ),
      heard: (cast) => ({ recoveries: [...managers(cast), cast.ben] }),
    },
  },
  'group.secret.rotation.prepare': {
    nothing: {
      act: ({ group, owner }) => group.prepare(group.prepareParams(newSecret(), [owner])),
      heard: () => ({}),
    },
  },
  'group.secret.rotation.commit': {
    event: {
      before: asked,
      act: (cast) => cast.group.rotate(all(cast)),
      heard: everybody,
    },
    'owner-key-with-request': {
      before: ({ group, owner }) => group.requestRecovery(owner),
      act: (cast) => cast.group.rotate(all(cast), cast.group.keys.make()),
      heard: (cast) => ({ ...everybody(cast), recoveries: [cast.owner] }),
    },
  },
  'group.message.send': {
    event: {
      act: async ({ group, ben }) => group.send(ben, (await readHead(group, ben)).epoch),
      heard: everybody,
    },
  },
};

function rest({ owner, ada, cem }: Cast): ExpectedHints {
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

async function castOf(context: TestContext): Promise<Cast> {
  const fixture = await groupFixture(context, { administrators: 1, members: 2, strangers: 1 });
  const [ada] = fixture.administrators as [TestAccount];
  const [ben, cem] = fixture.members as [TestAccount, TestAccount];
  const [eve] = fixture.strangers as [TestAccount];
  return { ...fixture, ada, ben, cem, eve };
}

function hintChecks(
  method: GroupMethodName,
  some: Readonly<Record<string, Case>>,
): readonly Check[] {
  const { check, list } = checksOf(method);
  for (const [word, { before, act, heard }] of Object.entries(some)) {
    check(
      `hints-${word}`,
      {
        source: '05 §15, §19',
        title: `tells those who are to know, and nobody else (${word})`,
        transports: ['wss'],
      },
      async (context) => {
        const cast = await castOf(context);
        await before?.(cast);
        const listeners = await GroupListeners.of(cast.group, all(cast));
        await listeners.expectHints(() => act(cast), heard(cast));
      },
    );
  }
  return list;
}

/** A call made before, to be repeated as it is. */
type Repeated = (cast: Cast) => Promise<{ readonly by: TestAccount; readonly params: JsonObject }>;

/** Repeats that change nothing (05 §13.13, §13.21, §13.28). */
const repeats: Readonly<Partial<Record<GroupMethodName, Repeated>>> = {
  'group.application.submit': async (cast) => ({ by: cast.eve, params: await applied(cast) }),
  'group.member.recovery.submit': async (cast) => ({ by: cast.ben, params: await asked(cast) }),
  'group.message.send': async ({ context, group, ben }) => {
    const params = group.message(ben, (await readHead(group, ben)).epoch);
    await context.expectOk(ben.caller, 'group.message.send', params);
    return { by: ben, params };
  },
};

function repeatChecks(method: GroupMethodName, made: Repeated): readonly Check[] {
  const { check, list } = checksOf(method);
  check(
    'hints-repeat',
    {
      source: '05 §13.13, §13.21, §13.28',
      title: 'an identical repeat tells nobody',
      transports: ['wss'],
    },
    async (context) => {
      const cast = await castOf(context);
      const { by, params } = await made(cast);
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
