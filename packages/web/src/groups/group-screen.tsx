import type { Group } from '@posthouse/client';
import { visibleText } from '@posthouse/client/visible-text';
import { isGroupManager } from '@posthouse/protocol';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Confirm } from '../parts/confirm.tsx';
import { Screen } from '../parts/controls.tsx';
import { shortId } from '../parts/names.ts';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text as common } from '../text/index.ts';
import { FactsForm, Nickname } from './facts-form.tsx';
import { type GroupProps, type GroupView, ownNickname } from './group-view.ts';
import { HandBack, hasLostChanges } from './hand-back.tsx';
import { Invite } from './invite.tsx';
import { Keys } from './keys.tsx';
import { Members } from './members.tsx';
import { groupName } from './names.ts';
import { Requests } from './requests.tsx';
import { text } from './text.ts';

/** A group: who is in it, who may come in, and what can be changed. */
export function GroupScreen({ app, id }: { readonly app: App; readonly id: string }) {
  const [view, setView] = useState<GroupView | undefined>();
  const reads = useRef(0);
  const read = async () => {
    const { groups } = app.account;
    reads.current += 1;
    const own = reads.current;
    // A slower answer to an earlier question must not take the place of a later one.
    const showNow = (next: (before: GroupView | undefined) => GroupView) => {
      if (own === reads.current) setView(next);
    };
    const [group, members] = await Promise.all([groups.get(id), groups.listMembers(id)]);
    const shown = { group, members, applications: [], recoveries: [] };
    showNow((before) => ({ ...shown, ...before, group, members }));
    const isOpen = group.membership === 'member' && group.state?.status === 'active';
    if (!isOpen || group.blocked !== undefined) return;
    const self = group.state.members.get(app.account.id);
    const [applications, recoveries] = await Promise.all([
      isGroupManager(self?.role ?? 'member') ? groups.listApplications(id) : [],
      groups.listRecoveries(id),
    ]);
    showNow(() => ({ group, members, applications, recoveries }));
  };
  // Again after each event of a group: this person's other devices and other members change it, too.
  const groups = app.rooms.value?.groups.value;
  const decisions = app.rooms.value?.decisions.value.get(id);
  useEffect(() => {
    void app.try(read);
  }, [id, groups, decisions]);
  const act: GroupProps['act'] = async (work) => {
    const isDone = await app.try(work);
    await app.try(read);
    await Promise.all([app.changed(), app.rooms.value?.recount(id), app.opened.value?.refresh()]);
    return isDone;
  };
  if (view === undefined) return null;
  return (
    <Screen title={groupName(view.group)}>
      <GroupContent {...{ app, view, act }} />
    </Screen>
  );
}

/** What the form of the facts shows: another event of the group leaves what was typed. */
function factsOf({ name, description, invite_policy }: NonNullable<Group['state']>): string {
  return JSON.stringify([name, description, invite_policy]);
}

function GroupContent({ app, view, act }: GroupProps) {
  const { group } = view;
  const { id, membership, state, blocked } = group;
  const isMember = membership === 'member';
  const isOpen = isMember && state?.status === 'active' && blocked === undefined;
  const isLost = hasLostChanges(group);
  const isOwner = state?.owner === app.account.id;
  const { groups } = app.account;
  return (
    <>
      {state?.description && (
        <p class="plain" dir="auto">
          {visibleText(state.description)}
        </p>
      )}
      {membership === 'applied' && <p>{text.waitingForApproval}</p>}
      {membership === 'ended' && state?.status !== 'closed' && <p>{text.notMember}</p>}
      {state?.status === 'closed' && <p>{text.closed}</p>}
      {blocked !== undefined && !isLost && (
        <div class="fault">
          {text.blocked}
          <details>
            <summary>{common.details}</summary>
            {visibleText(blocked.reason)}
          </details>
        </div>
      )}
      {(isLost || app.rooms.value?.restored.value.has(id)) && <HandBack app={app} group={group} />}
      {isMember && (
        <button type="button" onClick={() => show({ screen: 'chat', kind: 'group', id })}>
          {text.openGroup}
        </button>
      )}
      {isOpen && <Requests {...{ app, view, act }} />}
      {isOpen && <Invite {...{ app, view, act }} />}
      <Members {...{ app, view, act }} />
      {isOpen && <Nickname key={ownNickname(app, view)} {...{ app, view, act }} />}
      {isOpen && isOwner && <FactsForm key={factsOf(state)} {...{ app, view, act }} />}
      {isOpen && <Keys {...{ app, view, act }} />}
      <div class="endings">
        {isOpen && !isOwner && (
          <Confirm
            label={text.leave}
            explanation={text.leaveText}
            work={() => act(() => groups.leave(id))}
          />
        )}
        {isOpen && isOwner && <p>{text.ownerCannotLeave}</p>}
        {isOpen && isOwner && (
          <Confirm
            label={text.close}
            explanation={text.closeText}
            work={() => act(() => groups.close(id))}
          />
        )}
        {(!isMember || state?.status === 'closed' || (blocked !== undefined && !isLost)) && (
          <button
            type="button"
            onClick={async () => {
              const isEvenAsMember = isMember && { evenAsMember: true };
              if (await act(() => groups.forget(id, { ...isEvenAsMember })))
                show({ screen: 'list' });
            }}
          >
            {text.forget}
          </button>
        )}
      </div>
      <p class="id">{shortId(id)}</p>
    </>
  );
}
