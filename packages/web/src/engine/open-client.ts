import { clientInWorker, type WorkerClient } from '@posthouse/client/web';
import type { AppConfig } from '../app-config.ts';
import { lockedStore, plainStore } from '../state/stores.ts';
import { scriptUrl } from './script-urls.ts';

/**
 * Starts a worker, and opens the client in it; all tabs share its store.
 *
 * @param options.storeKey opens the encrypted store of a locked device
 * @param options.failed is told if the worker fails later: no call succeeds after that
 */
export async function openClient(
  { context, word, registry }: AppConfig,
  {
    failed,
    storeKey,
    store = storeKey === undefined ? plainStore : lockedStore,
  }: {
    readonly failed: (error: Error) => void;
    readonly storeKey?: Uint8Array | undefined;
    readonly store?: string;
  },
): Promise<WorkerClient> {
  const worker = new Worker(scriptUrl('worker'), { type: 'module', name: 'account' });
  const client = await clientInWorker(worker, {
    ...{ context, registry },
    ...(word !== undefined && { word }),
    store,
    ...(storeKey !== undefined && { storeKey }),
  });
  // A page that the browser keeps for going back keeps its worker, too, which sleeps with the lock that the other
  // tabs wait for.
  const end = () => worker.terminate();
  addEventListener('pagehide', end);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
  worker.addEventListener('error', ({ message }) => failed(new Error(message)));
  return {
    ...client,
    async close() {
      removeEventListener('pagehide', end);
      try {
        await client.close();
      } finally {
        end();
      }
    },
  };
}
