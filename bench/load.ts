/**
 * The load generator: a process of its own with all accounts of a run. It opens its connections to
 * each server once, prepares frames before the clock starts, sends the same ones to one server after
 * the other, and reports what it saw and the CPU time that it took itself.
 */
import { readFile } from 'node:fs/promises';
import { loadTarget, PlainSocket, TestContext } from '@posthouse/conformance';
import { errorCatalogue } from '@posthouse/protocol';
import { CallFrames, type MeasuredCall, pageFrames } from './call-frames.ts';
import { type Frame, Population } from './population.ts';

/** A server to load: the processes of one relay, or the floor. */
export interface LoadTarget {
  readonly name: string;
  /** WebSocket addresses. */
  readonly sockets: readonly string[];
  /** Path of the certificate authority. */
  readonly ca: string;
  /** The relay's base address and registry file; absent for the floor. */
  readonly relay?: { readonly base: string; readonly registry: string };
}

/** What the generator is told to do; it answers each order with one message. */
export type LoadOrder =
  | { readonly do: 'make'; readonly accounts: number; readonly withSenderBoxes?: boolean }
  /** Connects all accounts; registers them before unless they are registered already. */
  | { readonly do: 'open'; readonly target: LoadTarget; readonly isRegistered?: boolean }
  /** Opens connections that send nothing, and ends them. */
  | { readonly do: 'idle'; readonly target: LoadTarget; readonly count: number }
  | { readonly do: 'messages'; readonly connections: number; readonly messages: number }
  | { readonly do: 'pages'; readonly stored: number; readonly count: number }
  | {
      readonly do: 'calls';
      readonly name: string;
      readonly call: MeasuredCall;
      readonly callers: number;
      readonly each: number;
    }
  | {
      readonly do: 'run';
      readonly name: string;
      /** Requests in flight on each connection. */
      readonly window: number;
      /** Requests a second of all connections together; by default as many as are answered. */
      readonly rate?: number;
    };

/** An order that prepares the frames of the next run. */
export type FrameOrder = LoadOrder & { readonly do: 'messages' | 'pages' | 'calls' };

/** What one run showed. */
export interface LoadReport {
  readonly accepted: number;
  readonly seconds: number;
  /** Sends that were answered `temporarily_unavailable` and repeated. */
  readonly retried: number;
  /** Milliseconds from a request to its answer, or from when it was due. */
  readonly p50: number;
  readonly p99: number;
  /** CPU seconds of this process. */
  readonly cpu: number;
}

/** Sends one connection's frames. */
class Sender {
  readonly #socket: PlainSocket;
  readonly #frames: readonly Frame[];
  readonly #started: number[] = [];
  readonly latencies: number[] = [];
  retried = 0;
  #lastAnswer = '';
  readonly #done = Promise.withResolvers<void>();
  /** Whether an answer is followed by the next frame. */
  readonly #isPaced: boolean;

  constructor(socket: PlainSocket, frames: readonly Frame[], { isPaced }: { isPaced: boolean }) {
    this.#socket = socket;
    this.#frames = frames;
    this.#isPaced = isPaced;
    socket.listen((text) => this.#receive(text));
    if (frames.length === 0) this.#done.resolve();
  }

  /** Resolves when all frames are answered. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  next(due = performance.now()): void {
    const frame = this.#frames[this.#started.length];
    if (frame === undefined) return;
    this.#started.push(due);
    this.#socket.send(typeof frame === 'string' ? frame : frame(this.#lastAnswer));
  }

  #receive(text: string): void {
    const id = /"id":([0-9]+)/.exec(text)?.[1];
    if (id === undefined) return; // A notification.
    if (!text.includes('"result"')) {
      this.#refused(Number(id), text);
      return;
    }
    this.#lastAnswer = text;
    this.latencies.push(performance.now() - (this.#started[Number(id)] as number));
    if (this.latencies.length === this.#frames.length) this.#done.resolve();
    else if (!this.#isPaced) this.next();
  }

  #refused(id: number, text: string): void {
    const frame = this.#frames[id];
    if (!text.includes(unavailable) || typeof frame !== 'string') {
      this.#done.reject(new Error(text));
      return;
    }
    // The relay answers this only after seconds, so repeating at once is no busy loop.
    this.retried += 1;
    this.#socket.send(frame);
  }
}

const unavailable = `"code":${errorCatalogue.temporarily_unavailable.rpc}`;

let population: Population | undefined;
const connections = new Map<string, readonly PlainSocket[]>();
const contexts = new Map<string, TestContext>();
const calls = new Map<TestContext, CallFrames>();
const idle: PlainSocket[] = [];
let frames: readonly (readonly Frame[])[] = [];

async function run({ name, window, rate }: LoadOrder & { do: 'run' }): Promise<LoadReport> {
  const sockets = connections.get(name) as readonly PlainSocket[];
  const isPaced = rate !== undefined;
  const senders = frames.map((own, index) => {
    return new Sender(sockets[index] as PlainSocket, own, { isPaced });
  });
  const before = process.cpuUsage();
  const started = performance.now();
  if (rate === undefined) {
    for (let count = 0; count < window; count += 1) for (const sender of senders) sender.next();
  } else pace(senders, rate, started);
  await Promise.all(senders.map((sender) => sender.done));
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage(before);
  const latencies = senders.flatMap((sender) => sender.latencies).sort((a, b) => a - b);
  const quantile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
  return {
    accepted: latencies.length,
    seconds,
    retried: senders.reduce((sum, { retried }) => sum + retried, 0),
    p50: quantile(0.5),
    p99: quantile(0.99),
    cpu: (user + system) / 1_000_000,
  };
}

/** Sends frames of all senders in turn, each at its time, whether others are answered or not. */
function pace(senders: readonly Sender[], rate: number, started: number): void {
  const total = frames.reduce((sum, own) => sum + own.length, 0);
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(total, Math.floor(((performance.now() - started) * rate) / 1_000));
    for (; sent < due; sent += 1) {
      senders[sent % senders.length]?.next(started + ((sent + 1) * 1_000) / rate);
    }
    if (sent === total) clearInterval(timer);
  }, 1);
}

async function obey(order: LoadOrder): Promise<LoadReport | 'done'> {
  if (order.do === 'make') {
    const { accounts, withSenderBoxes } = order;
    population = await Population.make(accounts, { withSenderBoxes });
    return 'done';
  }
  if (population === undefined) throw new Error('the load generator has no accounts yet');
  if (order.do === 'run') return await run(order);
  if (order.do === 'open') await open(population, order);
  else if (order.do === 'idle') await openIdle(order);
  else frames = await framesOf(population, order);
  return 'done';
}

async function framesOf(all: Population, order: FrameOrder): Promise<readonly Frame[][]> {
  if (order.do === 'messages') return all.messages(order.connections, order.messages);
  // The second account reads what the first one sent.
  if (order.do === 'pages') return [[], pageFrames(order.count, order.stored)];
  const context = contexts.get(order.name) as TestContext;
  const known = calls.get(context) ?? (await CallFrames.open(context, all, order.callers));
  calls.set(context, known);
  return known.frames(order.call, order.each);
}

async function open(all: Population, order: LoadOrder & { do: 'open' }): Promise<void> {
  const { name, sockets, ca, relay } = order.target;
  for (const socket of connections.get(name) ?? []) socket[Symbol.dispose]();
  if (relay === undefined) {
    connections.set(name, await all.greet(sockets[0] as string, await readFile(ca, 'utf8')));
    return;
  }
  const target = await loadTarget({ relay: relay.base, registry: relay.registry, ca });
  const context = await TestContext.open(target, 'wss');
  contexts.set(name, context);
  const register = order.isRegistered !== true;
  connections.set(name, await all.connect(context, sockets, { register }));
}

async function openIdle({ target, count }: LoadOrder & { do: 'idle' }): Promise<void> {
  const ca = await readFile(target.ca, 'utf8');
  for (const socket of idle.splice(count)) socket[Symbol.dispose]();
  while (idle.length < count) idle.push(await PlainSocket.open(target.sockets[0] as string, ca));
}

process.on('message', async (order: LoadOrder) => {
  const answer = await obey(order).catch((error: Error) => ({ error: error.stack }));
  process.send?.(answer);
});
// Ends with the process that started it.
process.on('disconnect', () => process.exit());
