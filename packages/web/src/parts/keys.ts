/** Keys that work everywhere in the app. */
import { route, show } from '../router.ts';

const entries = () => [...document.querySelectorAll<HTMLElement>('.pane .entry')];

/** Moves the focus up or down in the list. Returns whether there was something to move from and to. */
function move(from: EventTarget | null, by: 1 | -1): boolean {
  const all = entries();
  const isSearch = from instanceof HTMLInputElement && from.type === 'search';
  const at = all.indexOf(from as HTMLElement);
  if (at === -1 && !isSearch) return false;
  const next = all[isSearch ? 0 : at + by];
  next?.focus();
  return next !== undefined;
}

/**
 * Escape leads back to the list, from everywhere but a field in which it has a meaning of its own. Ctrl or Cmd
 * with K searches; there Enter opens the first that is found, and arrows lead through the list.
 */
export function listenForKeys(): void {
  addEventListener('keydown', (event) => {
    const { target, key, isComposing, defaultPrevented } = event;
    if (defaultPrevented || isComposing) return;
    const search = document.querySelector<HTMLInputElement>('.pane input[type=search]');
    if (key === 'k' && (event.ctrlKey || event.metaKey) && search !== null) {
      event.preventDefault();
      show({ screen: 'list' });
      // Once the list is shown, which it is not on a narrow screen, and before the next key.
      queueMicrotask(() => {
        search.focus();
        search.select();
      });
    } else if (key === 'Enter' && target === search) {
      entries()[0]?.click();
    } else if (key === 'ArrowDown' || key === 'ArrowUp') {
      if (move(target, key === 'ArrowDown' ? 1 : -1)) event.preventDefault();
    } else if (key === 'Escape' && !(target instanceof HTMLInputElement)) {
      if (route.value.screen !== 'list') show({ screen: 'list' });
    }
  });
}
