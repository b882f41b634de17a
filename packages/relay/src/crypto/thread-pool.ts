import { type KeyObject, verify as nodeVerify } from 'node:crypto';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { importPublicKey, verifyOptions } from '@posthouse/protocol/node';
import { BoundedMap } from '../bounded-map.ts';
import type { SignatureEngine } from './engine.ts';

/** Threads of the pool if the environment sets none. */
const defaultPoolSize = 4;

/**
 * Returns how many verifications may be on the pool at once: one fewer than it has threads, so that
 * the flush of a commit, which runs there too, waits for none of them.
 *
 * @param limit of verifications
 * @param setting `UV_THREADPOOL_SIZE`, read as libuv does: what is no number counts as 1
 */
export function parallelOnPool(
  limit: number,
  setting: string | undefined = process.env.UV_THREADPOOL_SIZE,
): number {
  const asked = setting === undefined ? defaultPoolSize : Number.parseInt(setting, 10) || 1;
  return Math.max(1, Math.min(limit, asked - 1));
}

/**
 * Verifies with OpenSSL on libuv's thread pool. Caches imported keys: importing costs a good part of
 * a verification.
 */
export class ThreadPoolEngine implements SignatureEngine {
  readonly #keys: BoundedMap<string, KeyObject>;

  /** @param keys cached imported public keys */
  constructor(keys: number) {
    this.#keys = new BoundedMap(keys);
  }

  async verify({ scheme, publicKey, message, signature }: SignatureCheck): Promise<boolean> {
    const imported = this.#imported(scheme, publicKey);
    if (imported === undefined) return false;
    const { digest, key } = verifyOptions(scheme, imported);
    return await new Promise((resolve, reject) => {
      nodeVerify(digest, message, key, signature, (error, valid) => {
        if (error === null) resolve(valid);
        else reject(error);
      });
    });
  }

  #imported(scheme: SignatureCheck['scheme'], publicKey: Uint8Array): KeyObject | undefined {
    const name = scheme + Buffer.from(publicKey).toString('latin1');
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const imported = importPublicKey(scheme, publicKey);
    if (imported !== undefined) this.#keys.set(name, imported);
    return imported;
  }
}
