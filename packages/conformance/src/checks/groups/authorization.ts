/** Rules of all group methods: roles, heads of the chain, closed groups (05 §5.2, §6, §12.4). */

import { encodeBase64url, type GroupMethodName } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { type Check, checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { callTemplates, changeAndSign, prepareCall } from '../../groups/group-calls.ts';
import type { GroupFixture } from '../../groups/group-fixture.ts';
import { assertUnchanged } from '../../groups/group-reader.ts';
import type { Answer } from '../../transport/answer.ts';

type CheckList = ReturnType<typeof checksOf>;

/** Checks which callers a method accepts, and in which state of the group. */
function authorizationChecks(method: GroupMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed, writes } = callTemplates[method];
  if (method === 'group.create') return list;
  if (writes) {
    check(
      'closed',
      { source: '05 §11.4, §12.5', title: 'answers state_conflict after the group is closed' },
      async (context) => {
        const { fixture, by, again } = await prepareCall(context, method);
        await fixture.group.close();
        await context.expectError(by.caller, { method, params: again() }, 'state_conflict');
      },
    );
  }

  check(
    'unknown-group',
    { source: '05 §12.5', title: 'answers not_found for an unknown group' },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const group_id = `grp_${encodeBase64url(nodeRandom(16))}`;
      const moved =
        method === 'group.subscribe'
          ? { group_ids: [group_id] }
          : changeAndSign({ fixture, by }, { params, signed }, (part) => ({ ...part, group_id }));
      await context.expectError(by.caller, { method, params: moved }, 'not_found');
    },
  );
  outsiderChecks(method, check);
  chainChecks(method, check);
  roleChecks(method, check);
  return list;
}

/** Checks that an error reveals nothing to accounts that are not members. */
function outsiderChecks(method: GroupMethodName, check: CheckList['check']): void {
  check(
    'outsiders',
    {
      source: '05 §6, §12.4',
      title: 'answers strangers and banned members alike with forbidden, and reveals nothing',
    },
    async (context) => {
      const { fixture, again } = await prepareCall(context, method, { members: 1, strangers: 1 });
      const banned = fixture.members.at(-1) as TestAccount;
      const stranger = fixture.strangers.at(-1) as TestAccount;
      await fixture.group.ban([banned]);
      const byBanned = { method, params: again(banned) };
      const refused = await context.expectError(banned.caller, byBanned, 'forbidden');
      assertNothingRevealed(fixture, refused);
      // A stranger with an invitation may apply.
      if (method === 'group.application.submit') return;
      const byStranger = { method, params: again(stranger) };
      const answer = await context.expectError(stranger.caller, byStranger, 'forbidden');
      assertEqual(
        answer.message,
        refused.message,
        'the same message for a banned account as for a stranger',
      );
      assertNothingRevealed(fixture, answer);
    },
  );
}

/** Checks that a chain event is accepted on the current head only (05 §5.2). */
function chainChecks(method: GroupMethodName, check: CheckList['check']): void {
  const { signed, chained } = callTemplates[method];
  if (chained === undefined) return;
  check(
    'head',
    {
      source: '05 §5.1, §5.2',
      title: 'answers state_conflict on any head but the last, and appends nothing',
    },
    async (context) => {
      const { fixture, by, params, again } = await prepareCall(context, method);
      const on = (prev_hash: string) =>
        changeAndSign({ fixture, by }, { params, signed }, (part) => ({ ...part, prev_hash }));
      await fixture.group.update({ description: 'meanwhile' });
      await assertUnchanged(fixture.group, fixture.owner, () => {
        const stale = [
          ['the previous head', params],
          ['an unknown digest', on(`sha256:${encodeBase64url(nodeRandom(32))}`)],
        ] as const;
        return assertAllRefused({ by, method, codes: ['state_conflict'] }, stale);
      });
      await context.expectOk(by.caller, method, again());
    },
  );

  check(
    'race',
    { source: '05 §5.2', title: 'appends one of two events on the same head' },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const { group, owner } = fixture;
      const rival = group.chainBody('group.update', { description: 'rival' }, owner);
      const second = await context.deviceSession(owner.device);
      const answers = await Promise.all([
        by.caller.call(method, params),
        second.call('group.update', rival),
      ]);
      assertEqual(answers.filter(({ ok }) => ok).length, 1, 'exactly one succeeds');
      for (const answer of answers) {
        // The first event may take the role that the second one needs.
        const code = answer.ok ? 'state_conflict' : answer.code;
        assertConforms(
          code === 'state_conflict' || code === 'forbidden',
          `state_conflict or forbidden for the other, not ${code}`,
        );
      }
    },
  );
}

/** Checks the role that a method requires (05 §6). */
function roleChecks(method: GroupMethodName, check: CheckList['check']): void {
  const { role } = callTemplates[method];
  if (role === undefined) return;
  const allowed = role === 'owner' ? 'the owner alone' : 'owner and administrators';
  check(
    'roles',
    { source: '05 §6', title: `serves ${allowed}, and answers all others with forbidden` },
    async (context) => {
      const { fixture, again } = await prepareCall(context, method, {
        members: 1,
        administrators: 1,
      });
      const [administrator] = fixture.administrators as [TestAccount];
      const member = fixture.members.at(-1) as TestAccount;
      const refused = role === 'owner' ? [member, administrator] : [member];
      for (const by of refused) {
        await context.expectError(by.caller, { method, params: again(by) }, 'forbidden');
      }
      const by = role === 'owner' ? fixture.owner : administrator;
      await context.expectOk(by.caller, method, again(by));
    },
  );
}

/** Asserts that an error contains nothing of a group but what the caller sent (05 §12.4). */
function assertNothingRevealed(
  { group, owner }: GroupFixture,
  answer: Answer & { ok: false },
): void {
  const { name } = group.create;
  const text = JSON.stringify([answer.message, answer.data ?? null]);
  for (const secret of [name, owner.account.id, group.head, group.commitment]) {
    assertConforms(
      !text.includes(secret),
      `an error without "${secret}", which the caller did not send`,
    );
  }
}

export const groupAuthorizationChecks = (Object.keys(callTemplates) as GroupMethodName[]).flatMap(
  authorizationChecks,
);
