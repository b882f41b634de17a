import { mayApproveRecovery, mayRejectRecovery } from '@posthouse/protocol';
import { Action } from '../parts/controls.tsx';
import type { GroupProps } from './group-view.ts';
import { memberName } from './names.ts';
import { text } from './text.ts';

/** Who asks to join, and who asks for new keys (05 §13.15, §13.23). */
export function Requests({ app, view, act }: GroupProps) {
  const { group, members, applications, recoveries } = view;
  const { groups, id: self } = app.account;
  const { id, state } = group;
  const own = state?.members.get(self)?.role ?? 'member';
  const others = recoveries.flatMap(({ request: { account } }) => {
    const role = state?.members.get(account)?.role;
    const requester = role && { role, isSelf: account === self };
    return requester && !requester.isSelf && mayRejectRecovery(own, requester)
      ? [{ account, mayApprove: mayApproveRecovery(own, requester) }]
      : [];
  });
  if (applications.length + others.length === 0) return null;
  const name = (account: string) => (
    <p>
      <bdi title={account}>
        <strong>{memberName(app, members, account)}</strong>
      </bdi>{' '}
    </p>
  );
  return (
    <section aria-label={text.waiting}>
      <h2>{text.waiting}</h2>
      <ul>
        {applications.map(({ application: { account } }) => (
          <li key={account} class="request">
            {name(account)}
            <p>{text.wantsIn}</p>
            <div class="row">
              <Action work={() => act(() => groups.approve(id, [account]))}>{text.approve}</Action>
              <Action plain work={() => act(() => groups.reject(id, [account]))}>
                {text.refuse}
              </Action>
            </div>
          </li>
        ))}
        {others.map(({ account, mayApprove }) => (
          <li key={account} class="request">
            {name(account)}
            <p>
              {text.wantsAccess}. {text.askFirst}
            </p>
            <div class="row">
              {mayApprove && (
                <Action work={() => act(() => groups.approveRecovery(id, [account]))}>
                  {text.giveAccess}
                </Action>
              )}
              <Action plain work={() => act(() => groups.rejectRecovery(id, [account]))}>
                {text.refuse}
              </Action>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
