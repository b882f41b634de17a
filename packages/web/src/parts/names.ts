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

/** Characters of a nickname that are shown, so that the ID after it has its place. */
const shownOfNickname = 24;

/**
 * The name of an account, as this person knows it. A nickname is chosen by the other person, who may choose that of a
 * friend: it has the account's ID after it, and a name that this person gave has not.
 */
export function nameOf(app: Host, account: string): string {
  if (account === app.account.id) return text.you;
  const contact = app.contacts.value.find((each) => each.account === account);
  if (contact?.alias !== undefined) return visibleName(contact.alias);
  if (contact?.nickname === undefined) return shortId(account);
  const characters = [...visibleName(contact.nickname)];
  const isLong = characters.length > shownOfNickname;
  const nickname = characters.slice(0, shownOfNickname).join('') + (isLong ? '…' : '');
  return `${nickname} (${shortId(account)})`;
}

/** The title of a conversation. */
export function titleOf(
  app: Host,
  { kind, id, title }: Pick<Conversation, 'kind' | 'id' | 'title'>,
) {
  if (kind === 'person') return id === app.account.id ? text.notes : nameOf(app, id);
  return title === undefined ? shortId(id) : visibleName(title);
}
