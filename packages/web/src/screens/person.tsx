import { useState } from 'preact/hooks';
import { p } from '../account/person-text.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Action, Field, Form, Screen } from '../parts/controls.tsx';
import { nameOf } from '../parts/names.ts';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text } from '../text/index.ts';

/** Another account: what to call it, the end of the contact, and blocking it. */
export function Person({ app, id }: { readonly app: App; readonly id: string }) {
  const contact = app.contacts.value.find(({ account }) => account === id);
  const { status = 'none' } = contact ?? {};
  const [alias, setAlias] = useState(contact?.alias ?? '');
  const { contacts } = app.account;
  const change = (work: () => Promise<unknown>) => async () => {
    if (!(await app.try(work))) return false;
    await app.changed();
    return true;
  };
  const changeAndLeave = (work: () => Promise<unknown>) => async () => {
    if (await change(work)()) history.back();
  };
  const block = async () => {
    if (await change(() => contacts.block(id))()) show({ screen: 'list' });
  };
  return (
    <Screen title={nameOf(app, id)}>
      <p class="id">{id}</p>
      {['active', 'asks', 'waiting'].includes(status) && (
        <Form label={text.save} work={changeAndLeave(() => contacts.rename(id, alias.trim()))}>
          <Field {...{ label: text.localName, value: alias, onValue: setAlias }} />
        </Form>
      )}
      {status === 'active' && (
        <Confirm
          {...{ label: p.remove, explanation: p.removeText }}
          work={changeAndLeave(() => contacts.remove(id))}
        />
      )}
      {status === 'blocked' ? (
        <>
          <p role="status">{p.isBlocked}</p>
          <p>{p.unblockText}</p>
          <Action work={change(() => contacts.unblock(id))}>{p.unblock}</Action>
        </>
      ) : (
        <Confirm {...{ label: p.blockPerson, explanation: p.blockText, work: block }} />
      )}
    </Screen>
  );
}
