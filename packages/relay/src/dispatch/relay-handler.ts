/** Handlers of requests and notifications that other relays send (07 §C). */
import type {
  RelayMethodName,
  RelayNotificationName,
  RelayParamsOf,
} from '@posthouse/protocol/federation';
import type { RelayContext } from '../context.ts';
import type { HandlerResult } from './handler.ts';

/** The relay at the other end of an authenticated connection (07 §B4). */
export interface PeerRelay {
  readonly relayId: string;
}

/** A request or notification of another relay, with checked parameters. */
interface RelayCall<N extends RelayMethodName | RelayNotificationName> {
  readonly method: N;
  readonly params: RelayParamsOf<N>;
  readonly peer: PeerRelay;
}

/**
 * Handles one request or notification of another relay. The result of a notification is not sent.
 *
 * @example
 * const deviceStatus: RelayHandler<'device.status'> = async (context, { params }) => ({
 *   result: { status: 'inactive' },
 * });
 */
export type RelayHandler<N extends RelayMethodName | RelayNotificationName> = (
  context: RelayContext,
  call: RelayCall<N>,
) => Promise<HandlerResult>;

/** A handler as dispatch calls it, after it checked the parameters against the catalogue. */
export type AnyRelayHandler = (
  context: RelayContext,
  call: Omit<RelayCall<RelayMethodName>, 'method' | 'params'> & {
    readonly method: RelayMethodName | RelayNotificationName;
    readonly params: unknown;
  },
) => Promise<HandlerResult>;

/** Handlers by name; a method without one does not exist at this relay. */
export type RelayHandlers = {
  readonly [N in RelayMethodName | RelayNotificationName]?: RelayHandler<N>;
};
