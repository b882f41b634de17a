/// <reference lib="webworker" />
/**
 * Serves the app from a cache: exactly the files of one version, nothing of an account. A new version
 * waits until a page says `activate`, or no page is open.
 */
declare const FILES: readonly string[];
declare const VERSION: string;

const scope = globalThis as unknown as ServiceWorkerGlobalScope;
const prefix = 'posthouse-';
const cacheName = prefix + VERSION;
const page = './';

scope.addEventListener('install', (event) => {
  const fill = async () => {
    const cache = await caches.open(cacheName);
    await cache.addAll(FILES.map((file) => new Request(file, { cache: 'reload' })));
  };
  event.waitUntil(fill());
});

scope.addEventListener('activate', (event) => {
  const tidy = async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith(prefix) && name !== cacheName) await caches.delete(name);
    }
    await scope.clients.claim();
  };
  event.waitUntil(tidy());
});

scope.addEventListener('message', ({ data }) => {
  if (data === 'activate') void scope.skipWaiting();
});

scope.addEventListener('fetch', (event) => {
  const { method, url, mode } = event.request;
  if (method !== 'GET' || !url.startsWith(scope.registration.scope)) return;
  const name = url.slice(scope.registration.scope.length);
  const wanted = mode === 'navigate' || name === '' ? page : name;
  if (!FILES.includes(wanted)) return;
  const serve = async () => {
    const cache = await caches.open(cacheName);
    return (await cache.match(wanted)) ?? (await fetch(event.request));
  };
  event.respondWith(serve());
});

scope.addEventListener('notificationclick', (event) => {
  event.notification.close();
  const lead = async () => {
    const [page] = await scope.clients.matchAll({ type: 'window' });
    await (page === undefined ? scope.clients.openWindow('./') : page.focus());
  };
  event.waitUntil(lead());
});
