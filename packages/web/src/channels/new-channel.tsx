import { CreateScreen } from '../groups/create-screen.tsx';
import type { App } from '../state/app.ts';
import { text as common } from '../text/index.ts';
import { text } from './text.ts';

/** A new channel: its name, and what it is about. */
export function NewChannel({ app }: { readonly app: App }) {
  return (
    <CreateScreen
      {...{ app, text, kind: 'channel', title: common.newChannel }}
      make={(facts) => app.account.channels.create(facts)}
    />
  );
}
