/** Changed calls of every method over both transports, with sessions of every kind. */
import { createHash } from 'node:crypto';
import { type MethodName, methods, signAsDevice } from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { dump, rowsOf } from '../support/engine.ts';
import { codeOf } from '../support/http.ts';
import { network } from '../support/modules.ts';
import { Chance } from './chance.ts';
import { likeness, type Material, mutate } from './mutations.ts';
import { allowedCodes } from './rules.ts';
import { judgeRequest, readStrictly } from './strict-json.ts';
import { hostileText } from './texts.ts';
import { callOverHttp, callOverSocket } from './transports.ts';
import { type Caller, type ValidCall, World } from './world.ts';

/** Calls of one world; then another is made, since some of them change it. */
const callsOfWorld = 10_000;
/** Calls at once. */
const lanes = 8;
/** Of so many calls, some are made one at a time, to see that the refused ones store nothing. */
const batch = 400;
const watched = 12;
/** Characters of parameters that go over a WebSocket; up to three bytes each. */
const largestMessage = 340_000;

/** What a challenge leaves, a mark of time, and what other relays answered: written by refused calls too. */
const ownTables =
  /^(auth_challenges|relay_clock|remote_devices|account_routes|route_keys|status_watchers|peer_connections|relays|seen_states)$/;

interface Attempt {
  readonly method: MethodName;
  readonly caller: Caller;
  readonly params: JsonValue;
  readonly transport: 'http' | 'websocket';
}

/** Makes hostile calls of which each follows from the seed and its number. */
export class CallCampaign implements AsyncDisposable {
  /** Number of answers by method and code. */
  readonly answers = new Map<string, Map<string, number>>();
  readonly #seed: number;
  #world: World | undefined;
  #material: Material = { strings: new Map(), params: [] };
  /** Head of each group's chain. */
  #heads: ReadonlyMap<string, string> = new Map();
  #callsLeft = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** @throws Error that names the call whose answer is wrong */
  async run({ from, to }: { readonly from: number; readonly to: number }): Promise<void> {
    for (let start = from; start < to; start += batch) {
      if (this.#callsLeft <= 0) await this.#renewWorld();
      await this.#readHeads();
      const end = Math.min(start + batch, to);
      const alone = Math.max(start, end - watched);
      await this.#together(start, alone);
      for (let input = alone; input < end; input += 1) await this.#callWatched(input);
      await this.#hostileMessages(start);
      this.#callsLeft -= end - start;
      for (const { socket } of this.#callers) await socket.notificationsSoFar();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const world = this.#world;
    this.#world = undefined;
    if (world === undefined) return;
    const failures = failuresOf(world);
    await world[Symbol.asyncDispose]();
    if (failures.length > 0) throw new Error(`the relay counted ${failures.join(', ')}`);
  }

  get #callers(): readonly Caller[] {
    return this.#world?.callers ?? [];
  }

  async #renewWorld(): Promise<void> {
    await this[Symbol.asyncDispose]();
    this.#world = await World.create();
    this.#callsLeft = callsOfWorld;
    const params = this.#world.calls.map((call) => call.params);
    const strings = new Map<string, string[]>();
    const add = (value: unknown): void => {
      if (typeof value === 'object' && value !== null) Object.values(value).forEach(add);
      if (typeof value !== 'string') return;
      const alike = strings.get(likeness(value)) ?? [];
      strings.set(likeness(value), alike);
      if (!alike.includes(value)) alike.push(value);
    };
    add(params);
    this.#material = { strings, params };
  }

  async #readHeads(): Promise<void> {
    const { storage } = (this.#world as World).relay.server.context;
    const groups = await rowsOf(storage, 'groups');
    this.#heads = new Map(groups.map((row) => [String(row.group_id), String(row.chain_head)]));
  }

  async #together(from: number, to: number): Promise<void> {
    let next = from;
    const lane = async () => {
      while (next < to) {
        next += 1;
        await this.#call(next - 1);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));
  }

  async #callWatched(input: number): Promise<void> {
    const before = await this.#digest();
    const code = await this.#call(input);
    if (code === 'ok') return;
    const after = await this.#digest();
    for (const [table, digest] of after) {
      if (digest === before.get(table)) continue;
      throw new Error(`seed ${this.#seed}, call ${input}: ${code}, but ${table} changed`);
    }
  }

  /** Digests of the rows of each table. */
  async #digest(): Promise<Map<string, string>> {
    const world = this.#world as World;
    const rows = await dump(world.relay.server.context.storage);
    const tables = Object.entries(rows).filter(([name]) => !ownTables.test(name));
    return new Map(
      tables.map(([name, all]) => [
        name,
        createHash('sha256').update(JSON.stringify(all, withBytes)).digest('hex'),
      ]),
    );
  }

  async #call(input: number): Promise<string> {
    const chance = new Chance(this.#seed, input);
    const attempt = this.#attempt(chance);
    try {
      const code = await withDeadline(this.#send(attempt, { input, chance }));
      if (code !== 'ok' && !allowedCodes(attempt.method).has(code)) {
        throw new Error(`answers ${code}`);
      }
      const codes = this.answers.get(attempt.method) ?? new Map<string, number>();
      this.answers.set(attempt.method, codes.set(code, (codes.get(code) ?? 0) + 1));
      return code;
    } catch (error) {
      const { method, caller, transport, params } = attempt;
      const shown = JSON.stringify(params).slice(0, 2_000);
      throw new Error(
        `seed ${this.#seed}, call ${input}: ${method} over ${transport} as ${caller.kind}: ${(error as Error).message}: ${shown}`,
        { cause: error },
      );
    }
  }

  #attempt(chance: Chance): Attempt {
    const { calls, callers } = this.#world as World;
    const method = chance.pick(Object.keys(methods)) as MethodName;
    const call = chance.pick(calls.filter((one) => one.method === method));
    const able = callers.filter(({ person }) => person !== undefined && person === call.person);
    const caller = chance.pick(able.length > 0 && !chance.once(3) ? able : callers);
    const changed = chance.once(12) ? call.params : mutate(call.params, chance, this.#material);
    const by = { person: call.person, heads: this.#heads };
    const params = chance.once(2) ? signedAgain(changed, by) : changed;
    const hasHttp = methods[method].http.length > 0;
    // A larger message ends its connection (02 §3.3), which the others of this caller use.
    const isLarge = JSON.stringify(params).length > largestMessage;
    const transport = hasHttp && (isLarge || chance.once(2)) ? 'http' : 'websocket';
    return { method, caller, params: isLarge && !hasHttp ? {} : params, transport };
  }

  async #send(
    { method: name, caller, params, transport }: Attempt,
    { input, chance }: { readonly input: number; readonly chance: Chance },
  ): Promise<string> {
    const body = JSON.stringify(params);
    if (transport === 'websocket') return await callOverSocket(caller, { name, body, id: input });
    const { http } = this.#world as World;
    return await callOverHttp(http, caller, { name, body, chance });
  }

  /** Sends texts that are no right request to a connection of each kind, and as bodies. */
  async #hostileMessages(input: number): Promise<void> {
    const { http } = this.#world as World;
    for (let index = 100; index < 110; index += 1) {
      const body = hostileText(new Chance(this.#seed, -input - index));
      const { isJson, faults } = readStrictly(body);
      const headers = { 'content-type': 'application/json' };
      const message = { verb: 'POST', path: '/auth/challenge', headers, body };
      const code = codeOf(await withDeadline(http.send(message)));
      const expected = isJson && faults.length === 0 ? ['ok', 'bad_request'] : ['bad_request'];
      if (expected.includes(code)) continue;
      throw new Error(`answers ${code} to the body ${body.toString('base64')}`);
    }
    for (const [index, { socket }] of this.#callers.entries()) {
      const bytes = hostileText(new Chance(this.#seed, -input - index));
      const deserved = judgeRequest(readStrictly(bytes));
      if (deserved === undefined || bytes.length > 1_000_000) continue;
      const answer = await withDeadline(socket.send(bytes));
      if (answer.error?.code === deserved.code && answer.id === deserved.id) continue;
      throw new Error(`answers ${JSON.stringify(answer)} to ${bytes.toString('base64')}`);
    }
  }
}

/** Lets SQLite's integers and bytes be part of a digest. */
function withBytes(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
}

/** Signs every object with a device signature anew, on the group's head, so that the relay looks further. */
function signedAgain(
  params: JsonValue,
  by: { readonly person: ValidCall['person']; readonly heads: ReadonlyMap<string, string> },
): JsonValue {
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return params;
  const members = Object.entries(params as JsonObject).map(([name, value]) => {
    const isSigned = ['approval', 'create', 'envelope'].includes(name);
    return [name, isSigned ? signedAgain(value as JsonValue, by) : value];
  });
  const { person, heads } = by;
  const copy = Object.fromEntries(members) as JsonObject;
  const head = Object.hasOwn(copy, 'prev_hash') && heads.get(String(copy.group_id));
  const object = typeof head === 'string' ? { ...copy, prev_hash: head } : copy;
  if (person === undefined || !Object.hasOwn(object, 'device_signature')) return object;
  const { device_signature: _, ...rest } = object;
  try {
    return signAsDevice(network, rest, person.device().signer);
  } catch {
    // What has no canonical form cannot be signed.
    return object;
  }
}

/** A call that is not answered fails instead of stopping everything. */
async function withDeadline<T>(work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('no answer in 60 s')), 60_000);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Counters that only a fault of the relay raises. */
function failuresOf(world: World): string[] {
  const { metrics } = world.relay.server.context;
  const text = metrics.exposition();
  return text
    .split('\n')
    .filter((line) =>
      /^\w*(internal_errors|jobs_failed|job_tasks_failed|notices_failed)\S* [1-9]/.test(line),
    );
}
