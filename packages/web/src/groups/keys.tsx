import { useState } from 'preact/hooks';
import { Action } from '../parts/controls.tsx';
import { dayOf } from '../text/index.ts';
import type { GroupProps } from './group-view.ts';
import { text } from './text.ts';

/** The group's key: changing it, and asking for it again if it is lost on all devices. */
export function Keys({ app, view, act }: GroupProps) {
  const { group, recoveries } = view;
  const { groups, id: self } = app.account;
  const { id, state, hasKey } = group;
  const own = recoveries.find(({ request }) => request.account === self);
  const [until, setUntil] = useState(own?.expires_at ?? 0);
  const isOwner = state?.owner === self;
  return (
    <section aria-label={text.keys}>
      {(isOwner || !hasKey) && <h2>{text.keys}</h2>}
      {isOwner && hasKey && (
        <>
          <p>{text.keysText}</p>
          <Action
            work={() =>
              act(async () => {
                await groups.rotate(id);
                app.notice.value = text.rotated;
              })
            }
          >
            {text.rotate}
          </Action>
        </>
      )}
      {!hasKey && <p>{text.recoverText}</p>}
      {!hasKey && until === 0 && (
        <Action work={() => act(async () => setUntil(await groups.requestRecovery(id)))}>
          {text.recover}
        </Action>
      )}
      {!hasKey && until > 0 && <p role="status">{text.recoverySent(dayOf(until))}</p>}
    </section>
  );
}
