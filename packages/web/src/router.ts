/**
 * Which screen is shown. Addresses name the screen alone: an account's ID is in the entry of the
 * browser's history, not in the address, which others see over a shoulder or in a list of pages.
 */
import type { Conversation } from '@posthouse/client';
import { computed, signal } from '@preact/signals';
import type { SharedLink } from './parts/find-shared.ts';
import { keptSignal } from './parts/kept-signal.ts';

export type Route =
  | {
      readonly screen: 'list' | 'add' | 'backup' | 'ended' | 'new-group' | 'new-channel' | 'shared';
    }
  | { readonly screen: 'settings'; readonly page?: string }
  | { readonly screen: 'person' | 'group' | 'channel'; readonly id: string }
  | { readonly screen: 'post'; readonly id: string; readonly sequence: number }
  | { readonly screen: 'chat'; readonly kind: Conversation['kind']; readonly id: string };

const list: Route = { screen: 'list' };

/** The invite that the page was opened with, until it is used: a new account takes a while. */
export const invite = keptSignal(sessionStorage, 'posthouse.invite', takeLink('invite'));

/** Public key of the account that this device asks to join, if it does. */
export const joinKey = keptSignal(localStorage, 'posthouse.joining', takeLink('device'));

const openedWith = takeShared();
/** Whether the page was opened with a link to a group or a channel. */
export const opensShared = openedWith !== '';
const sharedText = keptSignal(sessionStorage, 'posthouse.shared', openedWith);
/** The link to a group or a channel that was opened last, until it is used. */
export const shared = computed((): SharedLink | undefined => {
  const [, kind, address = ''] = /^(group|channel)=(.*)$/s.exec(sharedText.value) ?? [];
  return kind === undefined ? undefined : { kind: kind as SharedLink['kind'], address };
});

/** Where the history of this browser has a name. It is erased with the device, and made anew after that. */
const historyKey = 'posthouse.history';
const historyName = localStorage.getItem(historyKey) ?? crypto.randomUUID();
try {
  localStorage.setItem(historyKey, historyName);
} catch {
  // No space: going back after a reload leads to the list.
}

/** What an entry of the browser's history shows: those from before the device was erased, the list. */
function routeOf(state: { readonly of?: string; readonly route: Route } | null): Route {
  return state?.of === historyName ? state.route : list;
}

export const route = signal<Route>(routeOf(history.state));

addEventListener('popstate', ({ state }) => {
  route.value = routeOf(state);
});
// Another tab erases the device: what this one was opened with is a part of it.
addEventListener('storage', ({ key, newValue }) => {
  if (key === historyKey && newValue === null) invite.value = sharedText.value = '';
});
addEventListener('hashchange', () => {
  joinKey.value = takeLink('device') || joinKey.value;
  const link = takeShared();
  if (link !== '') {
    sharedText.value = link;
    show({ screen: 'shared' });
  }
  const found = takeLink('invite');
  if (found === '') return;
  invite.value = found;
  show({ screen: 'add' });
});

/** Shows a screen; going back shows the one before. */
export function show(next: Route): void {
  if (JSON.stringify(next) === JSON.stringify(route.value)) return;
  history.pushState({ of: historyName, route: next }, '', `#/${next.screen}`);
  route.value = next;
}

/** Opens a link to a group or a channel. */
export function openShared({ kind, address }: SharedLink): void {
  sharedText.value = `${kind}=${address}`;
  show({ screen: 'shared' });
}

/** Forgets the link that was opened: it was used, or is not wanted. */
export function closeShared(): void {
  sharedText.value = '';
}

/** Takes a link to a group or a channel out of the address; without one, the text is empty. */
function takeShared(): string {
  const [, kind] = /^#(group|channel)=/.exec(location.hash) ?? [];
  return kind === undefined ? '' : `${kind}=${takeLink(kind as SharedLink['kind'])}`;
}

/** Takes what a link carries out of the address, where it would stay in the history. */
function takeLink(name: 'device' | 'invite' | SharedLink['kind']): string {
  const prefix = `#${name}=`;
  if (!location.hash.startsWith(prefix)) return '';
  const text = location.hash.slice(prefix.length);
  history.replaceState(null, '', location.pathname);
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** The link that opens an invite, a group or a channel with this page. */
export function linkTo(kind: 'invite' | SharedLink['kind'], text: string): string {
  return `${location.origin}${location.pathname}#${kind}=${encodeURIComponent(text)}`;
}

/** The link with which a new device asks to join an account. */
export function joinLink(accountPublicKey: string): string {
  return `${location.origin}${location.pathname}#device=${accountPublicKey}`;
}
