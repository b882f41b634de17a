/**
 * The one way from a decoded request to its answer, for every transport: catalogue, session and
 * mode, rate, parameters, handler, error. The order of refusals is chapter 02, section 18.
 */
import {
  encodeBase64url,
  isMethodName,
  type MethodDefinition,
  methods,
  ProtocolError,
} from '@posthouse/protocol';
import { JsonError, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { callAnswered, callFailed } from '../observability/events.ts';
import type { Session } from '../sessions/session.ts';
import type { ConnectionBinding } from './call.ts';
import type { Handler, ResultValue } from './handler.ts';
import { checkParams } from './params.ts';
import { RateLimiter } from './rate-limiter.ts';

/** A request as a transport decoded it. */
export interface DecodedRequest {
  readonly method: string;
  /** Called once the session is known; may throw a `ProtocolError`. */
  readonly params: () => JsonValue;
  readonly form: 'query' | 'object';
  readonly origin: string;
  /** Whose allowance calls without a session use. */
  readonly address: string;
  /** Where the session comes from: a header's token, or the binding of a connection. */
  readonly credentials: string | undefined | ConnectionBinding;
}

export type Answer =
  | { readonly ok: true; readonly result: ResultValue }
  | { readonly ok: false; readonly error: ProtocolError };

export class Dispatcher {
  readonly #context: RelayContext;
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #accounts: RateLimiter;
  readonly #addresses: RateLimiter;

  constructor(context: RelayContext, handlers: Readonly<Record<string, Handler>>) {
    const { clock, limits } = context;
    this.#context = context;
    this.#handlers = handlers;
    this.#accounts = new RateLimiter({
      rate: limits.accountRate,
      burst: limits.accountBurst,
      clock,
    });
    this.#addresses = new RateLimiter({
      rate: limits.addressRate,
      burst: limits.addressBurst,
      clock,
    });
  }

  /** Answers a request; never throws. What the handler wrote is durable when this resolves. */
  async answer(request: DecodedRequest): Promise<Answer> {
    const started = this.#context.clock.monotonic();
    const answer = await this.#answer(request);
    callAnswered(this.#context, {
      // The name of an unknown method is the caller's text, and no label.
      method: this.#isServed(request.method) ? request.method : 'unknown',
      transport: typeof request.credentials === 'object' ? 'websocket' : 'http',
      code: answer.ok ? 'ok' : answer.error.code,
      milliseconds: this.#context.clock.monotonic() - started,
    });
    return answer;
  }

  async #answer(request: DecodedRequest): Promise<Answer> {
    try {
      return { ok: true, result: await this.#call(request) };
    } catch (error) {
      return { ok: false, error: this.#refusal(request.method, error) };
    }
  }

  async #call(request: DecodedRequest): Promise<ResultValue> {
    const { definition, handler } = this.#lookUp(request.method);
    const session = await this.#authorize(request, definition);
    const params = request.params();
    if (definition.handlerChecksParams !== true) checkParams(definition, params);
    const { result, notices } = await handler(this.#context, {
      method: definition.name,
      params: params as JsonObject,
      session,
      origin: request.origin,
      form: request.form,
      connection: typeof request.credentials === 'object' ? request.credentials : undefined,
    });
    if (notices !== undefined && notices.length > 0) this.#context.bus.publish(notices);
    return result;
  }

  #isServed(name: string): boolean {
    return isMethodName(name) && Object.hasOwn(this.#handlers, name);
  }

  /** Methods of modules this relay does not host have no handler, and do not exist (02 §14). */
  #lookUp(name: string): { definition: MethodDefinition; handler: Handler } {
    const handler = this.#isServed(name) ? this.#handlers[name] : undefined;
    if (handler === undefined || !isMethodName(name)) {
      throw new ProtocolError('method_not_found', 'this relay has no such method');
    }
    return { definition: methods[name], handler };
  }

  /** The session the method asks for, and the allowance of whoever calls. */
  async #authorize(
    request: DecodedRequest,
    definition: MethodDefinition,
  ): Promise<Session | undefined> {
    if (definition.session === 'none') {
      takeFrom(this.#addresses, request.address);
      return undefined;
    }
    const session = await this.#session(request);
    takeFrom(this.#accounts, session.account);
    if (definition.session !== 'any' && definition.session !== session.mode) {
      throw new ProtocolError(
        'forbidden',
        `the method asks for a session in ${definition.session} mode`,
      );
    }
    return session;
  }

  async #session({ credentials, origin, address }: DecodedRequest): Promise<Session> {
    const { sessions } = this.#context;
    if (typeof credentials === 'object') {
      const { bound } = credentials;
      if (bound !== undefined && !bound.dead)
        return await this.#confirm(credentials, bound.session);
      takeFrom(this.#addresses, address);
    } else if (credentials !== undefined) {
      // Whoever guesses tokens makes us read storage each time, so that is limited before; a good
      // token is no call without a session, and counts for its account only.
      const isCached = sessions.isCached(credentials);
      if (!isCached) takeFrom(this.#addresses, address);
      const session = await sessions.find(credentials, origin);
      if (session !== undefined) {
        if (!isCached) this.#addresses.giveBack(address);
        return session;
      }
      if (isCached) takeFrom(this.#addresses, address);
    } else {
      takeFrom(this.#addresses, address);
    }
    throw noSession();
  }

  /** A connection's session: while notices of its end may be missed, storage is asked each time. */
  async #confirm(connection: ConnectionBinding, session: Session): Promise<Session> {
    const { bus, sessions } = this.#context;
    if (bus.isWhole) return session;
    const confirmed = await sessions.confirm(session);
    if (confirmed !== undefined) return confirmed;
    connection.end(session);
    throw noSession();
  }

  #refusal(method: string, error: unknown): ProtocolError {
    if (error instanceof ProtocolError && error.code !== 'internal_error') return error;
    if (error instanceof JsonError) return new ProtocolError('bad_request', error.message);
    const id = encodeBase64url(this.#context.random(9));
    callFailed(this.#context, { method, id, error });
    return new ProtocolError('internal_error', `internal error ${id}`);
  }
}

function noSession(): ProtocolError {
  return new ProtocolError('unauthorized', 'no valid session');
}

function takeFrom(limiter: RateLimiter, key: string): void {
  const wait = limiter.take(key);
  if (wait === 0) return;
  throw new ProtocolError('rate_limited', 'too many calls', { data: { retry_after: wait } });
}
