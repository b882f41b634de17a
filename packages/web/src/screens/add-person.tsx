import { useEffect, useState } from 'preact/hooks';
import { Action, Field, Handout, Screen } from '../parts/controls.tsx';
import { shortId } from '../parts/names.ts';
import { invite, linkTo, show } from '../router.ts';
import { type App, messageOf } from '../state/app.ts';
import { text } from '../text/index.ts';

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
      <h2 id="own-invite">{text.yourInvite}</h2>
      <p>{text.inviteText}</p>
      {link === '' ? (
        <Action
          work={() =>
            app.try(async () =>
              setLink(linkTo('invite', (await app.account.contacts.invite()).text)),
            )
          }
        >
          {text.makeInvite}
        </Action>
      ) : (
        <Handout value={link} title={text.shareTitle} />
      )}
    </section>
  );
}

function OpenInvite({ app }: { readonly app: App }) {
  const [pasted, setPasted] = useState('');
  const [name, setName] = useState('');
  const [note, setNote] = useState('');
  const [inviter, setInviter] = useState('');
  const [fault, setFault] = useState('');

  const read = async (value: string) => {
    setPasted(value);
    setFault('');
    setInviter('');
    const code = textOf(value);
    if (code === '') return;
    try {
      setInviter((await app.account.contacts.preview(code)).inviter);
    } catch {
      setFault(text.notAnInvite);
    }
  };
  useEffect(() => {
    if (invite.value !== '') void read(invite.value);
  }, []);
  const ask = async () => {
    try {
      await app.account.contacts.join(textOf(pasted), note === '' ? {} : { note });
      if (name.trim() !== '') await app.account.contacts.rename(inviter, name.trim());
      invite.value = '';
      await app.changed();
      app.notice.value = text.asked;
      show({ screen: 'list' });
    } catch (error) {
      setFault(messageOf(error));
    }
  };

  return (
    <section aria-labelledby="their-invite">
      <h2 id="their-invite">{text.openInvite}</h2>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <Field
          {...{ label: text.pasteInvite, value: pasted, onValue: (value) => void read(value) }}
          required
        />
        {inviter !== '' && (
          <>
            <p>
              {text.inviteFrom} <span title={inviter}>{shortId(inviter)}</span>
            </p>
            <Field {...{ label: text.localName, value: name, onValue: setName }} />
          </>
        )}
        <Field {...{ label: text.yourNote, value: note, onValue: setNote }} />
        <button type="submit" disabled={inviter === ''}>
          {text.ask}
        </button>
        <p role="alert" class="fault">
          {fault}
        </p>
      </form>
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
