import type { NamedMember } from '@posthouse/client';
import { mayBanAccount, mayRemoveMember } from '@posthouse/protocol';
import { Confirm } from '../parts/confirm.tsx';
import { Action } from '../parts/controls.tsx';
import { nameOf } from '../parts/names.ts';
import { show } from '../router.ts';
import { text as appText } from '../text/index.ts';
import type { GroupProps } from './group-view.ts';
import { memberName } from './names.ts';
import { text } from './text.ts';

/** Members with their roles, and who is banned. */
export function Members({ app, view, act }: GroupProps) {
  const { group, members } = view;
  const { id, state } = group;
  const bans = [...(state?.bans ?? [])];
  const role = state?.members.get(app.account.id)?.role ?? 'member';
  if (members.length === 0) return null;
  return (
    <>
      <h2 id="members">
        {text.members} ({members.length})
      </h2>
      <ul aria-labelledby="members" class="people">
        {members.map((member) => (
          <Member key={member.account} {...{ app, view, act, member }} />
        ))}
      </ul>
      {bans.length > 0 && (
        <>
          <h2 id="banned">{text.banned}</h2>
          <ul aria-labelledby="banned" class="people">
            {bans.map((account) => (
              <li key={account}>
                <bdi title={account}>{nameOf(app, account)}</bdi>
                {mayBanAccount(role, undefined) && (
                  <Action plain work={() => act(() => app.account.groups.unban(id, [account]))}>
                    {text.unban}
                  </Action>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

function Member({ app, view, act, member }: GroupProps & { readonly member: NamedMember }) {
  const { group, members } = view;
  const { id, state, membership, blocked } = group;
  const { groups, id: self } = app.account;
  const { account, role } = member;
  const own = state?.members.get(self)?.role ?? 'member';
  const isOpen = membership === 'member' && state?.status === 'active' && blocked === undefined;
  const isOther = account !== self;
  const mayRemove = isOther && isOpen && mayRemoveMember(own, role);
  const isOwner = isOther && isOpen && own === 'owner';
  // The key that a former member knows is of no use afterwards; only the owner can change it.
  const after = async () => {
    if (own === 'owner') await groups.rotate(id, { fresh: true });
  };
  const line = (
    <>
      <bdi title={account}>{isOther ? memberName(app, members, account) : nameOf(app, self)}</bdi>{' '}
      <span class="kind">{text.roles[role]}</span>
    </>
  );
  const person = isOther && (
    <button type="button" class="plain" onClick={() => show({ screen: 'person', id: account })}>
      {appText.kinds.person}
    </button>
  );
  if (!mayRemove && !isOwner) {
    return (
      <li>
        {line} {person}
      </li>
    );
  }
  const next = role === 'administrator' ? 'member' : 'administrator';
  return (
    <li>
      <details>
        <summary>{line}</summary>
        {person}
        {isOwner && (
          <>
            <Action work={() => act(() => groups.setRole(id, { account, role: next }))}>
              {next === 'administrator' ? text.makeAdministrator : text.makeMember}
            </Action>
            <Confirm
              label={text.handOver}
              explanation={text.handOverText}
              work={() => act(() => groups.transfer(id, account))}
            />
          </>
        )}
        {mayRemove && (
          <>
            <Confirm
              label={text.remove}
              explanation={text.removeText}
              work={() =>
                act(async () => {
                  await groups.remove(id, [account]);
                  await after();
                })
              }
            />
            <Confirm
              label={text.ban}
              explanation={text.banText}
              work={() =>
                act(async () => {
                  await groups.ban(id, [account]);
                  await after();
                })
              }
            />
          </>
        )}
      </details>
    </li>
  );
}
