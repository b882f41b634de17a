import type { MethodName, Network, ParamsOf, ResultOf } from '@posthouse/protocol';
import { RelayUnreachable } from '../errors.ts';
import type { VerifiedRelay } from '../network/discovery.ts';
import { checkResult } from './answers.ts';
import { withDeadline } from './deadline.ts';
import { HttpChannel } from './http-channel.ts';
import type { Transport } from './transport.ts';

/** Milliseconds one exchange may take. */
const timeout = 30_000;

/**
 * Calls a method that needs no session, over the first HTTPS address that answers.
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function callWithoutSession<M extends MethodName>(
  parts: {
    readonly network: Network;
    readonly transport: Transport;
    readonly relay: VerifiedRelay;
    readonly signal: AbortSignal;
  },
  method: M,
  params: ParamsOf<M>,
): Promise<ResultOf<M>> {
  const { network, transport, relay, signal } = parts;
  let failure: unknown;
  for (const address of relay.https) {
    const channel = new HttpChannel(address, network, transport);
    try {
      const value = await withDeadline(signal, timeout, (bounded) =>
        channel.exchange(method, params as object, { signal: bounded }),
      );
      return checkResult(method, value);
    } catch (error) {
      if (!(error instanceof RelayUnreachable)) throw error;
      failure = error;
    }
  }
  throw failure;
}
