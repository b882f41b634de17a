import type { SignatureCheck } from '@posthouse/protocol/crypto';
import type { Verifier } from '../context.ts';
import type { Work } from './prices.ts';

/** Reports the signatures that are verified for one call; those known from a cache cost nothing. */
export class MeteredVerifier implements Verifier {
  readonly #inner: Verifier;
  readonly #report: (work: Work) => void;

  constructor(inner: Verifier, report: (work: Work) => void) {
    this.#inner = inner;
    this.#report = report;
  }

  async verify(checks: readonly SignatureCheck[], what: string): Promise<void> {
    this.#report({ signatures: checks.length });
    await this.#inner.verify(checks, what);
  }

  async verifyOnce(...[text, checks, what]: Parameters<Verifier['verifyOnce']>): Promise<void> {
    const counted = () => {
      const found = checks();
      this.#report({ signatures: found.length });
      return found;
    };
    await this.#inner.verifyOnce(text, counted, what);
  }
}
