import { visibleName, visibleText } from '@posthouse/client/visible-text';
import { isRefusal } from '@posthouse/client/web';
import type { GroupState } from '@posthouse/protocol';
import { useEffect, useState } from 'preact/hooks';
import { PreviewScreen } from '../channels/preview.tsx';
import { Action, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { closeShared, shared, show } from '../router.ts';
import type { App } from '../state/app.ts';
import { linkFault } from './link-fault.ts';
import { text } from './text.ts';

/** A link that somebody shared: to a group, or to a channel. */
export function SharedLinkScreen({ app }: { readonly app: App }) {
  const link = shared.value;
  if (link === undefined) return <BadLink />;
  if (link.kind === 'group') return <GroupLink app={app} address={link.address} />;
  return <PreviewScreen app={app} address={link.address} />;
}

function BadLink() {
  return (
    <Screen title={text.sharedGroup}>
      <p role="alert">{text.badLink}</p>
    </Screen>
  );
}

/** The host that an address names; the SDK checked the rest when it was previewed. */
function relayOf(address: string): string | undefined {
  try {
    const [, encoded = ''] = /:([\w-]+)$/.exec(address) ?? [];
    const json = atob(encoded.replaceAll('-', '+').replaceAll('_', '/'));
    return (JSON.parse(json) as { readonly relay_id?: string }).relay_id;
  } catch {
    return undefined;
  }
}

/** What a group's host says of it, and the way in. */
function GroupLink({ app, address }: { readonly app: App; readonly address: string }) {
  const [found, setFound] = useState<GroupState | undefined>();
  const [fault, setFault] = useState<unknown>('');
  const { groups } = app.account;
  useEffect(() => {
    groups.preview(address).then(setFound, (error) => setFault(linkFault(error)));
  }, [address]);
  const known = app.rooms.value?.groups.value.find(({ id }) => id === found?.group_id);
  const close = () => {
    app.rooms.value?.forget(address);
    closeShared();
    show({ screen: 'list' });
  };
  const apply = async () => {
    try {
      const { id } = await groups.join(address);
      app.rooms.value?.nameApplication(id, found?.name ?? '');
      await app.rooms.value?.refresh();
      app.notice.value = text.appliedNow;
      close();
    } catch (error) {
      const relayId = relayOf(address);
      const groupId = found?.group_id;
      const isMember = isRefusal(error, 'state_conflict');
      if (!isMember || relayId === undefined || groupId === undefined) throw error;
      // A member whose devices were all lost: the group is read again, and asked for its key.
      await groups.add({ groupId, relayId });
      await app.rooms.value?.refresh();
      close();
      show({ screen: 'group', id: groupId });
    }
  };
  return (
    <Screen title={text.sharedGroup}>
      {found !== undefined && (
        <>
          <p>
            <strong dir="auto">{visibleName(found.name)}</strong>, {text.size(found.member_count)}
          </p>
          {found.description !== '' && (
            <p class="plain" dir="auto">
              {visibleText(found.description)}
            </p>
          )}
          <small>{text.sharedHint}</small>
        </>
      )}
      {found?.status === 'closed' && <p>{text.closed}</p>}
      {known?.membership === 'member' && found !== undefined ? (
        <>
          <p>{text.isMember}</p>
          <Action
            work={async () => {
              close();
              show({ screen: 'chat', kind: 'group', id: found.group_id });
            }}
          >
            {text.openGroup}
          </Action>
        </>
      ) : (
        <div class="row">
          {found?.status === 'active' && <Action work={() => app.try(apply)}>{text.apply}</Action>}
          <Action plain work={async () => close()}>
            {text.decline}
          </Action>
        </div>
      )}
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
    </Screen>
  );
}
