import type { GroupInvitePolicy } from '@posthouse/protocol';
import { useState } from 'preact/hooks';
import { Field, Form } from '../parts/controls.tsx';
import { type GroupProps, ownNickname } from './group-view.ts';
import { PolicyField } from './policy-field.tsx';
import { text } from './text.ts';

/** Name, description and who may invite; only the owner can change them (05 §6). */
export function FactsForm({ app, view: { group }, act }: GroupProps) {
  const { id, state } = group;
  const [name, setName] = useState(state?.name ?? '');
  const [description, setDescription] = useState(state?.description ?? '');
  const [invitePolicy, setPolicy] = useState<GroupInvitePolicy>(
    state?.invite_policy ?? 'administrators',
  );
  return (
    <Form
      label={text.save}
      work={() => {
        const facts = { name: name.trim(), description: description.trim(), invitePolicy };
        return act(() => app.account.groups.update(id, facts));
      }}
    >
      <h2>{text.facts}</h2>
      <Field {...{ label: text.name, value: name, onValue: setName }} required />
      <Field {...{ label: text.description, value: description, onValue: setDescription }} />
      <PolicyField value={invitePolicy} onValue={setPolicy} />
    </Form>
  );
}

/** The name that this person has among the members. */
export function Nickname({ app, view, act }: GroupProps) {
  const [name, setName] = useState(ownNickname(app, view));
  const { id } = view.group;
  return (
    <Form
      label={text.save}
      work={() => act(() => app.account.groups.setNickname(id, name.trim() || null))}
    >
      <Field
        {...{ label: text.nickname, help: text.nicknameHelp, value: name, onValue: setName }}
      />
    </Form>
  );
}
