/** Who may call the group methods, and when: what holds of all alike (05 §5.2, §6, §12.4). */

import { encodeBase64url, type GroupMethodName } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms } from '../../assert.ts';
import { type Check, checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';
import { callTemplates, changeAndSign, prepareCall } from '../../groups/group-calls.ts';
import type { GroupFixture } from '../../groups/group-fixture.ts';
import { assertUnchanged } from '../../groups/group-reader.ts';
import type { Answer } from '../../transport/answer.ts';

type CheckList = ReturnType<typeof checksOf>;

/** The checks of a method's gate. */
function gateChecks(method: GroupMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { signed, writes } = callTemplates[method];
  const transports =
    method === 'group.subscribe' ? (['wss'] as const) : (['https', 'wss'] as const);
  if (method === 'group.create') return list;
  if (writes) {
    check(
      'closed',
      { source: '05 §11.4, §12.5', title: 'is state_conflict once the group is closed' },
      async (context) => {
        const { fixture, by, again } = await prepareCall(context, method);
        await fixture.group.close();
        await context.expectError(by.caller, { method, params: again() }, 'state_conflict');
      },
    );
  }

  check(
    'unknown-group',
    { source: '05 §12.5', title: 'is not_found for a group that is not here', transports },
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
  outsiderChecks(method, { check, transports });
  chainChecks(method, check);
  roleChecks(method, check);
  return list;
}

/** Who is not in the group is told nothing of it. */
function outsiderChecks(
  method: GroupMethodName,
  { check, transports }: Pick<CheckList, 'check'> & Pick<Check, 'transports'>,
): void {
  check(
    'outsiders',
    {
      source: '05 §6, §12.4',
      title: 'is forbidden to strangers and banned members alike, and tells neither anything',
      transports,
    },
    async (context) => {
      const { fixture, again } = await prepareCall(context, method, { members: 1, strangers: 1 });
      const banned = fixture.members.at(-1) as TestAccount;
      const stranger = fixture.strangers.at(-1) as TestAccount;
      await fixture.group.ban([banned]);
      const byBanned = { method, params: again(banned) };
      const refused = await context.expectError(banned.caller, byBanned, 'forbidden');
      demandSilence(fixture, refused);
      // With its invitation a stranger may apply.
      if (method === 'group.application.submit') return;
      const byStranger = { method, params: again(stranger) };
      const answer = await context.expectError(stranger.caller, byStranger, 'forbidden');
      assertConforms(answer.message === refused.message, 'a ban looks like no membership');
      demandSilence(fixture, answer);
    },
  );
}

/** Links of the chain: on its head, or not at all (05 §5.2). */
function chainChecks(method: GroupMethodName, check: CheckList['check']): void {
  const { signed, chained } = callTemplates[method];
  if (chained === undefined) return;
  check(
    'head',
    {
      source: '05 §5.1, §5.2',
      title: 'is state_conflict on any other head than the last, and appends nothing',
    },
    async (context) => {
      const { fixture, by, params, again } = await prepareCall(context, method);
      const on = (prev_hash: string) =>
        changeAndSign({ fixture, by }, { params, signed }, (part) => ({ ...part, prev_hash }));
      await fixture.group.update({ description: 'meanwhile' });
      await assertUnchanged(fixture.group, fixture.owner, () => {
        const stale = [
          ['the head before', params],
          ['the digest of nothing here', on(`sha256:${encodeBase64url(nodeRandom(32))}`)],
        ] as const;
        return assertAllRefused({ by, method, codes: ['state_conflict'] }, stale);
      });
      await context.expectOk(by.caller, method, again());
    },
  );

  check(
    'race',
    { source: '05 §5.2', title: 'of two links on one head no more than one is appended' },
    async (context) => {
      const { fixture, by, params } = await prepareCall(context, method);
      const { group, owner } = fixture;
      const rival = group.chainBody('group.update', { description: 'rival' }, owner);
      const second = await context.deviceSession(owner.device);
      const answers = await Promise.all([
        by.caller.call(method, params),
        second.call('group.update', rival),
      ]);
      assertConforms(answers.filter(({ ok }) => ok).length === 1, 'exactly one succeeds');
      for (const answer of answers) {
        // Whoever gave its role away by the first may not make the second.
        const code = answer.ok ? 'state_conflict' : answer.code;
        assertConforms(
          code === 'state_conflict' || code === 'forbidden',
          `a conflict, not ${code}`,
        );
      }
    },
  );
}

/** The roles a method takes (05 §6). */
function roleChecks(method: GroupMethodName, check: CheckList['check']): void {
  const { role } = callTemplates[method];
  if (role === undefined) return;
  const allowed = role === 'owner' ? 'the owner alone' : 'owner and administrators';
  check(
    'roles',
    { source: '05 §6', title: `is for ${allowed}; to all others it is forbidden` },
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

/** Nothing of a group in an error but what the caller sent (05 §12.4). */
function demandSilence({ group, owner }: GroupFixture, answer: Answer & { ok: false }): void {
  const { name } = group.create;
  const told = JSON.stringify([answer.message, answer.data ?? null]);
  for (const secret of [name, owner.account.id, group.head, group.commitment]) {
    assertConforms(!told.includes(secret), 'an error tells an outsider something of the group');
  }
}

export const groupGateChecks = (Object.keys(callTemplates) as GroupMethodName[]).flatMap(
  gateChecks,
);
