/** Runs the hand-back of a group in a worker of its own: the account's worker does not have it. */
import type { AppConfig } from '../app-config.ts';
import { scriptUrl } from './script-urls.ts';

/** From the page. */
export interface HandBackRequest extends Pick<AppConfig, 'context' | 'word' | 'registry'> {
  readonly groupId: string;
}

/** To the page: how many changes the host had lost, or an error as plain data. */
export type HandBackReply = { readonly count: number } | { readonly error: unknown };

/**
 * Hands back what a group's host lost (05 §5.6).
 *
 * @returns how many changes the host had lost
 * @throws as `handBackGroup` of `@posthouse/client/hand-back`, as plain data
 */
export async function runHandBack(config: AppConfig, groupId: string): Promise<number> {
  const { context, word, registry } = config;
  const worker = new Worker(scriptUrl('handBack'), { type: 'module', name: 'hand-back' });
  try {
    const reply = await new Promise<HandBackReply>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data as HandBackReply);
      worker.onerror = (event) => reject(new Error(event.message));
      const request: HandBackRequest = {
        ...{ context, registry, groupId },
        ...(word !== undefined && { word }),
      };
      worker.postMessage(request);
    });
    if ('error' in reply) throw reply.error;
    return reply.count;
  } finally {
    worker.terminate();
  }
}
