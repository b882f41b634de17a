/**
 * Which screen is shown. Addresses name the screen alone: an account's ID is in the entry of the
 * browser's history, not in the address, which others see over a shoulder or in a list of pages.
 */
import type { Conversation } from '@posthouse/client';
import { effect, signal } from '@preact/signals';

export type Route =
  | { readonly screen: 'list' | 'add' | 'settings' | 'backup' }
  | { readonly screen: 'person'; readonly id: string }
  | { readonly screen: 'chat'; readonly kind: Conversation['kind']; readonly id: string };

const list: Route = { screen: 'list' };

/** Where the invite is kept: a new account takes a while, and the page may be loaded again meanwhile. */
const inviteKey = 'posthouse.invite';

/** The invite that the page was opened with, until it is used. */
export const invite = signal(takeInvite() || (sessionStorage.getItem(inviteKey) ?? ''));
effect(() => {
  if (invite.value === '') sessionStorage.removeItem(inviteKey);
  else sessionStorage.setItem(inviteKey, invite.value);
});

export const route = signal<Route>((history.state as Route | null) ?? list);

addEventListener('popstate', ({ state }) => {
  route.value = (state as Route | null) ?? list;
});
addEventListener('hashchange', () => {
  const found = takeInvite();
  if (found === '') return;
  invite.value = found;
  show({ screen: 'add' });
});

/** Shows a screen; going back shows the one before. */
export function show(next: Route): void {
  if (JSON.stringify(next) === JSON.stringify(route.value)) return;
  history.pushState(next, '', `#/${next.screen}`);
  route.value = next;
}

/** Takes the invite of a link out of the address, where it would stay in the history. */
function takeInvite(): string {
  const [, text = ''] = /^#invite=(.+)$/.exec(location.hash) ?? [];
  if (text !== '') history.replaceState(null, '', location.pathname);
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** The link that opens an invite with this page. */
export function inviteLink(text: string): string {
  return `${location.origin}${location.pathname}#invite=${encodeURIComponent(text)}`;
}
