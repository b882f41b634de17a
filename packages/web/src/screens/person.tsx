import { useState } from 'preact/hooks';
import { Action, Field, Screen } from '../parts/controls.tsx';
import { nameOf } from '../parts/names.ts';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';

/** Another account: what to call it, and the end of the contact. */
export function Person({ app, id }: { readonly app: App; readonly id: string }) {
  const contact = app.contacts.value.find(({ account }) => account === id);
  const [alias, setAlias] = useState(contact?.alias ?? '');
  const change = (work: () => Promise<unknown>) => async () => {
    if (!(await app.try(work))) return;
    await app.changed();
    history.back();
  };
  return (
    <Screen title={nameOf(app, id)}>
      <p class="id">{id}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void change(() => app.account.contacts.rename(id, alias.trim()))();
        }}
      >
        <Field {...{ label: text.localName, value: alias, onValue: setAlias }} />
        <button type="submit">{text.save}</button>
      </form>
      {contact?.status === 'active' && (
        <details>
          <summary>{text.removeContact}</summary>
          <p>{text.removeContactText}</p>
          <Action work={change(() => app.account.contacts.remove(id))}>{text.removeContact}</Action>
        </details>
      )}
    </Screen>
  );
}
