/**
 * A client as it should be, on one device: it connects and authenticates again when it is cut off,
 * repeats what was not answered, unchanged, and reads its timeline on hints and after reconnecting.
 */
import { setTimeout } from 'node:timers/promises';
import type { TestContext } from '@posthouse/conformance';
import { isJsonObject, type JsonObject } from '@posthouse/protocol/json';
import type { Log, Outcome } from './log.ts';
import { type Letter, type Phone, readPage } from './people.ts';
import {
  HttpsConnection,
  type RelayConnection,
  type Reply,
  SocketConnection,
} from './relay-connection.ts';

/** Milliseconds before a client tries again, at least and at most; and between looks over HTTPS. */
const patience = { least: 20, most: 200, look: 200 } as const;
const pageLimit = 25;

/** What a client works with. */
export interface Ground {
  readonly stage: TestContext;
  readonly log: Log;
  /** From 0 to 1. */
  readonly chance: () => number;
}

/** Outcomes after which the same call may help. */
function passes(outcome: Outcome): boolean {
  return ['lost', 'temporarily_unavailable', 'rate_limited', 'internal_error'].includes(outcome);
}

let connections = 0;

/** Calls of a device over one link, with all of it in the log. */
export class Line implements Disposable {
  readonly link: RelayConnection;
  readonly #phone: Phone;
  readonly #ground: Ground;

  constructor(link: RelayConnection, phone: Phone, ground: Ground) {
    this.link = link;
    this.#phone = phone;
    this.#ground = ground;
  }

  /** A WebSocket connection, to the process of a port or to whichever the balancer chooses. */
  static async socket(
    phone: Phone,
    ground: Ground,
    more: { readonly port?: number; readonly onHead?: () => void } = {},
  ): Promise<Line> {
    const { stage, log } = ground;
    const url = new URL(stage.wssUrl as string);
    if (more.port !== undefined) url.port = String(more.port);
    connections += 1;
    const connection = connections;
    const facts = { account: phone.owner.account.id, device: phone.name, connection };
    const link = await SocketConnection.open(stage.target, url.href, ({ method, params }) => {
      if (!isJsonObject(params)) throw new Error(`${method} without parameters`);
      if (method === 'message.timeline.changed') {
        log.add({ kind: 'head', ...facts, head: Number(params.head) });
        more.onHead?.();
      } else if (method === 'device.state.changed') {
        log.add({ kind: 'revision', ...facts, revision: Number(params.revision) });
      }
    });
    return new Line(link, phone, ground);
  }

  /** HTTPS, to the process of a port or to whichever the balancer chooses for each connection. */
  static https(phone: Phone, ground: Ground, more: { readonly port?: number } = {}): Line {
    const { target } = ground.stage;
    const url = new URL(target.baseUrl);
    if (more.port !== undefined) url.port = String(more.port);
    return new Line(new HttpsConnection({ ...target, baseUrl: url.href }), phone, ground);
  }

  async call(
    method: string,
    params: JsonObject,
    facts: { readonly content?: string; readonly nonce?: string } = {},
  ): Promise<Reply> {
    const { log } = this.#ground;
    const call = log.nextCall();
    log.add({ kind: 'call', call, device: this.#phone.name, method, ...facts });
    const reply = await this.link.call(method, params);
    log.add({ kind: 'answer', call, outcome: reply.outcome });
    return reply;
  }

  /** Opens a device session. */
  async enter(): Promise<Outcome> {
    const { device, owner } = this.#phone;
    const challenge = await this.link.call('auth.challenge', { account: owner.account.id });
    if (challenge.outcome !== 'ok') return challenge.outcome;
    const nonce = String((challenge.result as JsonObject).nonce);
    return await this.verify(this.#ground.stage.deviceProof(device, nonce));
  }

  /** Authenticates with a proof. */
  async verify(proof: JsonObject): Promise<Outcome> {
    const { outcome, result } = await this.call('auth.device.verify', proof, {
      nonce: String(proof.nonce),
    });
    if (outcome === 'ok') this.link.use(String((result as JsonObject).token));
    return outcome;
  }

  /** Reads a page and says how to go on: at which position, and whether there is more. */
  async read(
    reading: 'on' | 'again',
    after: number,
  ): Promise<{ readonly outcome: Outcome; readonly position: number; readonly hasMore: boolean }> {
    const { outcome, result } = await this.call('message.timeline.sync', {
      after,
      limit: pageLimit,
    });
    if (outcome !== 'ok') return { outcome, position: after, hasMore: false };
    const { entries, hasMore } = readPage(result);
    const account = this.#phone.owner.account.id;
    const device = this.#phone.name;
    this.#ground.log.add({ kind: 'page', account, device, reading, after, entries });
    return { outcome, position: entries.at(-1)?.sequence ?? after, hasMore };
  }

  [Symbol.dispose](): void {
    this.link[Symbol.dispose]();
  }
}

export class Member implements AsyncDisposable {
  readonly phone: Phone;
  readonly #ground: Ground;
  readonly #leaving = new AbortController();
  readonly #living: Promise<void>;
  #line: Line | undefined;
  #position = -1;
  #isReadWanted = false;
  #isReading = false;

  /** Connects by itself, for as long as it lives. */
  constructor(phone: Phone, ground: Ground) {
    this.phone = phone;
    this.#ground = ground;
    this.#living = this.#live();
  }

  /** Sends a message until its outcome is known; `undefined` where the client ended before. */
  async send({ params, sending }: Letter): Promise<Outcome | undefined> {
    this.#ground.log.add(sending);
    const reply = await this.request('message.send', params, { content: sending.content });
    return reply?.outcome;
  }

  /** A call that is repeated until it is answered for good; each try is in the log. */
  async request(
    method: string,
    params: JsonObject,
    facts: { readonly content?: string } = {},
  ): Promise<Reply | undefined> {
    while (!this.#leaving.signal.aborted) {
      const line = this.#line;
      const reply = await line?.call(method, params, facts);
      if (reply?.outcome === 'unauthorized') line?.[Symbol.dispose]();
      else if (reply !== undefined && !passes(reply.outcome)) return reply;
      await this.#pause();
    }
    return undefined;
  }

  /** Reads the whole timeline from its start. */
  async readAgain(): Promise<void> {
    let position = -1;
    for (let hasMore = true; hasMore; ) {
      const page = await this.#line?.read('again', position);
      if (page?.outcome === 'ok') ({ position, hasMore } = page);
      else await this.#pause();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort();
    this.#line?.[Symbol.dispose]();
    await this.#living;
  }

  async #live(): Promise<void> {
    const { signal } = this.#leaving;
    while (!signal.aborted) {
      using line = await this.#open();
      const outcome = await line?.enter();
      if (outcome === 'device_unknown') return;
      if (line === undefined || outcome !== 'ok' || signal.aborted) {
        await this.#pause();
        continue;
      }
      this.#line = line;
      this.#wantRead();
      await (this.phone.transport === 'wss' ? line.link.closed : this.#look(line));
      this.#line = undefined;
    }
  }

  async #open(): Promise<Line | undefined> {
    if (this.phone.transport === 'https') return Line.https(this.phone, this.#ground);
    try {
      return await Line.socket(this.phone, this.#ground, { onHead: () => this.#wantRead() });
    } catch {
      return undefined;
    }
  }

  /** Who hears no hints looks from time to time (02 §12.9). */
  async #look(line: Line): Promise<void> {
    const { signal } = this.#leaving;
    let isClosed = false;
    void line.link.closed.then(() => {
      isClosed = true;
    });
    while (!isClosed && !signal.aborted) {
      this.#wantRead();
      await setTimeout(patience.look, undefined, { signal }).catch(() => {});
    }
  }

  /** A hint that comes during a read is followed by another one (02 §12.3). */
  #wantRead(): void {
    this.#isReadWanted = true;
    if (!this.#isReading) void this.#readOn();
  }

  async #readOn(): Promise<void> {
    this.#isReading = true;
    for (let line = this.#line; this.#isReadWanted && line !== undefined; line = this.#line) {
      this.#isReadWanted = false;
      const { outcome, position, hasMore } = await line.read('on', this.#position);
      this.#position = position;
      if (outcome === 'unauthorized') line[Symbol.dispose]();
      else if (outcome !== 'ok') await this.#pause();
      if (hasMore || outcome !== 'ok') this.#isReadWanted = true;
    }
    this.#isReading = false;
  }

  /** Backing off before another try, and nothing else. */
  async #pause(): Promise<void> {
    const { least, most } = patience;
    const wait = least + this.#ground.chance() * (most - least);
    await setTimeout(wait, undefined, { signal: this.#leaving.signal }).catch(() => {});
  }
}
