/** The thread of `crypto-worker.ts`: answers each request with one message, in their order. */
import { parentPort } from 'node:worker_threads';
import { nodeSealing, sealKey } from '@posthouse/protocol/node/sealing';
import type { Answer, Request } from './crypto-worker.ts';
import { sealKeys } from './seal-batch.ts';
import { loadSodium } from './sodium.ts';
import { verifyChecks } from './verify-batch.ts';

const sodium = loadSodium();

parentPort?.on('message', ({ kind, buffer }: Request) => {
  if (kind === 'seal') sealKeys(buffer, (key) => sealKey(nodeSealing, key));
  else if (typeof sodium !== 'string') verifyChecks(buffer, sodium.crypto_sign_verify_detached);
  else return answer({});
  answer({ buffer }, [buffer]);
});

function answer(value: Answer, transfer: ArrayBuffer[] = []): void {
  parentPort?.postMessage(value, transfer);
}
