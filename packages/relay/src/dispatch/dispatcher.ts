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
import { factsOf, type JsonValue } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { callAnswered } from '../observability/events.ts';
import type { Session } from '../sessions/session.ts';
import { unavailable } from '../storage/unavailable.ts';
import { Allowances, type Payer, payerKey } from './allowances.ts';
import type { AnyCall, ConnectionBinding } from './call.ts';
import { callContexts } from './call-context.ts';
import { CallLog } from './call-log.ts';
import { CallTurns } from './call-turns.ts';
import { checkChannelHosted } from './closed-channels.ts';
import { checkDiskRoom } from './disk-floor.ts';
import { encodeResult } from './encode.ts';
import { type AnyHandler, type Handlers, JsonText } from './handler.ts';
import { LongWork } from './long-work.ts';
import { MeteredVerifier } from './metered-verifier.ts';
import { checkLargeParams, checkParams } from './params.ts';
import { countItems, priceOf, type Work } from './prices.ts';
import { refusalOf } from './refusal.ts';
import { storedBytes } from './stored-bytes.ts';
import { type CarriedToken, TokenLookups } from './token-lookups.ts';
import { isRead } from './writes.ts';

/** A request as a transport decoded it. */
export interface DecodedRequest {
  readonly method: string;
  /** Bytes that arrived, for the price. */
  readonly bytes: number;
  /** Whether {@link Dispatcher.takeKnown} has taken the price of what is known. */
  readonly isPaid?: boolean;
  /** Whether it begins in a turn that its payer took, see {@link Dispatcher.turns}. */
  readonly hasTurn?: boolean;
  /** Parses the text of the parameters, before all other checks but the rate; may throw. */
  readonly params: () => JsonValue | Promise<JsonValue>;
  /** Decodes the parameters of a `GET`, once the session is known; may throw. */
  readonly query?: () => JsonValue;
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
  /** The result's text; `null` for a method that defines no result. */
  | { readonly ok: true; readonly result: JsonText | null }
  | { readonly ok: false; readonly error: ProtocolError };

export class Dispatcher {
  /** Runs the long work of all calls. */
  readonly longWork: LongWork;
  /** Turns of payers, to decode a request and begin it. */
  readonly turns: CallTurns;
  readonly #context: RelayContext;
  readonly #contextOf: ReturnType<typeof callContexts>;
  readonly #handlers: Handlers;
  readonly #allowances: Allowances;
  readonly #tokens: TokenLookups;

  constructor(context: RelayContext, handlers: Handlers, longWork: LongWork = new LongWork()) {
    this.#context = context;
    this.#contextOf = callContexts(context);
    this.#handlers = handlers;
    this.longWork = longWork;
    this.#allowances = new Allowances(context);
    const { addresses } = this.#allowances;
    this.#tokens = new TokenLookups({ context, addresses });
    this.turns = new CallTurns(context.clock);
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

  /**
   * Finds the device session of a request that is none of the protocol's methods.
   *
   * @throws ProtocolError `unauthorized`; `forbidden` for an account session; `rate_limited`
   */
  async requireDevice(
    token: string | undefined,
    at: Omit<CarriedToken, 'token'>,
  ): Promise<Session> {
    this.#checkAvailable();
    if (token === undefined) {
      this.#allowances.take({ kind: 'address', id: at.address }, 1);
      throw noSession();
    }
    const session = await this.#tokens.find({ token, ...at });
    if (session === undefined) throw noSession();
    if (session.mode === 'device') return session;
    throw new ProtocolError('forbidden', 'this asks for a session in device mode');
  }

  /** Answers a request; never throws. What the handler wrote is durable when this resolves. */
  async answer(request: DecodedRequest): Promise<Answer> {
    const started = this.#context.clock.monotonic();
    const log = new CallLog(this.#context, { client: request.address });
    let answer: Answer;
    try {
      answer = { ok: true, result: await this.#call(request, log) };
    } catch (error) {
      answer = { ok: false, error: refusalOf(this.#context, request.method, error, log) };
    }
    const call = {
      // The name of an unknown method is the caller's text, and no label.
      method: this.#isServed(request.method) ? request.method : 'unknown',
      transport: connectionOf(request) === undefined ? 'http' : 'websocket',
      code: answer.ok ? 'ok' : answer.error.code,
      milliseconds: this.#context.clock.monotonic() - started,
    } as const;
    callAnswered(this.#context, call, log);
    return answer;
  }

  /** Charges a request that was refused before it was decoded. */
  chargeRefused(payer: Payer, bytes: number): void {
    this.#allowances.charge(payer, 1 + priceOf({ bytes }));
  }

  /**
   * Takes the price of a call of which only the bytes are known.
   *
   * @throws ProtocolError `rate_limited` with the seconds to wait
   */
  takeKnown(payer: Payer, bytes: number): void {
    this.#allowances.take(payer, 1 + priceOf({ bytes }));
  }

  /**
   * Whether a payer owes all that it can owe, so that further refusals cost it nothing: a transport
   * takes its time with what it sends.
   */
  isOverdrawn(payer: Payer): boolean {
    return this.#allowances.isOverdrawn(payer);
  }

  async #call(request: DecodedRequest, own: CallLog): Promise<JsonText | null> {
    const payer = payerOf(request);
    // First, so that a refusal takes no turn.
    if (request.isPaid !== true) this.#allowances.take(payer, this.#knownPrice(request));
    const { method, definition, handler } = this.#find(request.method);
    const owner = payerKey(payer);
    const isPage = definition.page !== undefined;
    if (request.hasTurn !== true) await this.turns.take(owner, isPage);
    else if (isPage) this.turns.countPage();
    const charge = (work: Work) => this.#allowances.charge(payer, priceOf(work));
    this.#checkAvailable();
    const read = request.params();
    const text = read instanceof Promise ? await read : read;
    const asOf = this.#sessionsAsOf();
    const session =
      definition.session === 'none'
        ? undefined
        : requireMode(this.#currentSession(request) ?? (await this.#session(request)), definition);
    const params = request.query === undefined ? text : request.query();
    charge({ items: countItems(params) });
    const { network, verifier, keySealer } = this.#context;
    if (factsOf(params) !== undefined) {
      await this.longWork.run(owner, checkLargeParams(network, definition, params));
    } else if (definition.handlerChecksParams !== true) {
      checkParams(definition, params);
    }
    checkChannelHosted(this.#context, method, params);
    checkDiskRoom(this.#context, { method, definition, session, bytes: request.bytes });
    const { dailyBytes } = this.#context;
    const stored = storedBytes({ method, definition, session, params, bytes: request.bytes });
    if (stored !== undefined) dailyBytes.require(stored);
    const metered = new MeteredVerifier(verifier, owner, charge);
    const context = this.#contextOf(metered, own);
    const { result, notices = [] } = await handler(context, {
      ...{ method, params, session, charge },
      sealKeys: (keys) => keySealer.seal(keys, owner),
      origin: request.origin,
      address: request.address,
      form: request.query === undefined ? 'object' : 'query',
      connection: connectionOf(request),
    } satisfies AnyCall);
    if (notices.length > 0) this.#context.bus.publish(notices);
    // A repeat of a message or post is answered as the first one was, and announces nothing.
    const saving = stored && dailyBytes.add(stored, notices.length > 0);
    if (saving !== undefined) await saving;
    const answer = result === null ? null : new JsonText(encodeResult(result));
    const made: Work = { items: countItems(result), bytes: answer?.text.length ?? 0 };
    charge(made);
    if (isPage) this.turns.pageMade(owner, 1 + priceOf(made));
    if (session !== undefined && isRead(definition)) await this.#confirmLate(session, asOf);
    return answer;
  }

  /** Returns the units of what is known before a call is looked at. */
  #knownPrice({ method, credentials, bytes }: DecodedRequest): number {
    const { routeResolvesPerCall } = this.#context.limits;
    const known = priceOf({ bytes });
    const isStranger = sessionCarried(credentials) === undefined;
    if (!isStranger) return 1 + known;
    // Two reads of storage. A client resolves one route for each relay or recipient it writes to.
    if (method === 'account.route.resolve') return 1 / routeResolvesPerCall + known;
    // The token was charged when it was looked up.
    const isCharged =
      credentials !== undefined && 'token' in credentials && this.#needsSession(method);
    return isCharged ? known : 1 + known;
  }

  #needsSession(method: string): boolean {
    return this.#isServed(method) && methods[method].session !== 'none';
  }

  /** Returns since when a session that is found now may have ended. */
  #sessionsAsOf(): number {
    const { clock, sessions } = this.#context;
    return sessions.isCurrent ? sessions.asOf : clock.monotonic();
  }

  /**
   * Confirms the session of a call that took long, or during which this process was stopped: what was
   * read is not answered to a device that was removed meanwhile. A write is answered as it was made,
   * also one that found nothing to change.
   *
   * @throws ProtocolError `unauthorized`
   */
  async #confirmLate(session: Session, asOf: number): Promise<void> {
    const { bus, clock, limits, sessions } = this.#context;
    if (!bus.isShared || clock.monotonic() - asOf < limits.sessionTrust) return;
    if ((await sessions.confirm(session)) === undefined) throw noSession();
  }

  /** @throws ProtocolError `temporarily_unavailable` while this process is cut off from storage */
  #checkAvailable(): void {
    if (!this.#context.availability.isCutOff) return;
    throw unavailable('this process of the relay cannot reach storage: connect again');
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

  /** Returns the session of a connection, if it is known in memory that it holds. */
  #currentSession({ credentials }: DecodedRequest): Session | undefined {
    if (credentials === undefined || 'token' in credentials) return undefined;
    const { blocks, sessions } = this.#context;
    const session = sessionCarried(credentials);
    if (session === undefined || !sessions.isCurrent || blocks.hasAccount(session.account))
      return undefined;
    return session;
  }

  async #session({ credentials, origin }: DecodedRequest): Promise<Session> {
    const carried = sessionCarried(credentials);
    if (credentials === undefined || carried === undefined) throw noSession();
    if (!('token' in credentials)) return await this.#confirm(credentials, carried);
    // It may have ended since the headers arrived.
    const session = await this.#context.sessions.find(credentials.token, origin);
    if (session === undefined) throw noSession();
    return session;
  }

  async #sessionOf(
    token: string,
    { method, origin, address }: Pick<DecodedRequest, 'method' | 'origin' | 'address'>,
  ): Promise<Session | undefined> {
    if (!this.#isServed(method)) return undefined;
    this.#checkAvailable();
    const session = await this.#tokens.find({ token, origin, address });
    // A call that needs no session is charged itself.
    if (session === undefined && !this.#needsSession(method))
      this.#allowances.addresses.refund(address);
    return session;
  }

  /**
   * Confirms a connection's session: from memory whether its account is blocked, and from storage while
   * it may not be known which ended.
   */
  async #confirm(connection: ConnectionBinding, session: Session): Promise<Session> {
    const { blocks, sessions } = this.#context;
    const isBlocked = blocks.hasAccount(session.account);
    const confirmed = isBlocked ? undefined : await sessions.confirm(session);
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

/** Returns who pays for a call: the account of a session that it carries, or the address. */
function payerOf({ credentials, address }: DecodedRequest): Payer {
  const carried = sessionCarried(credentials);
  if (carried === undefined) return { kind: 'address', id: address };
  return { kind: 'account', id: carried.account };
}

function connectionOf({ credentials }: DecodedRequest): ConnectionBinding | undefined {
  return credentials === undefined || 'token' in credentials ? undefined : credentials;
}

/** @throws ProtocolError `forbidden` for a session of another mode than the method asks for */
function requireMode(session: Session, { session: mode }: MethodDefinition): Session {
  if (mode === 'any' || mode === session.mode) return session;
  throw new ProtocolError('forbidden', `the method asks for a session in ${mode} mode`);
}

function noSession(): ProtocolError {
  return new ProtocolError('unauthorized', 'no valid session');
}
