import { ProtocolError } from '@posthouse/protocol';
import type { SignatureCheck } from '@posthouse/protocol/crypto';
import type { Verifier } from '../context.ts';
import type { Work } from './prices.ts';

/**
 * Verifies for one call and reports the signatures; those known from a cache cost nothing, and
 * neither does an object that did not verify earlier in the call.
 */
export class MeteredVerifier implements Verifier {
  readonly #inner: Verifier;
  readonly #payer: string;
  readonly #report: (work: Work) => void;
  /** Why objects did not verify, by what they are and their text. */
  #refused: Map<string, ProtocolError> | undefined;

  constructor(inner: Verifier, payer: string, report: (work: Work) => void) {
    this.#inner = inner;
    this.#payer = payer;
    this.#report = report;
  }

  verify(checks: readonly SignatureCheck[], what: string): Promise<void> {
    this.#report({ signatures: checks.length });
    return this.#inner.verify(checks, what, this.#payer);
  }

  hasVerified(text: string, what: string): boolean {
    return this.#inner.hasVerified(text, what);
  }

  async verifyOnce(...[text, checks, what]: Parameters<Verifier['verifyOnce']>): Promise<void> {
    const counted = () => {
      const found = checks();
      this.#report({ signatures: found.length });
      return found;
    };
    const refusal = this.#refused?.get(`${what}\n${text}`);
    if (refusal !== undefined) throw refusal;
    try {
      await this.#inner.verifyOnce(text, counted, what, this.#payer);
    } catch (error) {
      if (error instanceof ProtocolError && error.code === 'invalid_signature') {
        this.#refused ??= new Map();
        this.#refused.set(`${what}\n${text}`, error);
      }
      throw error;
    }
  }
}
