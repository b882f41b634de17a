import type { IssuedInvite } from '@posthouse/client';
import { mayCreateInvite, mayRevokeInvite } from '@posthouse/protocol';
import { useId, useState } from 'preact/hooks';
import { LinkCode } from '../account/link-code.tsx';
import { Action, Form } from '../parts/controls.tsx';
import { nameOf } from '../parts/names.ts';
import { linkTo } from '../router.ts';
import { dayOf } from '../text/index.ts';
import type { GroupProps } from './group-view.ts';
import { groupName } from './names.ts';
import { text } from './text.ts';

/** Ways into the group: a message to a contact, or a link for anyone. */
export function Invite({ app, view, act }: GroupProps) {
  const { group } = view;
  const { id, state } = group;
  const { groups, messages, id: self } = app.account;
  const [link, setLink] = useState('');
  const [invitee, setInvitee] = useState('');
  const [invites, setInvites] = useState<readonly IssuedInvite[] | undefined>();
  const selectId = useId();
  const role = state?.members.get(self)?.role ?? 'member';
  const policy = state?.invite_policy ?? 'administrators';
  const mayInvite = mayCreateInvite(role, policy, 'targeted');
  if (!mayInvite) return null;
  const outside = app.contacts.value.filter(
    ({ account, status }) =>
      status === 'active' && state?.members.has(account) === false && !state.bans.has(account),
  );
  const list = async () => setInvites(await groups.listInvites(id));
  const makeLink = async () => {
    setLink(linkTo('group', (await groups.invite(id)).text));
    if (invites !== undefined) await list();
  };
  const inviteContact = async () => {
    const invitation = await groups.invite(id, { invitee });
    const words = text.invitation(groupName(group));
    await messages.post(invitee, { text: `${words}\n${linkTo('group', invitation.text)}` });
    app.notice.value = text.invited;
    setInvitee('');
  };
  return (
    <section aria-label={text.invite}>
      <h2>{text.invite}</h2>
      {outside.length > 0 && (
        <Form class="row" label={text.inviteContact} work={() => act(inviteContact)}>
          <label class="hidden" for={selectId}>
            {text.inviteContact}
          </label>
          <select
            id={selectId}
            value={invitee}
            required
            onChange={({ currentTarget }) => setInvitee(currentTarget.value)}
          >
            <option value="">{text.choose}</option>
            {outside.map(({ account }) => (
              <option key={account} value={account}>
                {nameOf(app, account)}
              </option>
            ))}
          </select>
        </Form>
      )}
      {mayCreateInvite(role, policy, 'public') && (
        <>
          <p>{text.inviteLinkText}</p>
          {link === '' ? (
            <Action work={() => app.try(makeLink)}>{text.inviteLink}</Action>
          ) : (
            <LinkCode link={link} title={text.sharedGroup} />
          )}
        </>
      )}
      <details
        onToggle={({ currentTarget }) => {
          if (currentTarget.open) void app.try(list);
        }}
      >
        <summary>{text.openLinks}</summary>
        <ul class="people">
          {invites?.map(({ invite, uses }) => (
            <li key={invite.invite_id}>
              <span>
                {invite.invitee !== undefined && <bdi>{nameOf(app, invite.invitee)}, </bdi>}
                {text.until(dayOf(invite.expires_at))}, {text.uses(uses)}
              </span>
              {mayRevokeInvite(role, invite.inviter === self) && (
                <Action
                  plain
                  work={() =>
                    app.try(async () => {
                      await groups.revokeInvite(id, invite.invite_id);
                      await list();
                    })
                  }
                >
                  {text.revoke}
                </Action>
              )}
            </li>
          ))}
        </ul>
      </details>
    </section>
  );
}
