import type { Channel } from '@posthouse/client';
import { visibleName, visibleText } from '@posthouse/client/visible-text';
import { useEffect, useId, useState } from 'preact/hooks';
import { LinkCode } from '../account/link-code.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Action, Field, Form, Screen } from '../parts/controls.tsx';
import { nameOf, shortId } from '../parts/names.ts';
import { linkTo, show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text } from './text.ts';

interface ChannelProps {
  readonly app: App;
  readonly channel: Channel;
  readonly act: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** A channel: its link, who may post, and what its owner can change. */
export function ChannelScreen({ app, id }: { readonly app: App; readonly id: string }) {
  const [channel, setChannel] = useState<Channel | undefined>();
  const read = async () => setChannel(await app.account.channels.get(id));
  const listed = app.conversations.value;
  useEffect(() => {
    void app.try(read);
  }, [id, listed]);
  const act: ChannelProps['act'] = async (work) => {
    const isDone = await app.try(work);
    await app.try(read);
    await Promise.all([app.changed(), app.opened.value?.refresh()]);
    return isDone;
  };
  if (channel === undefined) return null;
  const { descriptor, role, link, followState } = channel;
  const { channels } = app.account;
  const isOwner = role === 'owner' && descriptor.status === 'active';
  return (
    <Screen title={visibleName(descriptor.name)}>
      {descriptor.description !== undefined && (
        <p class="plain" dir="auto">
          {visibleText(descriptor.description)}
        </p>
      )}
      {descriptor.status === 'closed' && <p>{text.closed}</p>}
      {followState === 'followed' ? (
        <button type="button" onClick={() => show({ screen: 'chat', kind: 'channel', id })}>
          {text.open}
        </button>
      ) : (
        <Action work={() => act(() => channels.follow(link))}>{text.follow}</Action>
      )}
      <section aria-label={text.link}>
        <h2>{text.link}</h2>
        <p>{text.linkText}</p>
        <LinkCode link={linkTo('channel', link)} title={text.link} />
      </section>
      <Writers {...{ app, channel, act }} />
      {isOwner && <FactsForm key={descriptor.revision} {...{ app, channel, act }} />}
      <div class="endings">
        {followState === 'followed' && (
          <Confirm
            label={text.unfollow}
            explanation={text.unfollowText}
            work={async () => {
              if (await act(() => channels.unfollow(id))) show({ screen: 'list' });
            }}
          />
        )}
        {isOwner && (
          <Confirm
            label={text.close}
            explanation={text.closeText}
            work={() => act(() => channels.close(id))}
          />
        )}
      </div>
      <p class="id">{shortId(id)}</p>
    </Screen>
  );
}

/** The owner and the moderators; the owner chooses them among the contacts. */
function Writers({ app, channel, act }: ChannelProps) {
  const { id, descriptor, role } = channel;
  const { creator, moderators = [], status } = descriptor;
  const [chosen, setChosen] = useState('');
  const selectId = useId();
  const isOwner = role === 'owner' && status === 'active';
  const others = app.contacts.value.filter(
    (contact) => contact.status === 'active' && !moderators.includes(contact.account),
  );
  const choose = (accounts: readonly string[]) =>
    act(() =>
      app.account.channels.update(id, { moderators: accounts.length === 0 ? null : accounts }),
    );
  return (
    <section aria-label={text.writers}>
      <h2>{text.writers}</h2>
      <ul class="people">
        <li>
          <span>
            <bdi title={creator}>{nameOf(app, creator)}</bdi> <span class="kind">{text.owner}</span>
          </span>
        </li>
        {moderators.map((account) => (
          <li key={account}>
            <span>
              <bdi title={account}>{nameOf(app, account)}</bdi>{' '}
              <span class="kind">{text.moderator}</span>
            </span>
            {isOwner && (
              <Action plain work={() => choose(moderators.filter((each) => each !== account))}>
                {text.removeModerator}
              </Action>
            )}
          </li>
        ))}
      </ul>
      {isOwner && others.length > 0 && (
        <Form
          class="row"
          label={text.addModerator}
          work={async () => {
            await choose([...moderators, chosen]);
            setChosen('');
          }}
        >
          <label class="hidden" for={selectId}>
            {text.addModerator}
          </label>
          <select
            id={selectId}
            value={chosen}
            required
            onChange={({ currentTarget }) => setChosen(currentTarget.value)}
          >
            <option value="">{text.choose}</option>
            {others.map(({ account }) => (
              <option key={account} value={account}>
                {nameOf(app, account)}
              </option>
            ))}
          </select>
        </Form>
      )}
    </section>
  );
}

function FactsForm({ app, channel: { id, descriptor }, act }: ChannelProps) {
  const [name, setName] = useState(descriptor.name);
  const [description, setDescription] = useState(descriptor.description ?? '');
  const save = () => {
    const said = description.trim() === '' ? null : description.trim();
    return act(() => app.account.channels.update(id, { name: name.trim(), description: said }));
  };
  return (
    <Form label={text.save} work={save}>
      <h2>{text.facts}</h2>
      <Field {...{ label: text.name, value: name, onValue: setName }} required />
      <Field {...{ label: text.description, value: description, onValue: setDescription }} />
    </Form>
  );
}
