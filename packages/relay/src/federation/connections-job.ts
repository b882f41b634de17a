import type { Job } from '../context.ts';
import { hasConnections, storeConnections } from './connection-store.ts';
import { knownRelays } from './store.ts';

/** Woken when this process connects with a relay, or has no connection with it any more. */
export const connectionsJobName = 'federation.connections';

/** Seconds between two runs: what a process stored counts for a while only. */
const interval = 60;

/** Makes the job that stores with which relays this process is connected, for the operator. */
export function connectionsJob({
  process,
  connections,
  stopping,
}: {
  /** Identifies this process since its start. */
  readonly process: string;
  readonly connections: { readonly since: ReadonlyMap<string, number> };
  readonly stopping: AbortSignal;
}): Job {
  return {
    name: connectionsJobName,
    async run({ bus, clock, storage }) {
      if (stopping.aborted) return undefined;
      const now = clock.now();
      const { since } = connections;
      const isAlone = !bus.isShared;
      // A relay without others writes nothing.
      const isEmpty = isAlone && since.size === 0 && !(await storage.read(hasConnections));
      if (isEmpty) return undefined;
      await storage.write(knownRelays, (tx) =>
        storeConnections(tx, { process, now, since }, { isAlone }),
      );
      return now + interval;
    },
  };
}
