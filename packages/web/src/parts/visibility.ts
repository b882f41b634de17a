import { signal } from '@preact/signals';

const now = () => document.visibilityState === 'visible';

/** Whether the page can be seen: what arrives in a hidden tab is not read. */
export const isVisible = signal(now());

document.addEventListener('visibilitychange', () => {
  isVisible.value = now();
});
