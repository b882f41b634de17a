/**
 * HTTP routes of attachments, next to the methods of the protocol (decision 0032): `PUT`, `GET`,
 * `HEAD` and `DELETE` at `blobs`, after each base address.
 */
import { ProtocolError, parseMediaType } from '@posthouse/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Blobs } from '../blobs/index.ts';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { RelayContext } from '../context.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import { refusalOf } from '../dispatch/refusal.ts';
import type { Session } from '../sessions/session.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import { byteRange } from './byte-range.ts';
import { callers, ownerOf, sessionToken } from './callers.ts';
import type { ClientAddresses } from './client-addresses.ts';
import type { ConnectionTable } from './connection-table.ts';
import { expectsContinue, takeHead } from './request-bytes.ts';
import { cutOff, streamBody } from './streamed-body.ts';
import type { Transfers } from './transfers.ts';

export interface BlobParts {
  /** Absent if the relay stores no attachments: the routes do not exist then. */
  readonly blobs: Blobs | undefined;
  readonly transfers: Transfers;
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly addresses: PublicAddresses;
  readonly clients: ClientAddresses;
  readonly bytes: ByteAccounts;
  readonly open: ConnectionTable;
}

/** Headers of a download: bytes of a stranger, which no browser may run, sniff or show as a page. */
const downloadHeaders = {
  'content-type': 'application/octet-stream',
  'content-disposition': 'attachment',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'cross-origin',
  'accept-ranges': 'bytes',
  'access-control-expose-headers':
    'Accept-Ranges, Content-Length, Content-Range, ETag, Retry-After',
};

/** Bytes of a file that are read at once. */
const pieceBytes = 65_536;

/** Bytes of a file that cost as much as one of a call: they are copied and not parsed. */
export const bytesPerCharged = 16;

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export function addBlobRoutes(app: FastifyInstance, parts: BlobParts, base: string): void {
  const { blobs, context } = parts;
  if (blobs === undefined) return;
  const routes = new BlobRoutes({ ...parts, blobs }, base);
  const answered =
    (answer: (exchange: Exchange) => Promise<FastifyReply>) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      try {
        return await answer({ request, reply });
      } catch (error) {
        // The parser's error may have been answered while a file was opened: that ends it.
        throw refusalOf(context, 'blobs', reply.raw.writableEnded ? cutOff() : error);
      }
    };
  app.put(
    `${base}/blobs`,
    answered((exchange) => routes.put(exchange)),
  );
  app.delete(
    `${base}/blobs/:name`,
    answered((exchange) => routes.delete(exchange)),
  );
  app.route({
    method: ['GET', 'HEAD'],
    url: `${base}/blobs/:name`,
    handler: answered((exchange) => routes.get(exchange)),
  });
}

class BlobRoutes {
  readonly #parts: BlobParts & { readonly blobs: Blobs };
  readonly #base: string;
  readonly #transfers: Transfers;

  constructor(parts: BlobParts & { readonly blobs: Blobs }, base: string) {
    this.#parts = parts;
    this.#base = base;
    this.#transfers = parts.transfers;
  }

  /** Stores the body of a request with a device session. */
  async put({ request, reply }: Exchange): Promise<FastifyReply> {
    const { blobs, bytes, context } = this.#parts;
    const { token, session } = await this.#requireDevice(request);
    if (session.mode === 'device' && session.homeRelay !== undefined) {
      const why = 'attachments are stored for the accounts at home here: use the own relay';
      throw new ProtocolError('forbidden', why);
    }
    const owner = { kind: 'account', id: session.account } as const;
    const length = declaredLength(request);
    blobs.checkLength(length);
    this.#take(owner, length);
    takeHead(bytes, owner, request.raw);
    using _transfer = this.#transfers.begin(owner);
    const { name, expiresAt } = await blobs.put({
      account: session.account,
      bytes: length,
      receive: async (write) => {
        // The parser's error may have been answered already.
        if (reply.raw.headersSent) throw cutOff();
        if (expectsContinue(request)) reply.raw.writeContinue();
        const body = { context, bytes, owner, request: request.raw, response: reply.raw };
        await streamBody(body, length, write);
      },
      mayStore: async () => {
        // Without an answer the client sends it again, and would have stored it twice.
        if (reply.raw.closed) throw cutOff();
        return (await context.sessions.find(token, this.#origin)) !== undefined;
      },
    });
    return reply
      .code(201)
      .type('application/json')
      .send(JSON.stringify({ uri: `${this.#address}/blobs/${name}`, expires_at: expiresAt }));
  }

  /** Serves a file, or the part that is asked for, to anybody who knows its name. */
  async get({ request, reply }: Exchange): Promise<FastifyReply> {
    const { blobs } = this.#parts;
    const owner = ownerOf(this.#parts, request);
    takeHead(this.#parts.bytes, owner, request.raw);
    this.#take(owner, 0);
    using ended = new DisposableStack();
    ended.use(this.#transfers.begin(owner));
    const { name } = request.params as { readonly name: string };
    const { file, bytes } = await blobs.open(name);
    ended.defer(() => void file.close().catch(() => {}));
    // Closed while the file was looked for: its event is over, and nothing would end the transfer.
    if (reply.raw.closed) return reply.hijack();
    const etag = `"${name}"`;
    const { range: asked, 'if-range': ifRange = etag } = request.headers;
    const range = ifRange === etag ? byteRange(asked, bytes) : undefined;
    reply.headers({ ...downloadHeaders, etag });
    if (range === 'unsatisfiable') {
      return reply.code(416).header('content-range', `bytes */${bytes}`).send('');
    }
    const { start, end } = range ?? { start: 0, end: bytes - 1 };
    const length = end - start + 1;
    reply.header('content-length', String(length));
    if (range !== undefined) {
      reply.code(206).header('content-range', `bytes ${start}-${end}/${bytes}`);
    }
    if (request.method === 'HEAD' || length === 0) return reply.send('');
    this.#take(owner, length);
    const moved = ended.move();
    reply.raw.once('close', () => moved[Symbol.dispose]());
    const content = file.createReadStream({
      start,
      end,
      highWaterMark: pieceBytes,
      autoClose: false,
    });
    return reply.send(content);
  }

  async delete({ request, reply }: Exchange): Promise<FastifyReply> {
    const { session } = await this.#requireDevice(request);
    const owner = { kind: 'account', id: session.account } as const;
    takeHead(this.#parts.bytes, owner, request.raw);
    this.#take(owner, 0);
    const { name } = request.params as { readonly name: string };
    await this.#parts.blobs.delete(session.account, name);
    return reply.code(204).send();
  }

  async #requireDevice(
    request: FastifyRequest,
  ): Promise<{ readonly token: string; readonly session: Session }> {
    const { clients, context, dispatcher, open } = this.#parts;
    const address = clients.of(request.raw);
    const token = sessionToken(request, context.network);
    const session = await dispatcher.requireDevice(token, { origin: this.#origin, address });
    open.setSession(request.raw.socket, true);
    callers.set(request, { address, owner: { kind: 'account', id: session.account } });
    return { token: token as string, session };
  }

  #take(owner: { readonly kind: 'account' | 'address'; readonly id: string }, bytes: number): void {
    this.#parts.dispatcher.takeKnown(owner, bytes / bytesPerCharged);
  }

  get #origin(): string {
    return this.#parts.addresses.httpOrigin(this.#base);
  }

  /** The base address of the requests that these routes answer. */
  get #address(): string {
    return this.#origin + this.#base;
  }
}

/** @throws ProtocolError `bad_request` for a body of unknown length, another type, or encoded */
function declaredLength({ headers }: FastifyRequest): number {
  const length = headers['content-length'];
  if (length === undefined || !/^\d{1,15}$/.test(length)) {
    throw new ProtocolError('bad_request', 'the header Content-Length is missing');
  }
  if (parseMediaType(headers['content-type'] ?? '')?.essence !== 'application/octet-stream') {
    throw new ProtocolError('bad_request', 'the body is not declared as application/octet-stream');
  }
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new ProtocolError('bad_request', 'content encodings are not used');
  }
  return Number(length);
}
