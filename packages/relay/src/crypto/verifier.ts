import { type KeyObject, verify as nodeVerify } from 'node:crypto';
import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import { importPublicKey, isAcceptableSignature, verifyOptions } from '@posthouse/protocol/node';
import { BoundedMap } from '../bounded-map.ts';
import type { Verifier } from '../context.ts';
import { digest } from '../digest.ts';
import { FairSlots } from '../fair-slots.ts';

export interface VerifierLimits {
  /** Verifications on the thread pool at once. */
  readonly parallel: number;
  /**
   * Waiting verifications. A payer may add some while fewer of its own wait than there is room left:
   * a payer with many is refused first, and leaves room to the others.
   */
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
 * Verifies signatures on libuv's thread pool, so that the event loop is not blocked, in rotation of
 * those who pay for them. Caches imported keys (importing costs a good part of a verification) and the
 * digests of verified texts.
 */
export class ThreadPoolVerifier implements Verifier {
  readonly #limits: VerifierLimits;
  readonly #keys: BoundedMap<string, KeyObject>;
  readonly #verified: BoundedMap<string, true>;
  readonly #slots: FairSlots;

  constructor(limits: VerifierLimits = defaultVerifierLimits) {
    this.#limits = limits;
    this.#keys = new BoundedMap(limits.keys);
    this.#verified = new BoundedMap(limits.texts);
    this.#slots = new FairSlots(limits.parallel);
  }

  async verify(checks: readonly SignatureCheck[], what: string, payer = ''): Promise<void> {
    const results = await Promise.all(checks.map((check) => this.#verifyOne(check, payer)));
    if (results.every(Boolean)) return;
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

  async #verifyOne(check: SignatureCheck, payer: string): Promise<boolean> {
    const { scheme, publicKey, message, signature } = check;
    if (!isAcceptableSignature(scheme, signature)) return false;
    const imported = this.#imported(scheme, publicKey);
    if (imported === undefined) return false;
    this.#requireRoom(payer);
    await this.#slots.take(payer);
    try {
      const { digest: hash, key } = verifyOptions(scheme, imported);
      return await new Promise((resolve, reject) => {
        nodeVerify(hash, message, key, signature, (error, valid) => {
          if (error === null) resolve(valid);
          else reject(error);
        });
      });
    } finally {
      this.#slots.give();
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

  /** @throws ProtocolError `temporarily_unavailable` if too many of the payer's wait */
  #requireRoom(payer: string): void {
    if (!this.#slots.isFull) return;
    const room = this.#limits.waiting - this.#slots.waiting;
    if (this.#slots.waitingOf(payer) < room) return;
    throw new ProtocolError(
      'temporarily_unavailable',
      'too many signatures to verify: try again later',
    );
  }
}
