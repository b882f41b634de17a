/** What is below `/admin/`: the operator's verbs at `POST /admin/v1/<noun>/<verb>`, and the page. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import { errorCatalogue, ProtocolError } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { BoundedMap } from '../bounded-map.ts';
import type { RelayConfig } from '../config/index.ts';
import type { RelayContext } from '../context.ts';
import { adminTokenRefused, verbFailed } from '../observability/admin-events.ts';
import type { ServedFile } from '../web/index.ts';
import { isPageRequest, sendPage } from './page.ts';
import { ProgressLines } from './progress-lines.ts';
import { type OwnNames, readParams, requireOwnSite } from './requests.ts';
import { SignedRequests } from './signed-requests.ts';
import { isAuthorized, isChallenge, proofOf, type RelayEnd } from './token.ts';
import { runVerb, type Verb, type VerbTools } from './verb.ts';
import { findVerb, verbs } from './verbs/index.ts';

/** Verbs under way. */
const maxUnderWay = 8;
/** Addresses whose wrong tokens are remembered, and milliseconds between two log lines of one. */
const maxAddresses = 1_000;
const logInterval = 60_000;

interface AdminParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'random' | 'storage'>;
  readonly config: RelayConfig;
  readonly token: string;
  readonly names: OwnNames;
  /** Files of the page; none if it was not built. */
  readonly page: ReadonlyMap<string, ServedFile>;
}

/** Answers the requests of `/admin`, and those below it. */
export class AdminInterface {
  readonly #parts: AdminParts;
  #tools: VerbTools;
  /** When the last log line of an address was written, monotonic milliseconds. */
  readonly #refused = new BoundedMap<string, number>(maxAddresses);
  readonly #signed: SignedRequests;
  #underWay = 0;

  constructor(parts: AdminParts) {
    this.#parts = parts;
    this.#signed = new SignedRequests({ ...parts.context, token: parts.token });
    const { storage, clock, random, limits } = parts.context;
    this.#tools = { storage, clock, random, config: { ...parts.config, limits } };
  }

  /** Takes over changed addresses of trusted proxies, for verbs that begin from now on. */
  trust(trustedProxies: readonly string[]): void {
    this.#tools = {
      ...this.#tools,
      config: { ...this.#tools.config, trustedProxies: [...trustedProxies] },
    };
  }

  /** Answers a request; never throws. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isPageRequest(request)) return this.#answerPage(request, response);
    using lines = new ProgressLines(request, response, this.#parts.context.clock);
    const answer = await this.#resultOf(request, lines).then(
      (value): Answer => ({ status: 200, value }),
      (error) => this.#refusal(request, error),
    );
    if (!lines.end({ status: answer.status, value: answer.value })) send(response, answer);
  }

  #answerPage(request: IncomingMessage, response: ServerResponse): void {
    try {
      requireOwnSite(request, this.#parts.names);
      sendPage(request, response, this.#parts.page);
    } catch (error) {
      send(response, this.#refusal(request, error));
    }
  }

  async #resultOf(request: IncomingMessage, lines: ProgressLines): Promise<JsonObject> {
    const { method, url = '' } = request;
    requireOwnSite(request, this.#parts.names);
    const [path = '', query = ''] = url.split('?', 2);
    if (path === '/admin/v1/proof' && method === 'GET') return this.#proof(query, request);
    const bodyDigest = this.#authorize(request, path);
    if (path === '/admin/v1/verbs' && method === 'GET') return { items: verbs.map(described) };
    const [, noun = '', name = ''] = /^\/admin\/v1\/([a-z]+)\/([a-z-]+)$/.exec(path) ?? [];
    const verb = method === 'POST' ? findVerb(noun, name) : undefined;
    if (verb === undefined) {
      throw new ProtocolError('method_not_found', 'see GET /admin/v1/verbs');
    }
    if (this.#underWay >= maxUnderWay) {
      throw new ProtocolError('temporarily_unavailable', 'too much is under way: try again');
    }
    this.#underWay += 1;
    try {
      return await this.#run(verb, request, { bodyDigest, lines });
    } finally {
      this.#underWay -= 1;
    }
  }

  /** @throws ProtocolError `bad_request` */
  #proof(query: string, { socket }: IncomingMessage): JsonObject {
    const challenge = new URLSearchParams(query).get('challenge') ?? '';
    if (!isChallenge(challenge)) {
      throw new ProtocolError('bad_request', 'challenge: expected 64 hexadecimal digits');
    }
    const proof = proofOf(challenge, this.#parts.token, ownEnd(socket));
    return { proof, nonce: this.#signed.nonce() };
  }

  /**
   * Checks that a request has the token, or a signature with it.
   *
   * @returns the digest that the body must have, if it is signed
   * @throws ProtocolError `unauthorized`
   */
  #authorize({ headers }: IncomingMessage, path: string): string | undefined {
    const { authorization = '' } = headers;
    if (isAuthorized(authorization, this.#parts.token)) return undefined;
    const digest = this.#signed.bodyDigestOf(authorization, path);
    if (digest !== undefined) return digest;
    throw new ProtocolError('unauthorized', 'the token is missing or wrong');
  }

  async #run(
    verb: Verb,
    request: IncomingMessage,
    {
      bodyDigest,
      lines,
    }: {
      readonly bodyDigest: string | undefined;
      readonly lines: ProgressLines;
    },
  ): Promise<JsonObject> {
    const params = await readParams(request, bodyDigest);
    const { log } = this.#parts.context;
    try {
      const tools = { ...this.#tools, progress: lines.show, emit: lines.emit };
      return await runVerb(verb, params, { tools, log, by: 'http' });
    } catch (error) {
      if (!(error instanceof ProtocolError))
        verbFailed({ log }, `${verb.noun} ${verb.name}`, error);
      throw error;
    }
  }

  #refusal(request: IncomingMessage, error: unknown): Answer {
    const refusal =
      error instanceof ProtocolError ? error : new ProtocolError('internal_error', 'see the log');
    if (refusal.code === 'unauthorized') this.#logRefused(request.socket.remoteAddress ?? '');
    const { code, message } = refusal;
    return {
      status: code === 'method_not_found' ? 404 : errorCatalogue[code].http,
      value: { code, message },
      headers: {
        // A body that was not read would be taken for the next request.
        ...(request.complete ? {} : { connection: 'close' }),
        ...(code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
      },
    };
  }

  #logRefused(address: string): void {
    const { clock, log } = this.#parts.context;
    const now = clock.monotonic();
    const last = this.#refused.peek(address);
    if (last !== undefined && now - last < logInterval) return;
    this.#refused.set(address, now);
    adminTokenRefused({ log }, address);
  }
}

function ownEnd(socket: Socket): RelayEnd {
  const own =
    socket instanceof TLSSocket ? (socket.getCertificate() as PeerCertificate) : undefined;
  return {
    address: socket.localAddress,
    port: socket.localPort,
    certificate: own?.fingerprint256,
  };
}

function described({ noun, name, description, changes, params }: Verb): JsonObject {
  return { noun, verb: name, description, changes, params: params as unknown as JsonObject };
}

interface Answer {
  readonly status: number;
  readonly value: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
}

function send(response: ServerResponse, { status, value, headers = {} }: Answer): void {
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    })
    .end(`${JSON.stringify(value)}\n`);
}
