/** The service worker: it makes the app start without a network, and waits with a new version until it is wanted. */
import { signal } from '@preact/signals';

/** Whether a new version is ready. */
export const updateReady = signal(false);

let waiting: ServiceWorker | null = null;

/** Registers the service worker; without one, as in a private window, the app works online. */
export function watchUpdates(url: string): void {
  const { serviceWorker } = navigator;
  if (serviceWorker === undefined) return;
  // Another tab may change to the new version: the files of this one are gone then.
  if (serviceWorker.controller !== null) {
    serviceWorker.addEventListener('controllerchange', () => location.reload());
  }
  const found = (registration: ServiceWorkerRegistration) => {
    // The first version serves no page yet, and needs no question.
    if (registration.waiting === null || serviceWorker.controller === null) return;
    waiting = registration.waiting;
    updateReady.value = true;
  };
  const watch = async () => {
    const registration = await serviceWorker.register(url);
    found(registration);
    registration.addEventListener('updatefound', () => {
      registration.installing?.addEventListener('statechange', () => found(registration));
    });
  };
  watch().catch(() => undefined);
}

/** Changes to the new version: every tab of the app is loaded again. */
export function useUpdate(): void {
  waiting?.postMessage('activate');
}
