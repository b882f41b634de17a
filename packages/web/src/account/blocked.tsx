import { Action } from '../parts/controls.tsx';
import { nameOf } from '../parts/names.ts';
import type { App } from '../state/app.ts';
import { p } from './person-text.ts';
import { SubScreen } from './sub-screen.tsx';

/** The accounts that the person blocked. */
export function Blocked({ app }: { readonly app: App }) {
  const blocked = app.contacts.value.filter(({ status }) => status === 'blocked');
  const unblock = async (id: string) => {
    if (await app.try(() => app.account.contacts.unblock(id))) await app.changed();
  };
  return (
    <SubScreen title={p.blocked}>
      <p>{blocked.length === 0 ? p.noneBlocked : `${p.blockedText} ${p.unblockText}`}</p>
      <ul class="people" aria-label={p.blocked}>
        {blocked.map(({ account }) => (
          <li key={account}>
            <bdi title={account}>{nameOf(app, account)}</bdi>{' '}
            <Action plain work={() => unblock(account)}>
              {p.unblock}
            </Action>
          </li>
        ))}
      </ul>
    </SubScreen>
  );
}
