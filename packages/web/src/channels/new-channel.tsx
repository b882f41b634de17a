import { useState } from 'preact/hooks';
import { Field, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';
import { text as common } from '../text/index.ts';
import { text } from './text.ts';

/** A new channel: its name, and what it is about. */
export function NewChannel({ app }: { readonly app: App }) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>('');
  const create = async () => {
    setBusy(true);
    setFault('');
    try {
      const { id } = await app.account.channels.create({
        name: name.trim(),
        ...(description.trim() !== '' && { description: description.trim() }),
      });
      await app.changed();
      show({ screen: 'channel', id });
    } catch (error) {
      setFault(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Screen title={common.newChannel}>
      <p>{text.createText}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <Field {...{ label: text.name, value: name, onValue: setName }} required />
        <Field {...{ label: text.description, value: description, onValue: setDescription }} />
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
