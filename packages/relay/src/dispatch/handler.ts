import type { MethodName } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import type { AnyCall, Call } from './call.ts';
import type { ResultValue } from './json-text.ts';
import type { Notice } from './notice.ts';

export { JsonText, type ResultValue } from './json-text.ts';

/** What a handler returns. Notices are published only after what the handler wrote is durable. */
export interface HandlerResult {
  /** The response object; `null` for a method that defines none. */
  readonly result: ResultValue;
  readonly notices?: readonly Notice[];
}

/**
 * Handles one method. The catalogue gives the type of its parameters and of its session.
 *
 * @example
 * const relayInfo: Handler<'relay.info'> = async ({ identity }) => ({
 *   result: { relay_id: identity.relayId },
 * });
 */
export type Handler<N extends MethodName> = (
  context: RelayContext,
  call: Call<N>,
) => Promise<HandlerResult>;

/** A handler as dispatch calls it, after it checked parameters and session against the catalogue. */
export type AnyHandler = (context: RelayContext, call: AnyCall) => Promise<HandlerResult>;

/** Handlers by the method's dotted name; a method without one does not exist at this relay. */
export type Handlers = { readonly [N in MethodName]?: Handler<N> };

/**
 * All handlers of the methods whose names begin with `P`: a module that lacks one does not compile.
 *
 * @example
 * const handlers = { 'relay.info': info, 'relay.descriptor': descriptor } satisfies HandlersOf<'relay'>;
 */
export type HandlersOf<P extends string> = Required<
  Pick<Handlers, Extract<MethodName, `${P}.${string}`>>
>;
