/**
 * The one way from a frame of relay RPC to its answer: envelope, catalogue, quota, parameters,
 * handler, error (07 §C2, §C3, §C9). The connection was authenticated before (07 §B4).
 */
import { ProtocolError } from '@posthouse/protocol';
import {
  type RelayMethodName,
  type RelayNotificationName,
  relayMethods,
  relayNotifications,
} from '@posthouse/protocol/federation';
import {
  decodeUtf8,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { callAnswered } from '../observability/events.ts';
import { relayServed } from '../observability/peer-events.ts';
import { encodeFailure, encodeSuccess, readRelayEnvelope } from './envelope.ts';
import type { ResultValue } from './handler.ts';
import { checkParams } from './params.ts';
import { RateLimiter, takeFrom } from './rate-limiter.ts';
import { refusalOf } from './refusal.ts';
import type { AnyRelayHandler, PeerRelay, RelayHandlers } from './relay-handler.ts';

/** What is sent for a frame. */
export type RelayReply =
  /** JSON text of one response. */
  | { readonly kind: 'answer'; readonly text: string }
  /** The frame held a notification: the stream is closed without an answer. */
  | { readonly kind: 'none' }
  /** The frame is no UTF-8: the stream is reset (07 §C2). */
  | { readonly kind: 'reset' };

export class RelayDispatcher {
  readonly #context: RelayContext;
  readonly #handlers: RelayHandlers;
  readonly #relays: RateLimiter;
  readonly #accounts: RateLimiter;

  constructor(context: RelayContext, handlers: RelayHandlers) {
    const { clock } = context;
    const { limits } = context;
    const keys = limits.rememberedCallers;
    this.#context = context;
    this.#handlers = handlers;
    this.#relays = new RateLimiter({
      rate: limits.relayRate,
      burst: limits.relayBurst,
      clock,
      keys,
    });
    this.#accounts = new RateLimiter({
      ...{ rate: limits.relayAccountRate, burst: limits.relayAccountBurst, clock, keys },
    });
  }

  /** Answers a frame; never throws. What the handler wrote is durable when this resolves. */
  async answer(frame: Uint8Array, peer: PeerRelay): Promise<RelayReply> {
    let text: string;
    try {
      text = decodeUtf8(frame);
    } catch {
      return { kind: 'reset' };
    }
    const envelope = readRelayEnvelope(text);
    switch (envelope.kind) {
      case 'refused':
        return { kind: 'answer', text: envelope.answer };
      case 'notification':
        if (isNotification(envelope.method)) await this.#timed(peer, envelope);
        return { kind: 'none' };
      case 'request': {
        const { id } = envelope;
        const outcome = await this.#timed(peer, envelope);
        if (outcome instanceof ProtocolError) {
          return { kind: 'answer', text: encodeFailure(id, outcome) };
        }
        return { kind: 'answer', text: encodeSuccess(id, outcome.result) };
      }
    }
  }

  async #timed(peer: PeerRelay, request: ReceivedRequest): Promise<Answered> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    const answered = await this.#call(peer, request).catch((error: unknown) =>
      refusalOf(this.#context, request.method, error),
    );
    // The name of an unknown method is the peer's text, and no label.
    const method = this.#find(request) === undefined ? 'unknown' : request.method;
    const code = answered instanceof ProtocolError ? answered.code : 'ok';
    relayServed(this.#context, { method, code });
    callAnswered(this.#context, {
      ...{ method, transport: 'relay', code },
      milliseconds: clock.monotonic() - started,
    });
    return answered;
  }

  async #call(peer: PeerRelay, request: ReceivedRequest): Promise<Answered> {
    takeFrom(this.#relays, peer.relayId);
    const found = this.#find(request);
    if (found === undefined) {
      throw new ProtocolError('method_not_found', 'this relay has no such method');
    }
    const { name, definition, handler } = found;
    const { params } = request;
    checkParams(definition, params);
    takeFrom(this.#accounts, `${peer.relayId} ${targetOf(params)}`);
    const { result, notices } = await handler(this.#context, { method: name, params, peer });
    if (notices !== undefined && notices.length > 0) this.#context.bus.publish(notices);
    return { result };
  }

  #find({ kind, method }: ReceivedRequest) {
    if (kind === 'request' ? !isMethod(method) : !isNotification(method)) return undefined;
    const name = method as RelayMethodName | RelayNotificationName;
    const handler = this.#handlers[name] as AnyRelayHandler | undefined;
    if (handler === undefined) return undefined;
    const definition = isMethod(name) ? relayMethods[name] : relayNotifications[name];
    return { name, definition, handler };
  }
}

interface ReceivedRequest {
  readonly kind: 'request' | 'notification';
  readonly method: string;
  readonly params: JsonValue;
}

type Answered = { readonly result: ResultValue } | ProtocolError;

function isMethod(name: string): name is RelayMethodName {
  return Object.hasOwn(relayMethods, name);
}

function isNotification(name: string): name is RelayNotificationName {
  return Object.hasOwn(relayNotifications, name);
}

/** Returns the account that a request is about. */
function targetOf({ account, envelope }: JsonObject): JsonValue | undefined {
  return account ?? (isJsonObject(envelope) ? envelope.to : undefined);
}
