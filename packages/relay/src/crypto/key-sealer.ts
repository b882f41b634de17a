import { type KeyToSeal, type SealedKey, sealKey } from '@posthouse/protocol/crypto';
import { nodePrimitives } from '@posthouse/protocol/node';
import type { KeySealer } from '../context.ts';
import { nextTurn } from '../event-loop.ts';
import { FairSlots } from '../fair-slots.ts';
import type { CryptoWorker } from './crypto-worker.ts';
import { decodeSealedKeys, encodeKeys } from './seal-batch.ts';

/** Keys that are sealed together: in half a millisecond, which the checks after them wait. */
const batchSize = 4;

/** Batches that the worker has at once: one to work on, one to go on with. */
const parallel = 2;

/**
 * Seals keys in the worker thread, a few at once in rotation of those who pay; on the event loop, one
 * batch in a turn, if there is no worker.
 */
export class WorkerKeySealer implements KeySealer {
  readonly #worker: CryptoWorker | undefined;
  readonly #slots = new FairSlots(parallel);

  constructor(worker?: CryptoWorker) {
    this.#worker = worker;
  }

  async seal(keys: Iterable<KeyToSeal>, payer: string): Promise<(SealedKey | undefined)[]> {
    const sealed: (SealedKey | undefined)[] = [];
    for (const batch of inBatches(keys)) {
      await this.#slots.take(payer);
      try {
        sealed.push(...(await this.#sealBatch(batch)));
      } finally {
        this.#slots.give();
      }
    }
    return sealed;
  }

  async #sealBatch(keys: readonly KeyToSeal[]): Promise<(SealedKey | undefined)[]> {
    if (this.#worker?.isRunning) {
      const answer = await this.#worker.ask({ kind: 'seal', buffer: encodeKeys(keys) });
      if (answer?.buffer !== undefined) return decodeSealedKeys(answer.buffer);
      // The worker stopped.
    }
    const sealed = keys.map((key) => sealKey(nodePrimitives, key));
    await nextTurn();
    return sealed;
  }
}

function* inBatches(keys: Iterable<KeyToSeal>): Generator<KeyToSeal[]> {
  let batch: KeyToSeal[] = [];
  for (const key of keys) {
    if (batch.push(key) < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
