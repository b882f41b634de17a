import type { MethodName, ParamsOf, ResultOf } from '@posthouse/protocol';
import type { Core } from '../core.ts';
import { RelayUnreachable } from '../errors.ts';
import { isTemporary, retryHintOf, waitBeforeRetry } from './backoff.ts';
import { checkResult } from './check-response.ts';
import { withDeadline } from './deadline.ts';
import type { VerifiedRelay } from './discovery.ts';
import { HttpWire } from './http-wire.ts';

/** Timeout of one exchange, in milliseconds. */
const timeout = 30_000;

/**
 * Calls a method that needs no session, over the first HTTPS address that answers. A temporary
 * refusal is retried; an unreachable relay is not, because other relays can be asked.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function callWithoutSession<M extends MethodName>(
  core: Core,
  { relay, signal }: { readonly relay: VerifiedRelay; readonly signal: AbortSignal },
  call: { readonly method: M; readonly params: ParamsOf<M> },
): Promise<ResultOf<M>> {
  const { clock, random, retry } = core;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callOnce(core, { relay, signal }, call);
    } catch (error) {
      if (error instanceof RelayUnreachable || !isTemporary(error)) throw error;
      const wait = waitBeforeRetry(attempt, retry, { random, hintSeconds: retryHintOf(error) });
      if (wait === undefined) throw error;
      await clock.sleep(wait, signal);
    }
  }
}

async function callOnce<M extends MethodName>(
  { network, transport }: Core,
  { relay, signal }: { readonly relay: VerifiedRelay; readonly signal: AbortSignal },
  { method, params }: { readonly method: M; readonly params: ParamsOf<M> },
): Promise<ResultOf<M>> {
  let failure: unknown;
  for (const address of relay.https) {
    const wire = new HttpWire(address, network, transport);
    try {
      const value = await withDeadline(signal, timeout, (bounded) =>
        wire.exchange(method, params as object, { signal: bounded }),
      );
      return checkResult(method, value);
    } catch (error) {
      if (!(error instanceof RelayUnreachable)) throw error;
      failure = error;
    }
  }
  throw failure;
}
