/** The service worker: it makes the app start without a network, and waits with a new version until it is wanted. */
import { signal } from '@preact/signals';
import { hasUnkept } from './drafts.ts';

/** A new version that is ready, or used by other tabs while something is written here that a reload does not leave. */
export const update = signal<'' | 'ready' | 'used'>('');

/** Milliseconds between two questions for a new version, by a page that is shown again. */
const askAfter = 4 * 3_600_000;

let waiting: ServiceWorker | null = null;

/** Registers the service worker; without one, as in a private window, the app works online. */
export function watchUpdates(url: string): void {
  const { serviceWorker } = navigator;
  if (serviceWorker === undefined) return;
  /** Whether the next change is the first version of all, which serves the files that this page has. */
  let isFirst = serviceWorker.controller === null;
  serviceWorker.addEventListener('controllerchange', () => {
    if (isFirst) isFirst = false;
    // Another tab may have changed to the new version: the files of this one are gone then.
    else if (!hasUnkept()) location.reload();
    else update.value = 'used';
  });
  const found = (registration: ServiceWorkerRegistration) => {
    // The first version serves no page yet, and needs no question.
    if (registration.waiting === null || registration.active === null) return;
    waiting = registration.waiting;
    update.value = 'ready';
  };
  const watch = async () => {
    const registration = await serviceWorker.register(url);
    // A page that was loaded past the worker is not served by it, but by the next version.
    if (registration.active !== null) isFirst = false;
    found(registration);
    registration.addEventListener('updatefound', () => {
      registration.installing?.addEventListener('statechange', () => found(registration));
    });
    let asked = Date.now();
    document.addEventListener('visibilitychange', () => {
      if (document.hidden || Date.now() - asked < askAfter) return;
      asked = Date.now();
      registration.update().catch(() => undefined);
    });
  };
  watch().catch(() => undefined);
}

/** Changes to the new version: every tab of the app is loaded again, if it has nothing that this would lose. */
export function useUpdate(): void {
  if (update.peek() === 'used') location.reload();
  else waiting?.postMessage('activate');
}
