import { clientInWorker, type WorkerClient } from '@posthouse/client/web';
import type { AppConfig } from '../app-config.ts';
import { scriptUrl } from './script-urls.ts';

/** Starts this tab's worker, and opens the client in it; all tabs share its store. */
export async function openClient({ context, word, registry }: AppConfig): Promise<WorkerClient> {
  const worker = new Worker(scriptUrl('worker'), { type: 'module', name: 'account' });
  return await clientInWorker(worker, {
    ...{ context, registry },
    ...(word !== undefined && { word }),
  });
}
