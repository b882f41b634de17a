/** What travels between transport, dispatch and handlers. No handler knows its transport. */
import type { MethodName, methods, ParamsOf } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountSession, DeviceSession, Session } from '../sessions/session.ts';

/**
 * The parameters of a method, checked against its schema. A method that checks its parameters itself
 * gets them as decoded.
 */
type CallParams<N extends MethodName> = (typeof methods)[N] extends {
  readonly handlerChecksParams: true;
}
  ? JsonObject
  : ParamsOf<N>;

/** The session of a call, by the session rule of its method (02 §14). */
type CallSession<N extends MethodName> = {
  readonly none: undefined;
  readonly device: DeviceSession;
  readonly account: AccountSession;
  readonly any: Session;
}[(typeof methods)[N]['session']];

/** A call whose method is known only at run time. */
export interface AnyCall {
  readonly method: MethodName;
  /** Passed the method's schema and holds no forbidden `null`. */
  readonly params: JsonObject;
  readonly session: Session | undefined;
  /** Origin of the public address that received the request (02 section 8). */
  readonly origin: string;
  /** `query` for a `GET` request, which refuses what it cannot express (03 section 5.1). */
  readonly form: 'query' | 'object';
  /** The WebSocket connection of the call, for renewal (02 section 10.6); absent over HTTP. */
  readonly connection: ConnectionBinding | undefined;
}

/** A call of one method, with the parameters and the session that its catalogue entry demands. */
export interface Call<N extends MethodName> extends Omit<AnyCall, 'method' | 'params' | 'session'> {
  readonly method: N;
  readonly params: CallParams<N>;
  readonly session: CallSession<N>;
}

/** What authentication needs to know and change of a WebSocket connection (02 section 10.5). */
export interface ConnectionBinding {
  /** Identity the connection is bound to; `expired` once its session ended (dead binding). */
  readonly bound: { readonly session: Session; readonly dead: boolean } | undefined;
  /** Takes effect after the response was sent: binds or renews. */
  bind(session: Session): void;
  /** The session turned out to be over: where the connection rests on it still, it is dead now. */
  end(session: Session): void;
  /**
   * Replaces what the connection hears of, one replacement of a kind after the other (02 §13).
   * `confirm` says at which sequence of its timeline the right to hear of each was seen; where it
   * throws, everything stays as it is.
   *
   * @throws ProtocolError `bad_request` for too many where some are added; what `confirm` throws
   */
  setSubscriptions(
    request: SubscriptionRequest,
    confirm: () => Promise<ReadonlyMap<string, number>>,
  ): Promise<void>;
}

/** What can be subscribed; the sets of one connection are independent (02 §13). */
export type SubscriptionKind = 'group' | 'channel';

export interface SubscriptionRequest {
  readonly kind: SubscriptionKind;
  /** The complete set wanted, each named once. */
  readonly ids: readonly string[];
  /** How many it may be where any of them is new. */
  readonly limit: number;
}
