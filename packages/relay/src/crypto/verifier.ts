import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { isAcceptableCheck } from '@posthouse/protocol/node';
import { BoundedMap } from '../bounded-map.ts';
import type { Verifier } from '../context.ts';
import { digest } from '../digest.ts';
import { CheckQueue } from './check-queue.ts';
import type { LibsodiumEngine } from './libsodium.ts';
import { parallelOnPool, ThreadPoolEngine } from './thread-pool.ts';

export interface VerifierLimits {
  /** Verifications on the thread pool at once; the pool's size may permit fewer. */
  readonly parallel: number;
  /** Verifications that the worker has at once. */
  readonly parallelInWorker: number;
  /** Waiting verifications, for the thread pool and for the worker each; see `CheckQueue`. */
  readonly waiting: number;
  /** Cached imported public keys. */
  readonly keys: number;
  /** Cached digests of verified texts. */
  readonly texts: number;
}

export const defaultVerifierLimits: VerifierLimits = {
  parallel: 32,
  parallelInWorker: 128,
  waiting: 50_000,
  keys: 20_000,
  texts: 50_000,
};

/**
 * Verifies signatures off the event loop, in rotation of those who pay for them: with libsodium
 * where it can, otherwise on the thread pool. Caches the digests of verified texts.
 */
export class SignatureVerifier implements Verifier {
  readonly #verified: BoundedMap<string, true>;
  readonly #pool: CheckQueue;
  readonly #libsodium: LibsodiumEngine | undefined;
  readonly #worker: CheckQueue | undefined;

  constructor(limits: VerifierLimits = defaultVerifierLimits, libsodium?: LibsodiumEngine) {
    const { parallel, parallelInWorker, waiting, keys, texts } = limits;
    this.#verified = new BoundedMap(texts);
    const onPool = { parallel: parallelOnPool(parallel), waiting };
    this.#pool = new CheckQueue(new ThreadPoolEngine(keys), onPool);
    this.#libsodium = libsodium;
    this.#worker = libsodium && new CheckQueue(libsodium, { parallel: parallelInWorker, waiting });
  }

  async verify(checks: readonly SignatureCheck[], what: string, payer = ''): Promise<void> {
    const results = checks.map((check) => this.#verifyOne(check, payer));
    const isValid =
      results.length === 1
        ? await results[0]
        : (await Promise.all(results)).every((each) => each === true);
    if (isValid === true) return;
    throw new ProtocolError('invalid_signature', `${what}: signature does not verify`);
  }

  async verifyOnce(
    text: string,
    checks: () => readonly SignatureCheck[],
    what: string,
    payer = '',
  ): Promise<void> {
    // `what` separates kinds of objects: the same text may be checked under different rules.
    const key = digest(`${what}\n${text}`);
    if (this.#verified.get(key) !== undefined) return;
    await this.verify(checks(), what, payer);
    this.#verified.set(key, true);
  }

  async #verifyOne(check: SignatureCheck, payer: string): Promise<boolean | undefined> {
    if (!isAcceptableCheck(check)) return false;
    if (this.#libsodium?.serves(check)) {
      const isValid = await this.#worker?.verify(check, payer);
      if (isValid !== undefined) return isValid;
      // The worker stopped.
    }
    return await this.#pool.verify(check, payer);
  }
}
