import type { RelayContext } from '../context.ts';
import { certificateReloadFailed } from '../observability/events.ts';

/** Milliseconds between looks: certificates are renewed weeks before their end. */
const interval = 12 * 3_600_000;

/**
 * Takes renewed certificates into use while connections go on: twice a day whatever the files
 * hold then.
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
