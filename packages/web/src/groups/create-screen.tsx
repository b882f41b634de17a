import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Field, Form, Screen } from '../parts/controls.tsx';
import { Fault } from '../parts/fault.tsx';
import { show } from '../router.ts';
import type { App } from '../state/app.ts';

/** What a person says of a new group or channel. */
export interface NewFacts {
  readonly name: string;
  readonly description?: string;
}

/** Makes a group or a channel, and shows it. */
export function CreateScreen({
  app,
  kind,
  title,
  text,
  make,
  children,
}: {
  readonly app: App;
  readonly kind: 'group' | 'channel';
  readonly title: string;
  readonly text: Readonly<Record<'createText' | 'name' | 'description' | 'create', string>>;
  readonly make: (facts: NewFacts) => Promise<{ readonly id: string }>;
  /** More to choose. */
  readonly children?: ComponentChildren;
}) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [fault, setFault] = useState<unknown>('');
  const create = async () => {
    setFault('');
    try {
      const about = description.trim();
      const { id } = await make({
        name: name.trim(),
        ...(about !== '' && { description: about }),
      });
      await app.changed();
      show({ screen: kind, id });
    } catch (error) {
      setFault(error);
    }
  };
  return (
    <Screen title={title}>
      <p>{text.createText}</p>
      <Form label={text.create} canSubmit={name.trim() !== ''} work={create}>
        <Field {...{ label: text.name, value: name, onValue: setName }} required />
        <Field {...{ label: text.description, value: description, onValue: setDescription }} />
        {children}
      </Form>
      <div role="alert" class="fault">
        <Fault error={fault} />
      </div>
    </Screen>
  );
}
