import { type KeyObject, verify as nodeVerify } from 'node:crypto';
import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { importPublicKey, isAcceptableSignature, verifyOptions } from '@posthouse/protocol/node';
import { BoundedMap } from '../bounded-map.ts';
import type { Verifier } from '../context.ts';
import { digest } from '../digest.ts';

export interface VerifierLimits {
  /** Verifications on the thread pool at once. */
  readonly parallel: number;
  /** Waiting verifications; more are refused. */
  readonly waiting: number;
  /** Cached imported public keys. */
  readonly keys: number;
  /** Cached digests of verified texts. */
  readonly texts: number;
}

export const defaultVerifierLimits: VerifierLimits = {
  parallel: 32,
  waiting: 50_000,
  keys: 20_000,
  texts: 50_000,
};

/**
 * Verifies signatures on libuv's thread pool, so that the event loop is not blocked. Caches imported
 * keys (importing costs a good part of a verification) and the digests of verified texts.
 */
export class ThreadPoolVerifier implements Verifier {
  readonly #limits: VerifierLimits;
  readonly #keys: BoundedMap<string, KeyObject>;
  readonly #verified: BoundedMap<string, true>;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(limits: VerifierLimits = defaultVerifierLimits) {
    this.#limits = limits;
    this.#keys = new BoundedMap(limits.keys);
    this.#verified = new BoundedMap(limits.texts);
  }

  async verify(checks: readonly SignatureCheck[], what: string): Promise<void> {
    const results = await Promise.all(checks.map((check) => this.#verifyOne(check)));
    if (results.every(Boolean)) return;
    throw new ProtocolError('invalid_signature', `${what}: signature does not verify`);
  }

  async verifyOnce(
    text: string,
    checks: () => readonly SignatureCheck[],
    what: string,
  ): Promise<void> {
    // `what` separates kinds of objects: the same text may be checked under different rules.
    const key = digest(`${what}\n${text}`);
    if (this.#verified.get(key) !== undefined) return;
    await this.verify(checks(), what);
    this.#verified.set(key, true);
  }

  async #verifyOne({ scheme, publicKey, message, signature }: SignatureCheck): Promise<boolean> {
    if (!isAcceptableSignature(scheme, signature)) return false;
    const imported = this.#imported(scheme, publicKey);
    if (imported === undefined) return false;
    await this.#waitForTurn();
    try {
      const { digest: hash, key } = verifyOptions(scheme, imported);
      return await new Promise((resolve, reject) => {
        nodeVerify(hash, message, key, signature, (error, valid) => {
          if (error === null) resolve(valid);
          else reject(error);
        });
      });
    } finally {
      this.#endTurn();
    }
  }

  #imported(scheme: SignatureCheck['scheme'], publicKey: Uint8Array): KeyObject | undefined {
    const name = scheme + Buffer.from(publicKey).toString('latin1');
    const known = this.#keys.get(name);
    if (known !== undefined) return known;
    const imported = importPublicKey(scheme, publicKey);
    if (imported !== undefined) this.#keys.set(name, imported);
    return imported;
  }

  async #waitForTurn(): Promise<void> {
    if (this.#running < this.#limits.parallel) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.length >= this.#limits.waiting) {
      throw new ProtocolError(
        'temporarily_unavailable',
        'too many signatures to verify: try again later',
      );
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Passes the turn to the next waiting verification, if any. */
  #endTurn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#running -= 1;
    else next();
  }
}
