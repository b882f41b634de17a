import type { RelayContext } from '../context.ts';
import { certificateReloadFailed } from '../observability/events.ts';

/** Milliseconds between reloads; certificates are renewed weeks before they expire. */
const interval = 12 * 3_600_000;

/**
 * Reloads the certificate files twice a day, without interrupting connections.
 */
export class CertificateRenewal implements Disposable {
  readonly #context: RelayContext;
  readonly #renew: () => Promise<void>;
  #timer: Disposable | undefined;

  constructor(context: RelayContext, renew: () => Promise<void>) {
    this.#context = context;
    this.#renew = renew;
    this.#schedule();
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
  }

  #schedule(): void {
    this.#timer = this.#context.clock.after(interval, () => {
      this.#schedule();
      this.#renew().catch((error: unknown) => certificateReloadFailed(this.#context, error));
    });
  }
}
