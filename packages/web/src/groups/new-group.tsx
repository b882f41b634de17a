import type { GroupInvitePolicy } from '@posthouse/protocol';
import { useState } from 'preact/hooks';
import { Field, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text as common } from '../text/index.ts';
import { PolicyField } from './policy-field.tsx';
import { text } from './text.ts';

/** A new group: its name, what it is about, and who may invite. */
export function NewGroup({ app }: { readonly app: App }) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [invitePolicy, setPolicy] = useState<GroupInvitePolicy>('administrators');
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>('');
  const create = async () => {
    setBusy(true);
    setFault('');
    try {
      const { id } = await app.account.groups.create({
        ...{ name: name.trim(), invitePolicy },
        ...(description.trim() !== '' && { description: description.trim() }),
      });
      await app.changed();
      show({ screen: 'group', id });
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Screen title={common.newGroup}>
      <p>{text.createText}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <Field {...{ label: text.name, value: name, onValue: setName }} required />
        <Field {...{ label: text.description, value: description, onValue: setDescription }} />
        <PolicyField value={invitePolicy} onValue={setPolicy} />
        <button type="submit" disabled={isBusy || name.trim() === ''}>
          {text.create}
        </button>
        <div role="alert" class="fault">
          <Fault error={fault} />
        </div>
      </form>
    </Screen>
  );
}
