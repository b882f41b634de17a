/** Calls, as transports make them and handlers receive them. No handler knows its transport. */
import type { MethodName, methods, ParamsOf } from '@posthouse/protocol';
import type { KeyToSeal, SealedKey } from '@posthouse/protocol/crypto';
import type { JsonValue } from '@posthouse/protocol/json';
import type { AccountSession, DeviceSession, Session } from '../sessions/session.ts';
import type { Work } from './prices.ts';

/**
 * The parameters of a method, checked against its schema. A method that checks its parameters itself
 * gets the decoded value.
 */
type CallParams<N extends MethodName> = (typeof methods)[N] extends {
  readonly handlerChecksParams: true;
}
  ? JsonValue
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
  /** An object that passed the method's schema, unless the method checks its parameters itself. */
  readonly params: JsonValue;
  readonly session: Session | undefined;
  /** Origin of the public address that received the request (02 section 8). */
  readonly origin: string;
  /** Address of the client. */
  readonly address: string;
  /** `query` for a `GET` request, which refuses what it cannot express (03 section 5.1). */
  readonly form: 'query' | 'object';
  /** The WebSocket connection of the call, for renewal (02 section 10.6); absent over HTTP. */
  readonly connection: ConnectionBinding | undefined;
  /**
   * Charges the caller for work that the parameters and the result do not show: call it before the
   * work. Bytes, listed IDs and rows, and verified signatures are charged without it.
   */
  readonly charge: (work: Work) => void;
  /** Seals keys in turns of the caller; see `KeySealer` of the context. */
  readonly sealKeys: (keys: Iterable<KeyToSeal>) => Promise<(SealedKey | undefined)[]>;
}

/** A call of one method, with the parameters and the session that its catalogue entry demands. */
export interface Call<N extends MethodName> extends Omit<AnyCall, 'method' | 'params' | 'session'> {
  readonly method: N;
  readonly params: CallParams<N>;
  readonly session: CallSession<N>;
}

/** The part of a WebSocket connection that authentication and subscriptions use (02 §10.5, §13). */
export interface ConnectionBinding {
  /** The session the connection is bound to; `dead` after that session ended. */
  readonly bound: { readonly session: Session; readonly dead: boolean } | undefined;
  /** Binds or renews; takes effect after the response was sent. */
  bind(session: Session): void;
  /** Marks the binding as dead if it still uses this session, which has ended. */
  end(session: Session): void;
  /**
   * Replaces the connection's subscriptions of one kind; replacements of a kind run one at a time
   * (02 §13).
   *
   * @param confirm returns the sequence of each timeline at which the right to read it was
   *   confirmed; if it throws, the subscriptions stay as they are
   * @throws ProtocolError `bad_request` if an addition exceeds the limit; `rate_limited` if one
   *   exceeds the total; what `confirm` throws
   */
  setSubscriptions(
    request: SubscriptionRequest,
    confirm: () => Promise<ReadonlyMap<string, number>>,
  ): Promise<void>;
}

/** Kinds of subscriptions; the sets of one connection are independent (02 §13). */
export type SubscriptionKind = 'group' | 'channel';

export interface SubscriptionRequest {
  readonly kind: SubscriptionKind;
  /** The complete new set, without repeats. */
  readonly ids: readonly string[];
  /** The largest size of a set that adds an ID. */
  readonly limit: number;
  /** Subscriptions of the kind by all connections of one account in the process. */
  readonly perAccount: number;
  /** Subscriptions of the kind by all connections of the process. */
  readonly total: number;
}
