/**
 * The one way from a frame of relay RPC to its answer: quota, envelope, catalogue, parameters,
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
  factsOf,
  isJsonObject,
  JsonError,
  type JsonObject,
  type JsonValue,
} from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { callAnswered } from '../observability/events.ts';
import { relayServed } from '../observability/peer-events.ts';
import { callContexts } from './call-context.ts';
import { CallLog } from './call-log.ts';
import { checkRoomForWrite } from './disk-floor.ts';
import { encodeResult } from './encode.ts';
import {
  encodeFailure,
  encodeSuccess,
  guessId,
  type RefusedRequest,
  type RpcNotification,
  type RpcRequest,
  readRelayEnvelope,
  readRelayEnvelopeInSteps,
} from './envelope.ts';
import { JsonText } from './json-text.ts';
import { MeteredVerifier } from './metered-verifier.ts';
import { checkLargeParams, checkParams } from './params.ts';
import { countItems, priceOf, type Work } from './prices.ts';
import { RateLimiter, takeFrom, tooManyCalls } from './rate-limiter.ts';
import { refusalOf } from './refusal.ts';
import type { AnyRelayHandler, PeerRelay, RelayHandlers } from './relay-handler.ts';
import type { RelayTexts } from './relay-texts.ts';
import { largeText } from './slices.ts';
import { deliveredBytes } from './stored-bytes.ts';

/** What is sent for a frame. */
export type RelayReply =
  /** JSON text of one response. */
  | {
      readonly kind: 'answer';
      readonly text: string;
      /** The frame was no JSON: a fault of the relay. */
      readonly isFault?: boolean;
    }
  /** The frame held a notification: the stream is closed without an answer. */
  | { readonly kind: 'none' }
  /** The frame is no UTF-8: the stream is reset (07 §C2). */
  | { readonly kind: 'reset' }
  /** The frame was not read, and has no `id` to answer to: the stream is reset (07 §C2). */
  | { readonly kind: 'unread' };

/** How a request or notification is decoded. */
const reading = { atOnce: readRelayEnvelope, inSteps: readRelayEnvelopeInSteps };

export class RelayDispatcher {
  readonly #context: RelayContext;
  readonly #contextOf: ReturnType<typeof callContexts>;
  readonly #handlers: RelayHandlers;
  readonly #texts: RelayTexts;
  readonly #relays: RateLimiter;
  readonly #accounts: RateLimiter;

  /** @param texts reads the requests */
  constructor(context: RelayContext, handlers: RelayHandlers, texts: RelayTexts) {
    const { clock } = context;
    const { limits } = context;
    const keys = limits.rememberedCallers;
    this.#context = context;
    this.#contextOf = callContexts(context);
    this.#handlers = handlers;
    this.#texts = texts;
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

  /**
   * Answers a frame. What the handler wrote is durable when this resolves.
   *
   * @throws the signal's reason if it aborts before the frame was read
   */
  async answer(frame: Uint8Array, peer: PeerRelay, signal?: AbortSignal): Promise<RelayReply> {
    const { relayId } = peer;
    const wait = this.#relays.takeOnCredit(relayId, 1 + priceOf({ bytes: frame.length }));
    // A smaller frame is read, so that the answer has its `id`.
    if (wait > 0 && frame.length >= largeText) return this.#refuse(frame, tooManyCalls(wait));
    try {
      using _room = await this.#texts.takeRoom(relayId, frame, signal);
      const options = { ...reading, ...(signal !== undefined && { signal }) };
      const envelope = await this.#texts.read(relayId, frame, options);
      return await this.#answer(envelope, { peer, wait, bytes: frame.length });
    } catch (error) {
      if (error instanceof JsonError) return { kind: 'reset' };
      if (error instanceof ProtocolError) return this.#refuse(frame, error);
      throw error;
    }
  }

  /** Refuses a frame that was not read. */
  #refuse(frame: Uint8Array, error: ProtocolError): RelayReply {
    relayServed(this.#context, { method: 'unknown', code: error.code });
    const id = guessId(frame);
    return id === null ? { kind: 'unread' } : { kind: 'answer', text: encodeFailure(id, error) };
  }

  async #answer(
    envelope: RpcRequest | RpcNotification | RefusedRequest,
    options: CallOptions,
  ): Promise<RelayReply> {
    switch (envelope.kind) {
      case 'refused':
        return { kind: 'answer', text: envelope.answer, isFault: envelope.isSyntax === true };
      case 'notification':
        if (isNotification(envelope.method)) await this.#timed(envelope, options);
        return { kind: 'none' };
      case 'request': {
        const { id } = envelope;
        const outcome = await this.#timed(envelope, options);
        if (outcome instanceof ProtocolError) {
          return { kind: 'answer', text: encodeFailure(id, outcome) };
        }
        return { kind: 'answer', text: encodeSuccess(id, outcome.result) };
      }
    }
  }

  async #timed(request: ReceivedRequest, options: CallOptions): Promise<Answered> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    const log = new CallLog(this.#context, { relay: options.peer.relayId });
    const answered = await this.#call(request, options, log).catch((error: unknown) =>
      refusalOf(this.#context, request.method, error, log),
    );
    // The name of an unknown method is the peer's text, and no label.
    const method = this.#find(request) === undefined ? 'unknown' : request.method;
    const code = answered instanceof ProtocolError ? answered.code : 'ok';
    relayServed(this.#context, { method, code });
    const milliseconds = clock.monotonic() - started;
    callAnswered(this.#context, { method, transport: 'relay', code, milliseconds }, log);
    return answered;
  }

  async #call(
    request: ReceivedRequest,
    { peer, wait, bytes }: CallOptions,
    own: CallLog,
  ): Promise<Answered> {
    if (wait > 0) throw tooManyCalls(wait);
    const found = this.#find(request);
    if (found === undefined) {
      throw new ProtocolError('method_not_found', 'this relay has no such method');
    }
    const { name, definition, handler } = found;
    const { relayId } = peer;
    const { network, verifier, bus, dailyBytes } = this.#context;
    const charge = (work: Work) => void this.#relays.charge(relayId, priceOf(work));
    const { params } = request;
    charge({ items: countItems(params) });
    if (factsOf(params) === undefined) checkParams(definition, params);
    else await this.#texts.inSteps(relayId, checkLargeParams(network, definition, params));
    takeFrom(this.#accounts, `${relayId} ${targetOf(params as JsonObject)}`);
    if (name === 'message.deliver') checkRoomForWrite(this.#context);
    const stored = deliveredBytes(relayId, { method: name, params, bytes });
    if (stored !== undefined) dailyBytes.require(stored);
    const metered = new MeteredVerifier(verifier, `relay ${relayId}`, charge);
    const context = this.#contextOf(metered, own);
    const { result, notices = [] } = await handler(context, { method: name, params, peer });
    if (notices.length > 0) bus.publish(notices);
    // A repeat was stored before, and announces nothing.
    const saving = stored && notices.length > 0 ? dailyBytes.add(stored, true) : undefined;
    if (saving !== undefined) await saving;
    const answer = result === null ? null : new JsonText(encodeResult(result));
    charge({ items: countItems(result), bytes: answer?.text.length ?? 0 });
    return { result: answer };
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

interface CallOptions {
  readonly peer: PeerRelay;
  /** Of the frame. */
  readonly bytes: number;
  /** Seconds until the relay has a unit, if its request is refused; else 0. */
  readonly wait: number;
}

type Answered = { readonly result: JsonText | null } | ProtocolError;

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
