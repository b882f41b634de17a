/** What the benches share: a relay's configuration, sealed messages, and raw costs to compare with. */
import { verify } from 'node:crypto';
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import {
  grantedMessage,
  type Target,
  type TestAccount,
  TestContext,
  WssCaller,
} from '@posthouse/conformance';
import { errorCatalogue } from '@posthouse/protocol';
import { importPublicKey, nodePrimitives, nodeRandom } from '@posthouse/protocol/node';

/** How long raw costs are measured, milliseconds. */
const rawPeriod = 2_000;

/** Measures how many times per second this thread can run a function. */
function rate(once: () => void): number {
  const started = performance.now();
  let count = 0;
  while (performance.now() - started < rawPeriod) {
    once();
    count += 1;
  }
  return (count * 1_000) / (performance.now() - started);
}

/** Measures verifications per second of a signature over 500 bytes, on this thread. */
export function verificationsPerSecond(): number {
  const seed = nodeRandom(32);
  const message = nodeRandom(500);
  const signature = nodePrimitives.ed25519.sign(seed, message);
  const key = importPublicKey('ed25519', nodePrimitives.ed25519.publicKey(seed));
  if (key === undefined) throw new Error('key does not import');
  return rate(() => {
    if (!verify(null, message, key, signature)) throw new Error('does not verify');
  });
}

/** Measures durable appends per second of 8 KiB to a folder's disk, one after another. */
export function flushesPerSecond(folder: string): number {
  const path = join(folder, `posthouse-flushes-${process.pid}`);
  const file = openSync(path, 'w');
  const block = nodeRandom(8_192);
  try {
    return rate(() => {
      writeSync(file, block);
      fsyncSync(file);
    });
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

const unlimited = 1_000_000;

/** Writes a development relay's configuration file, with rate limits that are never reached. */
export function writeConfig(
  folder: string,
  { limits: others, ...settings }: Readonly<Record<string, unknown>> & { readonly limits?: object },
): string {
  const path = join(folder, 'config.json');
  const limits = {
    accountRate: unlimited,
    accountBurst: unlimited,
    addressRate: unlimited,
    addressBurst: unlimited,
    ...others,
  };
  writeFileSync(
    path,
    JSON.stringify({ dev: true, data: folder, log: 'error', limits, ...settings }),
  );
  return path;
}

export interface LoadOptions {
  readonly connections: number;
  /** Messages of each connection. */
  readonly messages: number;
  /** Requests in flight on each connection. */
  readonly window: number;
}

export interface LoadResult {
  readonly accepted: number;
  readonly seconds: number;
  /** Sends that were answered `temporarily_unavailable` and repeated. */
  readonly retried: number;
  /** Milliseconds from a request to the answer that accepts it. */
  readonly median: number;
  readonly ninetyNine: number;
}

/**
 * Many connections, each of an account of its own, with messages that are sealed before the clock
 * starts. Each message has a grant, goes to another account and gets a sent record.
 */
export class Load implements AsyncDisposable {
  readonly #context: TestContext;
  readonly #connections: readonly { readonly caller: WssCaller; readonly texts: string[] }[];
  readonly #window: number;

  private constructor(
    context: TestContext,
    connections: readonly { readonly caller: WssCaller; readonly texts: string[] }[],
    window: number,
  ) {
    this.#context = context;
    this.#connections = connections;
    this.#window = window;
  }

  /**
   * Registers the accounts, connects them and seals their messages.
   * @param sockets WebSocket addresses of the relay's processes; connections use them in turn
   */
  static async prepare(
    target: Target,
    sockets: readonly string[],
    options: LoadOptions,
  ): Promise<Load> {
    const context = await TestContext.open(target, 'wss');
    const devices: TestAccount['device'][] = [];
    const callers: WssCaller[] = [];
    for (let index = 0; index < options.connections; index += 1) {
      const account = context.account();
      const device = await account.device();
      await context.register(account, [device]);
      const caller = await WssCaller.open(target, sockets[index % sockets.length] as string);
      await context.authenticateDevice(caller, device);
      devices.push(device);
      callers.push(caller);
    }
    const connections = callers.map((caller, index) => {
      const sender = devices[index] as TestAccount['device'];
      const senders = [sender.certificate];
      const texts = Array.from({ length: options.messages }, (_, id) => {
        const recipient = devices[(index + distance(id, devices.length)) % devices.length];
        const params = grantedMessage(sender, [recipient as TestAccount['device']], { senders });
        return JSON.stringify({ jsonrpc: '2.0', id, method: 'message.send', params });
      });
      return { caller, texts };
    });
    return new Load(context, connections, options.window);
  }

  /** Sends all messages and measures. */
  async run(): Promise<LoadResult> {
    const started = performance.now();
    const sent = this.#connections.map(({ caller, texts }) => sendAll(caller, texts, this.#window));
    const results = await Promise.all(sent);
    const latencies = results.flatMap((result) => result.latencies).sort((a, b) => a - b);
    const quantile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0;
    return {
      accepted: latencies.length,
      retried: results.reduce((sum, result) => sum + result.retried, 0),
      seconds: (performance.now() - started) / 1_000,
      median: quantile(0.5),
      ninetyNine: quantile(0.99),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { caller } of this.#connections) caller[Symbol.dispose]();
    await this.#context[Symbol.asyncDispose]();
  }
}

/**
 * The recipient's distance from the sender in the list of accounts. It varies, so that all accounts
 * write to all others: with neighbours alone, accounts would wait for each other in one chain.
 */
function distance(message: number, accounts: number): number {
  return 1 + ((message * 31) % (accounts - 1));
}

interface Sent {
  /** Milliseconds of each message. */
  readonly latencies: readonly number[];
  readonly retried: number;
}

const unavailable = `"code":${errorCatalogue.temporarily_unavailable.rpc}`;

/** Sends prepared texts on one connection, `window` of them in flight. */
function sendAll({ socket }: WssCaller, texts: readonly string[], window: number): Promise<Sent> {
  const started: number[] = [];
  const latencies: number[] = [];
  let retried = 0;
  const { promise, resolve, reject } = Promise.withResolvers<Sent>();
  const next = () => {
    const text = texts[started.length];
    if (text === undefined) return;
    started.push(performance.now());
    socket.send(text);
  };
  socket.listen((text) => {
    const id = /"id":([0-9]+)/.exec(text)?.[1];
    if (id === undefined) return; // A hint about the timeline.
    if (text.includes(unavailable)) {
      // The relay answers this only after seconds, so repeating at once is no busy loop.
      retried += 1;
      socket.send(texts[Number(id)] as string);
      return;
    }
    if (!text.includes('"target_accepted"')) reject(new Error(text));
    latencies.push(performance.now() - (started[Number(id)] as number));
    if (latencies.length === texts.length) resolve({ latencies, retried });
    next();
  });
  for (let count = 0; count < window; count += 1) next();
  return promise;
}
