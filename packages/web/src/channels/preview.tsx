import type { ChannelEntry, ChannelPreview } from '@posthouse/client';
import { visibleName, visibleText } from '@posthouse/client/visible-text';
import type { WorkerAccount } from '@posthouse/client/web';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { linkFault } from '../groups/link-fault.ts';
import { Body } from '../parts/body.tsx';
import { Action, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { shortId } from '../parts/names.ts';
import { closeShared, show } from '../router.ts';
import type { App } from '../state/app.ts';
import { briefTimeOf, text as common } from '../text/index.ts';
import { linesOf } from './entry-lines.ts';
import { text } from './text.ts';

/** Posts of a page. */
const pageSize = 30;

interface Read extends Pick<ChannelPreview, 'descriptor' | 'hasMore'> {
  readonly entries: readonly ChannelEntry[];
}

/** A channel that is not followed: what its host gives, verified, a page at a time. */
export function Preview({
  account,
  address,
  children,
}: {
  readonly account: WorkerAccount;
  readonly address: string;
  /** What can be done with the channel, by its ID; above the posts. */
  readonly children: (channelId: string) => ComponentChildren;
}) {
  const [read, setRead] = useState<Read | undefined>();
  const [fault, setFault] = useState<unknown>('');
  const readPage = async () => {
    const before = read?.entries[0]?.sequence;
    const range = { limit: pageSize, ...(before !== undefined && { before }) };
    try {
      const page = await account.channels.preview(address, range);
      setRead({ ...page, entries: [...page.entries, ...(read?.entries ?? [])] });
    } catch (error) {
      setFault(linkFault(error));
    }
  };
  useEffect(() => {
    void readPage();
  }, [address]);
  if (read === undefined) {
    return (
      <>
        {fault === '' && <p role="status">{text.reading}</p>}
        <div role="alert" class="fault">
          <Fault error={fault} />
        </div>
      </>
    );
  }
  const { descriptor, entries, hasMore } = read;
  const nameOf = (id: string) => (id === account.id ? common.you : shortId(id));
  return (
    <>
      <p>
        <strong dir="auto">{visibleName(descriptor.name)}</strong>
        <br />
        <small title={descriptor.creator}>{text.of(nameOf(descriptor.creator))}</small>
      </p>
      {descriptor.description !== undefined && (
        <p class="plain" dir="auto">
          {visibleText(descriptor.description)}
        </p>
      )}
      {descriptor.status === 'closed' && <p>{text.closed}</p>}
      {children(descriptor.channel_id)}
      {hasMore && (
        <Action plain work={readPage}>
          {text.earlier}
        </Action>
      )}
      {entries.every(({ kind }) => kind !== 'post') && <p>{text.noPosts}</p>}
      <ol class="posts" aria-label={common.messages}>
        {linesOf(entries, nameOf).map(({ order, note, sender, body, createdAt, mark }) =>
          note === undefined ? (
            <li key={order} class="theirs">
              <article>
                {body && <Body body={body} />}
                <footer>
                  <small>{sender}</small>
                  <time>{briefTimeOf(createdAt)}</time>
                  {mark !== undefined && <span class="status">{mark}</span>}
                </footer>
              </article>
            </li>
          ) : (
            <li key={order} class="note" dir="auto">
              {note}
            </li>
          ),
        )}
      </ol>
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
    </>
  );
}

/** A channel's link, opened by a person with an account. */
export function PreviewScreen({ app, address }: { readonly app: App; readonly address: string }) {
  const { account } = app;
  const follow = (id: string) =>
    app.try(async () => {
      await account.channels.follow(address);
      await app.changed();
      closeShared();
      show({ screen: 'chat', kind: 'channel', id });
    });
  return (
    <Screen title={text.title}>
      <Preview account={account} address={address}>
        {(id) => {
          const isFollowed = app.conversations.value.some((each) => each.id === id);
          return <Action work={() => follow(id)}>{isFollowed ? text.open : text.follow}</Action>;
        }}
      </Preview>
    </Screen>
  );
}
