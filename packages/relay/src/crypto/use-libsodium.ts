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
    await engine.begin();
    verifiesWithLibsodium(observed);
  } catch (error) {
    if (worker.isClosed) return;
    verifiesWithOpenSsl(observed, worker.isRunning ? error : await worker.stopped);
  }
  const error = await worker.stopped;
  if (error !== undefined) cryptoWorkerStopped(observed, error);
}
