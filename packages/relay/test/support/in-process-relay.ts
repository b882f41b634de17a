/**
 * A relay's subjects on a real database, called through dispatch without sockets: for what
 * does not depend on a transport. The test decides about time and storage failures.
 */
import type { FinalRoute, ProtocolError } from '@posthouse/protocol';
import { type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { afterEach, beforeEach, inject } from 'vitest';
import type {
  Job,
  Policy,
  RegistrationMode,
  RelayAnswer,
  RelayContext,
  RouteDirectory,
  Verifier,
} from '../../src/context.ts';
import { SignatureVerifier } from '../../src/crypto/verifier.ts';
import type { ConnectionBinding } from '../../src/dispatch/call.ts';
import { encodeResult } from '../../src/dispatch/encode.ts';
import type { Notice } from '../../src/dispatch/notice.ts';
import type { RelayReply } from '../../src/dispatch/relay-dispatcher.ts';
import type { PeerRelay } from '../../src/dispatch/relay-handler.ts';
import { defaultLimits, type RelayLimits } from '../../src/limits.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { noPolicy } from '../../src/policy/index.ts';
import type { Session } from '../../src/sessions/session.ts';
import type { Storage, StorageFaults } from '../../src/storage/types.ts';
import { type HomeRelay, Person } from '../fixtures/person.ts';
import { AwayHome } from './away-home.ts';
import { ManualClock } from './clock.ts';
import { dump, RelayData, rowsOf } from './engine.ts';
import {
  defaultRelay,
  modules,
  openModules,
  origin,
  relayKeys,
  withoutRateLimits,
} from './modules.ts';

export { network, relayPublicKey } from './modules.ts';

function jobOf(name: string): Job {
  const job = modules
    .flatMap((module): readonly Job[] => module.jobs)
    .find((known) => known.name === name);
  if (job === undefined) throw new Error(`no job ${name}`);
  return job;
}

/** Records that others signed, as the verifier is told of them. */
const proofs: ReadonlySet<string> = new Set(['grant', 'invite', 'application', 'recovery request']);

/** Calls a test makes; a failed one carries the code. */
export interface CallOptions {
  readonly session?: Session | undefined;
  /** Takes the place of a session of its own. */
  readonly connection?: ConnectionBinding;
  readonly form?: 'query' | 'object';
  /** The client's address; one for all by default. */
  readonly address?: string;
}

export class InProcessRelay implements HomeRelay, AsyncDisposable {
  clock = new ManualClock();
  faults: StorageFaults = {};
  /** Answers of other relays; replaced by tests that know some. */
  routes: (
    account: string,
    only?: string,
  ) => readonly FinalRoute[] | Promise<readonly FinalRoute[]> = noRoutes;
  /** Relays that give no answer about routes. */
  missed: (only?: string) => readonly string[] = () => [];
  callRelay: (to: string, method: string, params: JsonObject) => Promise<RelayAnswer> = unreachable;
  notifyRelay: (to: string, name: string, params: JsonObject) => Promise<boolean> = notSent;
  /** Sends a route to other relays; says which of them stored it. */
  replicate: RouteDirectory['replicate'] = stored;
  pausedUntil: (relayId: string) => number | undefined = () => undefined;
  callsAtOnce: (relayId: string) => number = manyCalls;
  /** Whether there are other relays to ask for routes; read at each start. */
  hasRelays = true;
  /** Whether the registry was read since the start; read at each start. */
  isRegistryRead = true;
  /** Whether the registry names this relay as active. */
  isActive = true;
  /** Which new accounts are taken; `open` again at the next start. */
  registration: { mode: RegistrationMode } = { mode: 'open' };
  /** What the operator's program decides; none at the next start. */
  policy: Policy = noPolicy;
  /** What happens, once, while the next call waits for its signatures. */
  meanwhile: (() => Promise<void>) | undefined;
  /** What happens, once, when the next record that another account signed has been verified. */
  afterProof: (() => Promise<void>) | undefined;
  /** The home of the people who use this relay, if it is another one. */
  readonly awayHome = inject('callers') === 'away' ? new AwayHome(this) : undefined;
  /** Every notice since the last {@link takeNotices}. */
  #notices: Notice[] = [];
  /** What wakes the run of each job that is under way. */
  readonly #onWake = new Map<string, () => void>();
  readonly #declaredLimits: Partial<RelayLimits>;
  readonly #declared: { readonly person: Person; readonly devices: readonly string[] }[] = [];
  #limits: RelayLimits = withoutRateLimits;
  #data: RelayData | undefined;
  #running: ({ readonly storage: Storage } & ReturnType<typeof openModules>) | undefined;
  readonly #keys: ReturnType<typeof relayKeys>;

  /** @param byte what the relay's key is made of, if a test has several relays */
  constructor(limits: Partial<RelayLimits> = {}, byte: number = defaultRelay) {
    this.#declaredLimits = limits;
    this.#keys = relayKeys(byte);
  }

  static async start(limits: Partial<RelayLimits> = {}): Promise<InProcessRelay> {
    const relay = new InProcessRelay(limits);
    await relay.start();
    return relay;
  }

  /** Starts on an empty database, at the beginning of time, with the people declared. */
  async start(): Promise<void> {
    this.clock = new ManualClock();
    this.faults = {};
    this.routes = noRoutes;
    this.missed = () => [];
    this.awayHome?.forget();
    this.callRelay = this.#answerOfHome();
    this.notifyRelay = notSent;
    this.replicate = stored;
    this.pausedUntil = () => undefined;
    this.callsAtOnce = manyCalls;
    this.isActive = true;
    this.registration.mode = 'open';
    this.policy = noPolicy;
    this.meanwhile = undefined;
    this.afterProof = undefined;
    this.#limits = { ...withoutRateLimits, ...this.#declaredLimits };
    this.#data = await RelayData.withSchema();
    await this.#open();
    for (const { person, devices } of this.#declared) await person.register(devices);
    this.#notices = [];
  }

  /** Declares a person that is registered at each start, before the test. */
  person(name: string, devices: readonly string[] = ['phone']): Person {
    const person = new Person(this, name);
    this.#declared.push({ person, devices });
    return person;
  }

  /** Makes a person with an account here and one device for each name. */
  async register(name: string, devices?: readonly string[]): Promise<Person> {
    return await Person.register(this, name, devices);
  }

  get context(): RelayContext {
    if (this.#running === undefined) throw new Error('the relay is stopped');
    return this.#running.context;
  }

  /** The policy that the test sets last. */
  #asked(): Policy {
    const isOn = () => this.policy.isOn;
    return {
      get isOn() {
        return isOn();
      },
      ask: (...asked) => this.policy.ask(...asked),
    };
  }

  get relayId(): string {
    return this.#keys.relayId;
  }

  /**
   * Stops and starts on the same database, as after a crash: nothing is kept in memory. Limits may
   * be others from then on.
   */
  async restart(limits: Partial<RelayLimits> = {}): Promise<void> {
    this.#limits = { ...this.#limits, ...limits };
    await this.#running?.storage[Symbol.asyncDispose]();
    await this.#open();
  }

  /** @throws ProtocolError what the relay refuses with */
  async call(
    method: string,
    params: unknown,
    { session, connection, form = 'object', address = '127.0.0.1' }: CallOptions = {},
  ): Promise<JsonValue> {
    const text = JSON.stringify(params);
    const answer = await this.#running?.dispatcher.answer({
      method,
      bytes: text.length,
      // Each call has objects of its own, as from a socket.
      params: () => parseJson(text),
      ...(form === 'query' && { query: () => parseJson(text) }),
      origin,
      address,
      credentials: connection ?? (session && binding(session)),
    });
    if (answer?.ok !== true) throw answer?.error ?? new Error('the relay is stopped');
    return parseJson(encodeResult(answer.result));
  }

  /** Answers a frame of another relay. */
  async answerRelay(frame: Uint8Array, peer: PeerRelay): Promise<RelayReply> {
    if (this.#running === undefined) throw new Error('the relay is stopped');
    return await this.#running.relayDispatcher.answer(frame, peer);
  }

  /** The code a call is refused with, or `ok`. */
  async codeOf(method: string, params: unknown, options: CallOptions = {}): Promise<string> {
    try {
      await this.call(method, params, options);
      return 'ok';
    } catch (error) {
      return (error as ProtocolError).code;
    }
  }

  takeNotices(): Notice[] {
    const taken = this.#notices;
    this.#notices = [];
    return taken;
  }

  /** Runs a job to its end, as the runner would; says when it wants to run again. */
  async runJob(
    name: string,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<number | undefined> {
    return await jobOf(name).run(this.context, signal, (listener) => {
      this.#onWake.set(name, listener);
      return { [Symbol.dispose]: () => void this.#onWake.delete(name) };
    });
  }

  /** Runs a job as the runner would while deleting is paused. */
  async runPaused(name: string, since?: number): Promise<void> {
    await jobOf(name).runPaused?.(this.context, new AbortController().signal, since);
  }

  /** Every row of every table, to compare before and after. */
  async dump(): Promise<Record<string, unknown[]>> {
    return await dump(this.context.storage);
  }

  /** Every row of a table. */
  async rows(table: string): Promise<Record<string, unknown>[]> {
    return await rowsOf(this.context.storage, table);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running?.storage[Symbol.asyncDispose]();
    this.#running = undefined;
    await this.#data?.[Symbol.asyncDispose]();
    this.#data = undefined;
  }

  #answerOfHome(): InProcessRelay['callRelay'] {
    const { awayHome } = this;
    if (awayHome === undefined) return unreachable;
    return (_, method, params) => Promise.resolve(awayHome.answer(method, params));
  }

  #verifier(): Verifier {
    const inner = new SignatureVerifier();
    return {
      verify: async (...args) => {
        const { meanwhile } = this;
        this.meanwhile = undefined;
        await meanwhile?.();
        await inner.verify(...args);
      },
      verifyOnce: async (...args) => {
        const [, , what] = args;
        await inner.verifyOnce(...args);
        if (!proofs.has(what)) return;
        const { afterProof } = this;
        this.afterProof = undefined;
        await afterProof?.();
      },
      // What would not be asked again could not be followed by anything.
      hasVerified: (...args) => this.afterProof === undefined && inner.hasVerified(...args),
    };
  }

  async #open(): Promise<void> {
    if (this.#data === undefined) throw new Error('the relay is stopped');
    const storage = await this.#data.open(this.faults);
    const bus = new MemoryBus((error) => {
      throw error;
    });
    bus.subscribe((notice) => this.#notices.push(notice));
    const parts = openModules(
      {
        storage,
        clock: this.clock,
        limits: this.#limits,
        verifier: this.#verifier(),
        routeDirectory: {
          hasRelays: this.hasRelays,
          isAlone: this.isRegistryRead && !this.hasRelays,
          areAllAway: this.isRegistryRead && !this.hasRelays,
          resolveRemote: async (account, only) => {
            const routes = await this.routes(account, only);
            const missed = this.missed(only).filter((relayId) => relayId === (only ?? relayId));
            const claimed = [...new Set(routes.map((route) => route.relay_id))];
            const others = claimed.filter((id) => id !== this.relayId && !missed.includes(id));
            return { routes, unverified: [], missed, claimed: others, nearest: [] };
          },
          replicate: (route, leaving, nearest) => this.replicate(route, leaving, nearest),
        },
        relayClient: {
          call: (to, method, params) =>
            this.callRelay(to, method, parseJson(encodeResult(params)) as JsonObject),
          notify: (to, name, params) => this.notifyRelay(to, name, params),
          pausedUntil: (relayId) => this.pausedUntil(relayId),
          callsAtOnce: (relayId) => this.callsAtOnce(relayId),
        },
        jobs: { wake: (name) => this.#onWake.get(name)?.() },
        registration: this.registration,
        policy: this.#asked(),
        registryStatus: { isActive: () => Promise.resolve(this.isActive) },
        bus,
      },
      this.#keys,
    );
    this.#running = { storage, ...parts };
  }
}

const noRoutes = () => [];
const manyCalls = () => defaultLimits.relayCallsAtOnce;
const unreachable = () => Promise.resolve({ kind: 'unreachable' as const });
const notSent = () => Promise.resolve(false);
const stored = () => Promise.resolve({ isEnough: true, reachedLeaving: true });

/**
 * Starts a relay before each test of the file and stops it afterwards.
 * @example
 * const relay = inProcessRelay({ channelTimelineRetention: 1_000 });
 * const ann = relay.person('ann', ['phone', 'laptop']);
 * test('...', async () => {
 *   await relay.call('profile.publish', ann.profile(), { session: ann.session() });
 * });
 */
export function inProcessRelay(limits: Partial<RelayLimits> = {}): InProcessRelay {
  const relay = new InProcessRelay(limits);
  beforeEach(() => relay.start());
  afterEach(() => relay[Symbol.asyncDispose]());
  return relay;
}

/** A connection bound to a session; nothing here renews it. */
function binding(session: Session): ConnectionBinding {
  return { bound: { session, dead: false }, bind: () => {} } as unknown as ConnectionBinding;
}
