/**
 * The one way from a decoded request to its answer, for every transport: catalogue, session and
 * mode, rate, parameters, handler, error. The order of refusals is chapter 02, section 18.
 */
import {
  isMethodName,
  type MethodDefinition,
  type MethodName,
  methods,
  ProtocolError,
} from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { callAnswered } from '../observability/events.ts';
import type { Session } from '../sessions/session.ts';
import type { ConnectionBinding } from './call.ts';
import type { AnyHandler, Handlers, ResultValue } from './handler.ts';
import { checkParams } from './params.ts';
import { RateLimiter, takeFrom } from './rate-limiter.ts';
import { refusalOf } from './refusal.ts';

/** A request as a transport decoded it. */
export interface DecodedRequest {
  readonly method: string;
  /** Called once the session is known; may throw a `ProtocolError`. */
  readonly params: () => JsonValue;
  readonly form: 'query' | 'object';
  readonly origin: string;
  /** Charged for calls without a session. */
  readonly address: string;
  /** The token of a header, or the binding of a connection. */
  readonly credentials: string | undefined | ConnectionBinding;
}

export type Answer =
  | { readonly ok: true; readonly result: ResultValue }
  | { readonly ok: false; readonly error: ProtocolError };

export class Dispatcher {
  readonly #context: RelayContext;
  readonly #handlers: Handlers;
  readonly #accounts: RateLimiter;
  readonly #addresses: RateLimiter;

  constructor(context: RelayContext, handlers: Handlers) {
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
      return { ok: false, error: refusalOf(this.#context, request.method, error) };
    }
  }

  async #call(request: DecodedRequest): Promise<ResultValue> {
    const { method, definition, handler } = this.#find(request.method);
    const session = await this.#authorize(request, definition);
    const params = request.params();
    if (definition.handlerChecksParams !== true) checkParams(definition, params);
    const { result, notices } = await handler(this.#context, {
      method,
      params,
      session,
      origin: request.origin,
      address: request.address,
      form: request.form,
      connection: typeof request.credentials === 'object' ? request.credentials : undefined,
    });
    if (notices !== undefined && notices.length > 0) this.#context.bus.publish(notices);
    return result;
  }

  #isServed(name: string): name is MethodName {
    return isMethodName(name) && Object.hasOwn(this.#handlers, name);
  }

  /** Methods of modules this relay does not host have no handler, and do not exist (02 §14). */
  #find(name: string): {
    readonly method: MethodName;
    readonly definition: MethodDefinition;
    readonly handler: AnyHandler;
  } {
    if (!this.#isServed(name)) {
      throw new ProtocolError('method_not_found', 'this relay has no such method');
    }
    return {
      method: name,
      definition: methods[name],
      handler: this.#handlers[name] as AnyHandler,
    };
  }

  /** Finds the session that the method demands, and charges the caller's rate limit. */
  async #authorize(
    request: DecodedRequest,
    definition: MethodDefinition,
  ): Promise<Session | undefined> {
    if (definition.session === 'none') {
      await this.#chargeWithoutRule(request);
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

  /**
   * Charges a call that needs no session: to the account of the session that it carries all the
   * same, as far as that costs no look-up; otherwise to the address, which others may share.
   */
  async #chargeWithoutRule({
    method,
    credentials,
    origin,
    address,
  }: DecodedRequest): Promise<void> {
    const { sessions, limits } = this.#context;
    const carried =
      typeof credentials === 'object'
        ? credentials.bound?.dead === false && credentials.bound.session
        : credentials !== undefined &&
          sessions.isCached(credentials) &&
          (await sessions.find(credentials, origin));
    if (carried) takeFrom(this.#accounts, carried.account);
    else if (method === 'account.route.resolve') {
      // Two reads of storage. A client resolves one route for each relay or recipient it writes to.
      takeFrom(this.#addresses, address, 1 / limits.routeResolvesPerCall);
    } else takeFrom(this.#addresses, address);
  }

  async #session({ credentials, origin, address }: DecodedRequest): Promise<Session> {
    const { sessions } = this.#context;
    if (typeof credentials === 'object') {
      const { bound } = credentials;
      if (bound !== undefined && !bound.dead)
        return await this.#confirm(credentials, bound.session);
      takeFrom(this.#addresses, address);
    } else if (credentials !== undefined) {
      // An uncached token costs a storage read, so the address is charged first. A call with a valid
      // token is charged to its account alone.
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

  /** Confirms a connection's session: from storage while notices of its end may be missed. */
  async #confirm(connection: ConnectionBinding, session: Session): Promise<Session> {
    const { bus, sessions } = this.#context;
    if (bus.isConnected) return session;
    const confirmed = await sessions.confirm(session);
    if (confirmed !== undefined) return confirmed;
    connection.end(session);
    throw noSession();
  }
}

function noSession(): ProtocolError {
  return new ProtocolError('unauthorized', 'no valid session');
}
