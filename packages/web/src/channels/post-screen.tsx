import type { Channel, ChannelPostEntry } from '@posthouse/client';
import { useEffect, useId, useState } from 'preact/hooks';
import { Body } from '../parts/body.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Action, Field, Form, Screen } from '../parts/controls.tsx';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text } from './text.ts';

interface Found {
  readonly channel: Channel;
  readonly post: ChannelPostEntry | undefined;
}

/** One post: changing it, deleting it, reporting it. */
export function PostScreen({
  app,
  id,
  sequence,
}: {
  readonly app: App;
  readonly id: string;
  readonly sequence: number;
}) {
  const [found, setFound] = useState<Found | undefined>();
  const { channels } = app.account;
  useEffect(() => {
    void app.try(async () => {
      const [channel, [post]] = await Promise.all([
        channels.get(id),
        channels.listPosts(id, { after: sequence - 1, before: sequence + 1 }),
      ]);
      setFound({ channel, post });
    });
  }, [id, sequence]);
  const act = async (work: () => Promise<unknown>, notice = '') => {
    if (!(await app.try(work))) return;
    app.notice.value = notice;
    await Promise.all([app.changed(), app.opened.value?.refresh()]);
    show({ screen: 'chat', kind: 'channel', id });
  };
  if (found === undefined) return null;
  const { channel, post } = found;
  if (post === undefined) {
    return (
      <Screen title={text.post}>
        <p role="alert">{text.gone}</p>
      </Screen>
    );
  }
  const mayWrite = channel.role !== 'reader' && channel.descriptor.status === 'active';
  return (
    <Screen title={text.post}>
      {post.body && (
        <article class="theirs">
          <Body body={post.body} />
        </article>
      )}
      {mayWrite && (
        <Edit
          text={post.body?.text ?? ''}
          save={(changed) =>
            act(() =>
              channels.edit(id, sequence, {
                text: changed,
                contentType: post.body?.content_type ?? 'text/plain',
              }),
            )
          }
        />
      )}
      {mayWrite && (
        <Remove
          remove={(reason) =>
            act(() => channels.delete(id, sequence, reason === '' ? {} : { reason }))
          }
        />
      )}
      {channel.role !== 'owner' && (
        <Report
          send={(reason) => act(() => channels.report(id, sequence, { reason }), text.reported)}
        />
      )}
    </Screen>
  );
}

function Edit({
  text: before,
  save,
}: {
  readonly text: string;
  readonly save: (text: string) => Promise<void>;
}) {
  const [changed, setChanged] = useState(before);
  const id = useId();
  return (
    <section aria-label={text.edit}>
      <h2>{text.edit}</h2>
      <p class="field">
        <label class="hidden" for={id}>
          {text.edit}
        </label>
        <textarea
          id={id}
          rows={5}
          dir="auto"
          value={changed}
          onInput={({ currentTarget }) => setChanged(currentTarget.value)}
        />
        <small>{text.editText}</small>
      </p>
      <Action work={() => save(changed)}>{text.save}</Action>
    </section>
  );
}

function Remove({ remove }: { readonly remove: (reason: string) => Promise<void> }) {
  const [reason, setReason] = useState('');
  return (
    <Confirm label={text.remove} explanation={text.removeText} work={() => remove(reason.trim())}>
      <Field {...{ label: text.publicReason, value: reason, onValue: setReason }} />
    </Confirm>
  );
}

function Report({ send }: { readonly send: (reason: string) => Promise<void> }) {
  const [reason, setReason] = useState('');
  return (
    <Form label={text.report} canSubmit={reason.trim() !== ''} work={() => send(reason.trim())}>
      <h2>{text.report}</h2>
      <p>{text.reportText}</p>
      <Field {...{ label: text.reason, value: reason, onValue: setReason }} required />
    </Form>
  );
}
