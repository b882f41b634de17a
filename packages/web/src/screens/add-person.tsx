import { useEffect, useRef, useState } from 'preact/hooks';
import { LinkCode } from '../account/link-code.tsx';
import { Action, Field, Form, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { shortId } from '../parts/names.ts';
import { invite, linkTo, show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';
import { own } from '../text/own.ts';

/** Two ways to a conversation: an invite of one's own, or that of somebody else. */
export function AddPerson({ app }: { readonly app: App }) {
  return (
    <Screen title={text.add}>
      <OwnInvite app={app} />
      <OpenInvite app={app} />
    </Screen>
  );
}

function OwnInvite({ app }: { readonly app: App }) {
  const [link, setLink] = useState('');
  return (
    <section aria-labelledby="own-invite">
      <h2 id="own-invite">{own.yourInvite}</h2>
      <p>{own.inviteText}</p>
      {link === '' ? (
        <Action
          work={() =>
            app.try(async () =>
              setLink(linkTo('invite', (await app.account.contacts.invite()).text)),
            )
          }
        >
          {own.makeInvite}
        </Action>
      ) : (
        <LinkCode link={link} title={own.shareTitle} label={own.yourInvite} />
      )}
    </section>
  );
}

function OpenInvite({ app }: { readonly app: App }) {
  const [pasted, setPasted] = useState('');
  const [name, setName] = useState('');
  const [note, setNote] = useState('');
  const [inviter, setInviter] = useState('');
  const [fault, setFault] = useState<unknown>('');
  const reads = useRef(0);

  const read = async (value: string) => {
    reads.current += 1;
    const run = reads.current;
    setPasted(value);
    setFault('');
    setInviter('');
    const code = textOf(value);
    if (code === '') return;
    const found = await app.account.contacts.preview(code).catch(() => undefined);
    // Something else may have been pasted meanwhile.
    if (run !== reads.current) return;
    if (found === undefined) setFault(own.notAnInvite);
    else setInviter(found.inviter);
  };
  const opened = invite.value;
  useEffect(() => {
    if (opened !== '') void read(opened);
  }, [opened]);
  const ask = async () => {
    try {
      await app.account.contacts.join(textOf(pasted), note === '' ? {} : { note });
      if (name.trim() !== '') await app.account.contacts.rename(inviter, name.trim());
      // One that was opened meanwhile is not used yet.
      if (invite.value === opened) invite.value = '';
      await app.changed();
      app.notice.value = own.asked;
      show({ screen: 'list' });
    } catch (error) {
      setFault(error);
    }
  };

  return (
    <section aria-labelledby="their-invite">
      <h2 id="their-invite">{own.openInvite}</h2>
      <Form label={own.ask} canSubmit={inviter !== ''} work={ask}>
        <Field
          {...{ label: own.pasteInvite, value: pasted, onValue: (value) => void read(value) }}
          required
        />
        {inviter !== '' && (
          <>
            <p>
              {own.inviteFrom} <span title={inviter}>{shortId(inviter)}</span>
            </p>
            <Field {...{ label: text.localName, value: name, onValue: setName }} />
          </>
        )}
        <Field {...{ label: own.yourNote, value: note, onValue: setNote }} />
      </Form>
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
    </section>
  );
}

/** The invite's text, of the link that carries it or as it stands. */
function textOf(pasted: string): string {
  const [, encoded] = /#invite=(.+)$/.exec(pasted.trim()) ?? [];
  try {
    return encoded === undefined ? pasted.trim() : decodeURIComponent(encoded);
  } catch {
    return '';
  }
}
