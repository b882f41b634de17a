/** The thread of `crypto-worker.ts`: answers each request with one message, in their order. */
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { verifyBatch } from './check-batch.ts';
import type { Answer, Request } from './crypto-worker.ts';

/** The part of `sodium-native` that is used. */
interface Sodium {
  crypto_sign_verify_detached(
    signature: Uint8Array,
    message: Uint8Array,
    publicKey: Uint8Array,
  ): boolean;
}

/** Loads libsodium, or says why it cannot: the package is optional, and has no types to import. */
function loadSodium(): Sodium | string {
  try {
    return createRequire(import.meta.url)('sodium-native');
  } catch (error) {
    return String(error);
  }
}

const sodium = loadSodium();

parentPort?.on('message', ({ checks }: Request) => {
  if (typeof sodium === 'string') return answer({ failure: sodium });
  verifyBatch(checks, sodium.crypto_sign_verify_detached);
  answer({ checks }, [checks]);
});

function answer(value: Answer, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(value, transfer);
}
