import { afterAll, beforeAll } from 'vitest';
import { CryptoWorker } from '../../src/crypto/crypto-worker.ts';
import { LibsodiumEngine } from '../../src/crypto/libsodium.ts';
import { SignatureVerifier, type VerifierLimits } from '../../src/crypto/verifier.ts';

/** What verifies Ed25519 signatures; P-256 is OpenSSL's in both. */
export const engines = ['OpenSSL', 'libsodium'] as const;

export type Engine = (typeof engines)[number];

/** Starts a worker for the tests of a file; returns what makes verifiers with either engine. */
export function verifiers(): (engine: Engine, limits?: VerifierLimits) => SignatureVerifier {
  const parts = new AsyncDisposableStack();
  let libsodium: LibsodiumEngine | undefined;
  beforeAll(() => {
    libsodium = new LibsodiumEngine(parts.use(new CryptoWorker()));
    libsodium.begin();
  });
  afterAll(() => parts.disposeAsync());
  return (engine, limits) => {
    if (engine === 'OpenSSL') return new SignatureVerifier(limits);
    if (libsodium === undefined) throw new Error('the worker has not started');
    return new SignatureVerifier(limits, libsodium);
  };
}
