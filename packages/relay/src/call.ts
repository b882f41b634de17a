/** What travels between transport, dispatch and handlers. No handler knows its transport. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from './context.ts';

/** A session as a call sees it: confirmed, unexpired, of this origin. */
export type Session = DeviceSession | AccountSession;

export interface DeviceSession {
  /** Under which it is stored: nobody can make its token of it. */
  readonly id: string;
  readonly mode: 'device';
  readonly account: string;
  readonly deviceId: string;
  readonly expiresAt: number;
}

export interface AccountSession {
  readonly id: string;
  readonly mode: 'account';
  readonly account: string;
  readonly expiresAt: number;
}

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
  hearOf(
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
  readonly most: number;
}

/** What a handler answers. Notices leave only after what it wrote is durable. */
export interface Outcome {
  /** The response object; `null` for a method that defines none. */
  readonly result: ResultValue;
  readonly notices?: readonly Notice[];
}

/**
 * A response object. {@link JsonText} anywhere in it is stored canonical text that leaves as it
 * is, neither parsed nor written again.
 */
export type ResultValue =
  | null
  | boolean
  | number
  | string
  | JsonText
  | readonly ResultValue[]
  | { readonly [name: string]: ResultValue | undefined };

/** Canonical text of a stored protocol object. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * What other connections, here or at another process of this relay, must hear. Hints name the
 * devices they are for, as the transaction saw them that made the notice: whoever was removed
 * before cannot hear of what came after, whichever notices were lost on the way.
 */
export type Notice =
  /** `message.timeline.changed` to the account's currently valid devices. */
  | {
      readonly kind: 'timeline';
      readonly account: string;
      readonly head: number;
      readonly deviceIds: readonly string[];
    }
  /** `device.state.changed` to the account's devices that are valid under the new state. */
  | {
      readonly kind: 'device-state';
      readonly account: string;
      readonly revision: number;
      readonly deviceIds: readonly string[];
    }
  /**
   * Sessions of these devices end at once, with their pushes and subscriptions. Who sends it ended
   * them with `revokeSessions` of `auth/` in the transaction that removed the devices.
   */
  | { readonly kind: 'revoked'; readonly account: string; readonly deviceIds: readonly string[] }
  /**
   * Sessions of this device end at `expiresAt` at the latest. Who sends it shortened them with
   * `capSessions` of `auth/` in the transaction that shortened the certificate.
   */
  | {
      readonly kind: 'capped';
      readonly account: string;
      readonly deviceId: string;
      readonly expiresAt: number;
    }
  /**
   * `group.timeline.changed` to connections that subscribed the group and may read it now. Who was
   * confirmed before `accessEnded`, the sequence of the last event that ended somebody's right to
   * read, is looked up again first.
   */
  | {
      readonly kind: 'group-timeline';
      readonly group: string;
      readonly head: number;
      readonly accessEnded: number;
    }
  /** `group.application.changed` to subscribed connections of these accounts. */
  | {
      readonly kind: 'group-applications';
      readonly group: string;
      readonly accounts: readonly string[];
    }
  /** `group.member.recovery.changed` to subscribed connections of these accounts. */
  | {
      readonly kind: 'group-recoveries';
      readonly group: string;
      readonly accounts: readonly string[];
    }
  /** `channel.timeline.changed` to connections that subscribed the channel. */
  | { readonly kind: 'channel-timeline'; readonly channel: string; readonly head: number }
  /** Notices may have been lost: what was learned from them must be looked up in storage. */
  | { readonly kind: 'gap' };

export type Handler<P = JsonObject> = (context: RelayContext, call: Call<P>) => Promise<Outcome>;
