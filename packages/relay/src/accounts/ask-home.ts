/**
 * The one way to ask another relay about an account that is at home there: which relay, when to ask
 * again, and which error the caller gets (07 §C4).
 */
import {
  badRequest,
  checkNoNull,
  checkSchema,
  errorCatalogue,
  isErrorCode,
  ProtocolError,
} from '@posthouse/protocol';
import {
  type RelayMethodName,
  type RelayResultOf,
  relayMethods,
} from '@posthouse/protocol/federation';
import {
  canonicalJson,
  factsOf,
  JsonError,
  type JsonObject,
  type JsonValue,
} from '@posthouse/protocol/json';
import type { Home, RelayAnswer, RelayContext } from '../context.ts';
import { type HandlerResult, JsonText } from '../dispatch/handler.ts';
import { ForwardedError, limitedText } from '../dispatch/refusal.ts';
import type { RelayLimits } from '../limits.ts';
import type { DeviceSession } from '../sessions/session.ts';
import type { Reader } from '../storage/types.ts';
import { confirmDevice } from './devices.ts';
import { homeOf, isRateLimited, locate } from './home.ts';
import { homeRelay } from './rules.ts';

/** A question about an account to its home relay. */
export interface HomeQuestion<N extends RelayMethodName, T> {
  readonly account: string;
  readonly method: N;
  readonly params: JsonObject;
  /**
   * The device that causes the question: of a device session, or with a proof that was verified.
   * Its account is charged.
   */
  readonly caller: { readonly account: string; readonly deviceId: string };
  /**
   * Verifies an answer of the right shape, without `null`, and returns what to make of it. If it
   * throws a `ProtocolError`, the answer is invalid; temporary errors, which are faults of this
   * relay, go to the caller as they are.
   */
  readonly accept: (result: RelayResultOf<N>, answer: ReceivedAnswer) => T | Promise<T>;
}

interface ReceivedAnswer {
  /** Canonical JSON of the result, unknown members included. */
  readonly text: string;
  /** The account's home relay, which gave the answer. */
  readonly relayId: string;
}

/** What became of a question. */
export type HomeAnswer<T> =
  /** The account is at home here: the caller answers from storage. */
  | { readonly kind: 'local' }
  | { readonly kind: 'answered'; readonly value: T; readonly relayId: string };

/**
 * Asks the home relay of an account. After a route error, a lost answer or a connection failure the
 * route is refreshed once, and another relay is asked only if a higher conflict-free route names
 * it. When the answer arrives, the relay that gave it must still be the account's home.
 *
 * @throws ProtocolError `route_not_found`, `invalid_state`; `temporarily_unavailable` if the relay
 *   was not reached or does not serve the account; `bad_gateway` if the answer is invalid;
 *   `rate_limited` of either relay; any other code as the home relay sent it
 */
export async function askHome<N extends RelayMethodName, T>(
  context: RelayContext,
  question: HomeQuestion<N, T>,
): Promise<HomeAnswer<T>> {
  const first = await locate(context, question.account, {
    now: context.clock.now(),
    asker: askerOf(question.caller),
  });
  if (first.kind === 'local') return { kind: 'local' };
  let relayId = homeRelay(first);
  using _query = context.relayQueries.begin(question.caller.account);
  for (let isLast = false; ; isLast = true) {
    const answer = await request(context, relayId, question);
    const home = await homeAfter(context, question, {
      refresh: !isLast && needsRefresh(answer),
    });
    if (home.kind === 'local') return { kind: 'local' };
    const next = homeRelay(home);
    if (next === relayId) {
      if (answer.kind !== 'result') throw failureOf(answer, context.limits);
      const value = await accept(context, question, { value: answer.value, relayId });
      return { kind: 'answered', value, relayId };
    }
    // The stored route only ever gives way to a higher one, so the account moved.
    if (isLast) throw new ProtocolError('temporarily_unavailable', 'the account is moving');
    relayId = next;
  }
}

/**
 * Forwards a query of a calling device to the home relay of the account that it is about, if that
 * is another relay.
 *
 * @returns the verified answer, unchanged; `undefined` if the account is at home here
 * @throws ProtocolError as {@link askHome}; `unauthorized`
 */
export async function forwardQuery<N extends RelayMethodName>(
  context: RelayContext,
  session: DeviceSession,
  query: Pick<HomeQuestion<N, void>, 'account' | 'method' | 'params'> & {
    /** Refuses an invalid answer with any `ProtocolError`. `text` is its Canonical JSON. */
    readonly verify: (result: RelayResultOf<N>, text: string) => Promise<void>;
    /** Refuses the query, in the snapshot in which the calling device is read. */
    readonly admit?: (tx: Reader) => Promise<void>;
  },
): Promise<HandlerResult | undefined> {
  const { verify, admit, ...question } = query;
  const now = context.clock.now();
  const home = await locate(context, query.account, { now, asker: askerOf(session) });
  if (home.kind === 'local') return undefined;
  homeRelay(home);
  await context.storage.read(async (tx) => {
    await confirmDevice(context, tx, { session, now });
    await admit?.(tx);
  });
  const answer = await askHome(context, {
    ...question,
    caller: session,
    accept: async (result, { text }) => {
      await verify(result, text);
      return text;
    },
  });
  return answer.kind === 'local' ? undefined : { result: new JsonText(answer.value) };
}

/** Returns the key of the account that is charged for route lookups. */
function askerOf({ account }: { readonly account: string }): string {
  return `account ${account}`;
}

/** Determines the home once more; from storage alone without `refresh`, or if too much is looked up. */
async function homeAfter(
  context: RelayContext,
  { account, caller }: Pick<HomeQuestion<RelayMethodName, unknown>, 'account' | 'caller'>,
  { refresh }: { readonly refresh: boolean },
): Promise<Home> {
  const { clock, identity, storage } = context;
  const now = clock.now();
  try {
    if (refresh) return await locate(context, account, { now, refresh, asker: askerOf(caller) });
  } catch (error) {
    if (!isRateLimited(error)) throw error;
  }
  return await storage.read((tx) => homeOf(tx, account, identity.relayId, now));
}

/** Sends one request and waits for a limited time; a later answer is not used. */
async function request(
  { clock, limits, relayClient, relayQueries }: RelayContext,
  relayId: string,
  { method, params }: { readonly method: RelayMethodName; readonly params: JsonObject },
): Promise<RelayAnswer> {
  // The request holds its place until it settles, even if the caller got an answer before.
  const place = relayQueries.beginRequest(relayId);
  const answer = relayClient.call(relayId, method, params).finally(() => place[Symbol.dispose]());
  const tooLate = Promise.withResolvers<RelayAnswer>();
  using _timer = clock.after(limits.relayQueryTimeout, () => tooLate.resolve({ kind: 'unknown' }));
  return await Promise.race([answer, tooLate.promise]);
}

/** @throws ProtocolError `bad_gateway`, and temporary errors of this relay */
async function accept<N extends RelayMethodName, T>(
  { limits }: RelayContext,
  question: HomeQuestion<N, T>,
  { value, relayId }: { readonly value: JsonValue; readonly relayId: string },
): Promise<T> {
  try {
    if (factsOf(value)?.hasNull !== false) checkNoNull(value);
    checkSchema(relayMethods[question.method].result, value);
    const text = canonicalJson(value);
    // Forwarded, it must fit a WebSocket message.
    if (Buffer.byteLength(text) > limits.pageBytes) throw badRequest('', 'too large');
    return await question.accept(value as RelayResultOf<N>, { text, relayId });
  } catch (error) {
    const isInvalid =
      error instanceof JsonError ||
      (error instanceof ProtocolError && errorCatalogue[error.code].category !== 'temporary');
    if (!isInvalid) throw error;
    throw new ProtocolError('bad_gateway', `invalid answer of the home relay: ${error.message}`);
  }
}

/** Tells whether another route may lead to an answer (07 §C4). */
function needsRefresh(answer: RelayAnswer): boolean {
  if (answer.kind === 'refused') return isRoutingCode(answer.code);
  return answer.kind === 'unreachable' || answer.kind === 'unknown';
}

function isRoutingCode(code: string): boolean {
  return isErrorCode(code) && errorCatalogue[code].category === 'routing';
}

/** Returns the error for a caller whose question was not answered, after any refresh. */
function failureOf(
  answer: Exclude<RelayAnswer, { readonly kind: 'result' }>,
  { relayErrorText }: RelayLimits,
): ProtocolError {
  switch (answer.kind) {
    case 'unreachable':
    case 'unknown':
      return new ProtocolError('temporarily_unavailable', 'the home relay does not answer');
    case 'invalid':
      return new ProtocolError('bad_gateway', `invalid answer of the home relay: ${answer.why}`);
    case 'refused': {
      const { code, retryAfter } = answer;
      if (isRoutingCode(code)) {
        return new ProtocolError('temporarily_unavailable', 'the relay does not serve the account');
      }
      // No query between relays needs a session: `unauthorized` would end the caller's own.
      if (!isErrorCode(code) || code === 'unauthorized') {
        return new ProtocolError('bad_gateway', `the home relay refused with ${code}`);
      }
      const data = retryAfter === undefined ? {} : { data: { retry_after: retryAfter } };
      return new ForwardedError(code, limitedText(answer.message, relayErrorText), data);
    }
  }
}
