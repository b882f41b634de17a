/** Asks the running relay through its admin interface, for commands. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request as requestHttp } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { isErrorCode, ProtocolError } from '@posthouse/protocol';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import type { ProgressState } from '@posthouse/protocol/progress';
import { listenAddress } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import { loadToken } from '../keys/admin-token.ts';
import { tlsFiles } from '../tls/configured-files.ts';
import { linesType } from './progress-lines.ts';
import { isSame, proofOf, type RelayEnd } from './token.ts';

/** Milliseconds for an answer to the first question, and between two lines of one to a verb. */
const timeouts = { proof: 5_000, verb: 40_000 } as const;
/** Bytes of an answer: a page of a list. */
const maxAnswer = 16_777_216;
/** Nesting of a line: an item may hold an object of the protocol. */
const maxDepth = 128;

/** A relay that has proved to be the one of the configuration. */
interface RunningRelay {
  /**
   * Runs a verb there.
   * @throws ProtocolError what the relay refuses with; Error if the connection is lost; the reason of
   *   the signal
   */
  call(noun: string, name: string, params: JsonObject, options?: CallOptions): Promise<JsonObject>;
}

/** For verbs that may take long. */
export interface CallOptions {
  /** Takes the items of a result that is too large for one answer. */
  readonly emit?: ((items: readonly JsonObject[]) => Promise<void>) | undefined;
  readonly progress?: ((state: ProgressState) => void) | undefined;
  /** Waits no longer; the relay goes on. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds the running relay of a configuration; `undefined` if it has no admin interface, or none
 * answers that knows the token.
 *
 * @throws Error if the token cannot be read
 */
export async function findRunningRelay(config: RelayConfig): Promise<RunningRelay | undefined> {
  const { listen, adminTokenFile } = config.operations;
  if (listen === '' || adminTokenFile === '') return undefined;
  const token = await loadToken(adminTokenFile);
  const target = await targetOf(config);
  const first = await connectProved(target, token);
  if (first === undefined) return undefined;
  first[Symbol.dispose]();
  return {
    async call(noun, name, params, options = {}) {
      using connection = await connectProved(target, token);
      if (connection === undefined)
        throw new Error('the relay does not answer any more: try again');
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: `${linesType}, application/json`,
      };
      const asked = { path: `/admin/v1/${noun}/${name}`, method: 'POST', headers };
      const body = JSON.stringify(params);
      const { status, value } = await connection.ask({ ...asked, ...options, body }, timeouts.verb);
      if (status === 200) return value;
      const { code, message } = value;
      const isKnown = typeof code === 'string' && isErrorCode(code);
      throw new ProtocolError(isKnown ? code : 'internal_error', String(message));
    },
  };
}

interface Target {
  readonly host: string;
  readonly port: number;
  /** Certificate that the relay must have, PEM; absent without TLS. */
  readonly certificate: string | undefined;
}

async function targetOf(config: RelayConfig): Promise<Target> {
  const { host, port } = listenAddress(config.operations);
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const certificate = config.operations.tls ? (await tlsFiles(config)).cert : undefined;
  return { host: reachable, port, certificate };
}

/**
 * Connects to a relay that proves to know the token; `undefined` if none is there. The token may be
 * sent over this connection, and over no other one.
 */
async function connectProved(target: Target, token: string): Promise<Connection | undefined> {
  const connection = await Connection.open(target).catch(() => undefined);
  if (connection !== undefined && (await connection.isRelay(token))) return connection;
  connection?.[Symbol.dispose]();
  return undefined;
}

/** One connection to what listens on the relay's port. */
class Connection implements Disposable {
  readonly #target: Target;
  readonly #socket: Socket;
  readonly #agent: OneSocket;

  private constructor(target: Target, socket: Socket) {
    this.#target = target;
    this.#socket = socket;
    this.#agent = new OneSocket(socket);
    // An error ends a request, or comes when the connection is not used any more.
    socket.on('error', () => {});
  }

  static async open(target: Target): Promise<Connection> {
    const { host, port, certificate } = target;
    const socket =
      certificate === undefined
        ? connect({ host, port })
        : connectTls({
            ...{ host, port },
            // The relay's own certificate, whatever names it has.
            ca: certificate,
            allowPartialTrustChain: true,
            checkServerIdentity: () => undefined,
          });
    try {
      const signal = AbortSignal.timeout(timeouts.proof);
      await once(socket, certificate === undefined ? 'connect' : 'secureConnect', { signal });
    } catch (error) {
      socket.destroy();
      throw error;
    }
    return new Connection(target, socket);
  }

  /** Whether the relay of the token is at the other end. */
  async isRelay(token: string): Promise<boolean> {
    const challenge = randomBytes(32).toString('hex');
    // The addresses are there as long as the connection is.
    const expected = proofOf(challenge, token, this.#otherEnd());
    const path = `/admin/v1/proof?challenge=${challenge}`;
    const answer = await this.ask({ path, method: 'GET' }, timeouts.proof).catch(() => undefined);
    const { proof } = answer?.value ?? {};
    return typeof proof === 'string' && isSame(proof, expected);
  }

  /** @throws Error if the connection is lost, or the answer is none of a relay */
  async ask(
    { body = '', progress = () => {}, emit = drop, signal: stopped, ...asked }: Asked,
    timeout: number,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const { host, port } = this.#target;
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort(new Error('the relay does not answer: look at its log'));
    }, timeout);
    using _timer = { [Symbol.dispose]: () => clearTimeout(timer) };
    const signal = stopped === undefined ? late.signal : AbortSignal.any([late.signal, stopped]);
    const options = { ...asked, host, port, signal, agent: this.#agent };
    const request = requestHttp(options, resolve);
    request.once('error', reject);
    request.end(body);
    const response = await promise;
    const hasLines = response.headers['content-type'] === linesType;
    let text = '';
    response.setEncoding('utf8');
    for await (const chunk of response as AsyncIterable<string>) {
      timer.refresh();
      text += chunk;
      if (text.length > maxAnswer) throw new Error('the answer of the relay is too large');
      if (hasLines) text = await takeLines(text, { progress, emit });
    }
    const value = parseJson(text) as JsonObject;
    if (hasLines) return value as unknown as Answer;
    return { status: response.statusCode ?? 0, value };
  }

  #otherEnd(): RelayEnd {
    const socket = this.#socket;
    const isSecure = socket instanceof TLSSocket;
    return {
      address: socket.remoteAddress,
      port: socket.remotePort,
      certificate: isSecure ? socket.getPeerCertificate().fingerprint256 : undefined,
    };
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
    this.#socket.destroy();
  }
}

/** Sends requests over one connection, and never over another one. */
class OneSocket extends Agent {
  readonly #socket: Socket;
  #isUsed = false;

  constructor(socket: Socket) {
    super({ keepAlive: true, maxSockets: 1 });
    this.#socket = socket;
  }

  override createConnection(
    _options: unknown,
    done?: (error: Error | null, socket: Duplex) => void,
  ): Socket | undefined {
    if (!this.#isUsed) {
      this.#isUsed = true;
      return this.#socket;
    }
    done?.(new Error('the relay closed the connection: try again'), this.#socket);
    return undefined;
  }
}

const drop = () => Promise.resolve();

/** Takes the lines of progress and items from the beginning of an answer; returns what is left. */
async function takeLines(
  text: string,
  { progress, emit }: { readonly [K in 'progress' | 'emit']: NonNullable<CallOptions[K]> },
): Promise<string> {
  let left = text;
  for (let end = left.indexOf('\n'); end !== -1; end = left.indexOf('\n')) {
    const line = parseJson(left.slice(0, end), maxDepth) as JsonObject;
    if (line.status !== undefined) return left;
    if (line.progress !== undefined) progress(line.progress as unknown as ProgressState);
    if (line.item !== undefined) await emit([line.item as JsonObject]);
    left = left.slice(end + 1);
  }
  return left;
}

interface Asked extends CallOptions {
  readonly path: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly value: JsonObject;
}
