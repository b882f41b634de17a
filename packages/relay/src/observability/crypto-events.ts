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

/** Records that the thread with libsodium ended; the thread pool does its work from then on. */
export function libsodiumStopped({ log, metrics }: Observed, error: unknown): void {
  metrics.count('libsodium_stopped');
  log.error({ err: error }, 'libsodium stopped: restart the relay, OpenSSL verifies until then');
}
