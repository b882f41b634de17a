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
import { TokenLookups } from './token-lookups.ts';

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
  readonly credentials: CheckedToken | undefined | ConnectionBinding;
}

/** The token of an HTTP request, looked up when its headers had arrived. */
export interface CheckedToken {
  readonly token: string;
  /** Absent if the token is good for no session. */
  readonly session: Session | undefined;
}

export type Answer =
  | { readonly ok: true; readonly result: ResultValue }
  | { readonly ok: false; readonly error: ProtocolError };

export class Dispatcher {
  readonly #context: RelayContext;
  readonly #handlers: Handlers;
  readonly #accounts: RateLimiter;
  readonly #addresses: RateLimiter;
  readonly #tokens: TokenLookups;

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
    this.#tokens = new TokenLookups({ context, addresses: this.#addresses });
  }

  /**
   * Finds the session of a token, before the body of its request is read.
   *
   * @throws ProtocolError `rate_limited` if the address used too many tokens that are good for nothing
   */
  async checkToken(
    token: string,
    request: Pick<DecodedRequest, 'method' | 'origin' | 'address'>,
  ): Promise<CheckedToken> {
    try {
      return { token, session: await this.#sessionOf(token, request) };
    } catch (error) {
      throw refusalOf(this.#context, request.method, error);
    }
  }

  /** Answers a request; never throws. What the handler wrote is durable when this resolves. */
  async answer(request: DecodedRequest): Promise<Answer> {
    const started = this.#context.clock.monotonic();
    const answer = await this.#answer(request);
    callAnswered(this.#context, {
      // The name of an unknown method is the caller's text, and no label.
      method: this.#isServed(request.method) ? request.method : 'unknown',
      transport: connectionOf(request) === undefined ? 'http' : 'websocket',
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
      connection: connectionOf(request),
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
      this.#chargeWithoutRule(request);
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
   * same; otherwise to the address, which others may share.
   */
  #chargeWithoutRule({ method, credentials, address }: DecodedRequest): void {
    const { limits } = this.#context;
    const carried = sessionCarried(credentials);
    if (carried) takeFrom(this.#accounts, carried.account);
    else if (method === 'account.route.resolve') {
      // Two reads of storage. A client resolves one route for each relay or recipient it writes to.
      takeFrom(this.#addresses, address, 1 / limits.routeResolvesPerCall);
    } else takeFrom(this.#addresses, address);
  }

  async #session({ credentials, origin, address }: DecodedRequest): Promise<Session> {
    const { sessions } = this.#context;
    if (credentials === undefined) {
      takeFrom(this.#addresses, address);
    } else if ('token' in credentials) {
      // A token without session was charged when it was checked. A session may have ended meanwhile.
      const { token } = credentials;
      const session = credentials.session && (await sessions.find(token, origin));
      if (session !== undefined) return session;
    } else {
      const { bound } = credentials;
      if (bound !== undefined && !bound.dead)
        return await this.#confirm(credentials, bound.session);
      takeFrom(this.#addresses, address);
    }
    throw noSession();
  }

  async #sessionOf(
    token: string,
    { method, origin, address }: Pick<DecodedRequest, 'method' | 'origin' | 'address'>,
  ): Promise<Session | undefined> {
    if (!this.#isServed(method)) return undefined;
    const session = await this.#tokens.find({ token, origin, address });
    // A call that needs no session is charged itself.
    const isCharged = methods[method].session === 'none';
    if (session === undefined && isCharged) this.#addresses.giveBack(address);
    return session;
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

/** Returns the session that a request carries, whether its method asks for one or not. */
function sessionCarried(credentials: DecodedRequest['credentials']): Session | undefined {
  if (credentials === undefined) return undefined;
  if ('token' in credentials) return credentials.session;
  return credentials.bound?.dead === false ? credentials.bound.session : undefined;
}

function connectionOf({ credentials }: DecodedRequest): ConnectionBinding | undefined {
  return credentials === undefined || 'token' in credentials ? undefined : credentials;
}

function noSession(): ProtocolError {
  return new ProtocolError('unauthorized', 'no valid session');
}
