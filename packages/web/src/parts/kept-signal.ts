import { effect, signal } from '@preact/signals';

/** A text that stays when the page is loaded again, until it is empty. */
export function keptSignal(storage: Storage, key: string, given = '') {
  const kept = signal(given || (storage.getItem(key) ?? ''));
  effect(() => {
    if (kept.value === '') storage.removeItem(key);
    else storage.setItem(key, kept.value);
  });
  return kept;
}
