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
  /** For libsodium; without it, the same as for the pool. */
  readonly #worker: CheckQueue;

  constructor(limits: VerifierLimits = defaultVerifierLimits, libsodium?: LibsodiumEngine) {
    const { parallel, parallelInWorker, waiting, keys, texts } = limits;
    this.#verified = new BoundedMap(texts);
    const onPool = { parallel: parallelOnPool(parallel), waiting };
    this.#pool = new CheckQueue(new ThreadPoolEngine(keys), onPool);
    this.#libsodium = libsodium;
    const inWorker = { parallel: parallelInWorker, waiting, instead: this.#pool };
    this.#worker = libsodium === undefined ? this.#pool : new CheckQueue(libsodium, inWorker);
  }

  /** Resolves when one of the two queues is empty; `undefined` if both are. */
  get settled(): Promise<void> | undefined {
    return this.#worker.settled ?? this.#pool.settled;
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

  hasVerified(text: string, what: string): boolean {
    return this.#verified.get(keyOf(text, what)) !== undefined;
  }

  async verifyOnce(
    text: string,
    checks: () => readonly SignatureCheck[],
    what: string,
    payer = '',
  ): Promise<void> {
    const key = keyOf(text, what);
    if (this.#verified.get(key) !== undefined) return;
    await this.verify(checks(), what, payer);
    this.#verified.set(key, true);
  }

  #verifyOne(check: SignatureCheck, payer: string): Promise<boolean | undefined> | false {
    if (!isAcceptableCheck(check)) return false;
    const isServed = this.#libsodium?.serves(check) === true;
    return (isServed ? this.#worker : this.#pool).verify(check, payer);
  }
}

/** `what` separates kinds of objects: the same text may be checked under different rules. */
function keyOf(text: string, what: string): string {
  return digest(`${what}\n${text}`);
}
