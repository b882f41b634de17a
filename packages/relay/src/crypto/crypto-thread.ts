/** The thread of `crypto-worker.ts`: answers each request with one message, in their order. */
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { nodeSealing, sealKey } from '@posthouse/protocol/node/sealing';
import type { Answer, Request } from './crypto-worker.ts';
import { sealKeys } from './seal-batch.ts';
import { verifyChecks } from './verify-batch.ts';

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

parentPort?.on('message', ({ kind, buffer }: Request) => {
  if (kind === 'seal') sealKeys(buffer, (key) => sealKey(nodeSealing, key));
  else if (typeof sodium !== 'string') verifyChecks(buffer, sodium.crypto_sign_verify_detached);
  else return answer({ failure: sodium });
  answer({ buffer }, [buffer]);
});

function answer(value: Answer, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(value, transfer);
}
