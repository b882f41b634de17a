import type { RelayContext } from '../context.ts';
import {
  cryptoWorkerStopped,
  verifiesWithLibsodium,
  verifiesWithOpenSsl,
} from '../observability/crypto-events.ts';
import type { CryptoWorker } from './crypto-worker.ts';
import type { LibsodiumEngine } from './libsodium.ts';

/**
 * Has an engine begin, records what verifies signatures from then on, and resolves when the worker
 * has stopped. Never rejects.
 */
export async function useLibsodium(
  observed: Pick<RelayContext, 'log' | 'metrics'>,
  worker: CryptoWorker,
  engine: LibsodiumEngine,
): Promise<void> {
  try {
    engine.begin();
    verifiesWithLibsodium(observed);
  } catch (error) {
    verifiesWithOpenSsl(observed, error);
  }
  const error = await worker.stopped;
  if (error !== undefined) cryptoWorkerStopped(observed, error);
}
