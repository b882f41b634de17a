import type { Group } from '@posthouse/client';
import { runHandBack } from '../engine/hand-back.ts';
import { Action } from '../parts/controls.tsx';
import type { Host } from '../state/host.ts';
import { isLocked } from '../state/stores.ts';
import { text } from './text.ts';

/** Whether a group is blocked because its host was restored and lost changes (05 §5.6). */
export function hasLostChanges({ blocked }: Pick<Group, 'blocked'>): boolean {
  return blocked?.code === 'host_restored';
}

/** A host that was put back to an earlier state (05 §5.6): what it means, and what the owner can do. */
export function HandBack({ app, group }: { readonly app: Host; readonly group: Group }) {
  const isOwner = group.state?.owner === app.account.id;
  const isLost = hasLostChanges(group);
  const done = () => {
    const left = new Set(app.rooms.value?.restored.value);
    left.delete(group.id);
    app.rooms.value?.setRestored(left);
  };
  return (
    <div class="banner">
      <p>{text.wentBack}</p>
      {isOwner && <p>{isLocked() ? text.wentBackLocked : text.wentBackOwner}</p>}
      {!isOwner && isLost && <p>{text.wentBackMember}</p>}
      <div class="row">
        {isOwner && !isLocked() && (
          <Action
            work={() =>
              app.try(async () => {
                await runHandBack(app.config, group.id);
                app.notice.value = text.handedBack;
                done();
                await app.rooms.value?.refresh();
              })
            }
          >
            {text.handBack}
          </Action>
        )}
        {!isLost && (
          <Action plain work={async () => done()}>
            {text.understood}
          </Action>
        )}
      </div>
    </div>
  );
}
