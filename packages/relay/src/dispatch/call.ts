/** What travels between transport, dispatch and handlers. No handler knows its transport. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { Session } from '../sessions/session.ts';

/** One decoded request. `params` passed the method's schema and holds no forbidden `null`. */
export interface Call<P = JsonObject> {
  readonly method: string;
  readonly params: P;
  /** Present where the method's session rule asks for one. */
  readonly session: Session | undefined;
  /** Origin of the public address the request came to (02 section 8). */
  readonly origin: string;
  /** `GET` forms refuse what they cannot express; everything else is the same (03 section 5.1). */
  readonly form: 'query' | 'object';
  /** The bound WebSocket connection, for renewal (02 section 10.6); absent over HTTP. */
  readonly connection: ConnectionBinding | undefined;
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
