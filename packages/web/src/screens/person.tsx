import { useState } from 'preact/hooks';
import { Action, Field, Form, Screen } from '../parts/controls.tsx';
import { nameOf } from '../parts/names.ts';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';
import { own } from '../text/own.ts';

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
      <Form label={text.save} work={change(() => app.account.contacts.rename(id, alias.trim()))}>
        <Field {...{ label: text.localName, value: alias, onValue: setAlias }} />
      </Form>
      {contact?.status === 'active' && (
        <details>
          <summary>{own.removeContact}</summary>
          <p>{own.removeContactText}</p>
          <Action work={change(() => app.account.contacts.remove(id))}>{own.removeContact}</Action>
        </details>
      )}
    </Screen>
  );
}
