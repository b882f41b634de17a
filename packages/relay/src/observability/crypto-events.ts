/** Events of the verification of signatures, one function for each. */
import type { RelayContext } from '../context.ts';

type Observed = Pick<RelayContext, 'log' | 'metrics'>;

export function verifiesWithLibsodium({ log }: Observed): void {
  log.info('Ed25519 signatures are verified by libsodium');
}

/** Records that libsodium is not used: the relay serves as with it, but takes more CPU time. */
export function verifiesWithOpenSsl({ log }: Observed, error: unknown): void {
  log.info({ err: error }, 'Ed25519 signatures are verified by OpenSSL: libsodium is not used');
}

/** Records that the worker thread ended; thread pool and event loop do its work from then on. */
export function cryptoWorkerStopped({ log, metrics }: Observed, error: unknown): void {
  metrics.count('crypto_worker_stopped');
  log.error(
    { err: error },
    'the thread for cryptography stopped: restart the relay, which takes more CPU time until then',
  );
}
