/** What to call accounts; names of others are made safe to show. */
import type { Conversation } from '@posthouse/client';
import { visibleName } from '@posthouse/client/visible-text';
import type { Host } from '../state/host.ts';
import { text } from '../text/index.ts';

/** A short form of an account ID, for accounts without a name. */
export function shortId(id: string): string {
  const address = id.split(':').at(-1) ?? id;
  return `${address.slice(0, 6)}…${address.slice(-4)}`;
}

/** The name of an account, as this person knows it. */
export function nameOf(app: Host, account: string): string {
  if (account === app.account.id) return text.you;
  const name = app.contacts.value.find((contact) => contact.account === account)?.name;
  return name === undefined ? shortId(account) : visibleName(name);
}

/** The title of a conversation. */
export function titleOf(
  app: Host,
  { kind, id, title }: Pick<Conversation, 'kind' | 'id' | 'title'>,
) {
  if (kind === 'person' && id === app.account.id) return text.notes;
  return title === undefined ? shortId(id) : visibleName(title);
}
