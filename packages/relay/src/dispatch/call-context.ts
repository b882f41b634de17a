import type { RelayContext, Verifier } from '../context.ts';
import type { CallLog } from './call-log.ts';

/**
 * Returns what makes the context of a call: the relay's, with the verifier that charges for the call and
 * the call's own log. It inherits the rest, since a copy of all parts would be made for each call.
 */
export function callContexts(
  context: RelayContext,
): (verifier: Verifier, log: CallLog) => RelayContext {
  class CallContext {
    readonly verifier: Verifier;
    readonly #log: CallLog;

    constructor(verifier: Verifier, log: CallLog) {
      this.verifier = verifier;
      this.#log = log;
    }

    get log() {
      return this.#log.log;
    }
  }
  Object.setPrototypeOf(CallContext.prototype, context);
  return (verifier, log) => new CallContext(verifier, log) as unknown as RelayContext;
}
