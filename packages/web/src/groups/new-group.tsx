import type { GroupInvitePolicy } from '@posthouse/protocol';
import { useState } from 'preact/hooks';
import type { App } from '../state/app.ts';
import { text as common } from '../text/index.ts';
import { CreateScreen } from './create-screen.tsx';
import { PolicyField } from './policy-field.tsx';
import { text } from './text.ts';

/** A new group: its name, what it is about, and who may invite. */
export function NewGroup({ app }: { readonly app: App }) {
  const [invitePolicy, setPolicy] = useState<GroupInvitePolicy>('administrators');
  return (
    <CreateScreen
      {...{ app, text, kind: 'group', title: common.newGroup }}
      make={(facts) => app.account.groups.create({ ...facts, invitePolicy })}
    >
      <PolicyField value={invitePolicy} onValue={setPolicy} />
    </CreateScreen>
  );
}
