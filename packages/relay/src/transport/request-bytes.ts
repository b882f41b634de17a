import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { parsedBytes } from '../dispatch/parsed-bytes.ts';
import { ArrivalDeadline } from './arrival-deadline.ts';
import { BodyBuffer } from './body-buffer.ts';
import { BodyPace, smallBody, whenGone } from './body-pace.ts';
import { type ByteAccounts, tooManyBytes } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { ParsedPieces } from './parsed-pieces.ts';
import { cutOff } from './streamed-body.ts';

export interface RequestBytesParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: ByteAccounts;
  readonly owner: ByteOwner;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Requests whose address and headers are charged. */
const charged = new WeakSet<IncomingMessage>();

/** Accounts for the bytes of one HTTP request, from its headers until it is answered (02 §18). */
export class RequestBytes {
  readonly #parts: RequestBytesParts;
  readonly #hold: ByteHold;
  #fail: ((error: ProtocolError) => void) | undefined;

  /** @throws ProtocolError `rate_limited` if the owner is in debt or holds too much, before the body */
  constructor(parts: RequestBytesParts) {
    const { bytes, context, owner, request, response } = parts;
    this.#parts = parts;
    this.#hold = bytes.received.open(owner, () => this.#fail?.(tooManyBytes(context)));
    response.once('close', () => this.#hold[Symbol.dispose]());
    takeHead(bytes, owner, request);
    const declared = Number(request.headers['content-length'] ?? 0);
    checkBodyLength(declared, context);
    if (!bytes.received.hasRoom(owner, declared)) throw tooManyBytes(context);
  }

  /**
   * Reads the body; every chunk counts when it arrives.
   *
   * @throws ProtocolError `request_too_large` or `rate_limited`, if it is too much;
   *   `temporarily_unavailable` if it takes too long; `bad_request` if it ends early
   */
  async readBody(body: Readable): Promise<Buffer> {
    const { bytes, context, request, response, owner } = this.#parts;
    // Its events are over if the peer went while its session was looked up.
    if (body.destroyed) throw cutOff();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const received = new BodyBuffer();
    using deadline = new ArrivalDeadline({
      ...{ context, bytes },
      owner: () => owner,
      period: context.limits.requestTimeout,
      hasSession: () => owner.kind === 'account',
      expired: () => {
        if (this.#fail === undefined) return;
        // What is no HTTP in a body was answered when it was parsed.
        if (!response.headersSent) response.setHeader('connection', 'close');
        fail(new ProtocolError('temporarily_unavailable', 'the body did not arrive in time'));
      },
    });
    deadline.start();
    const receive = (chunk: Buffer) => {
      try {
        checkBodyLength(received.length + chunk.length, context);
        if (!this.#hold.add(received.add(chunk))) throw tooManyBytes(context);
        deadline.receive(chunk.length);
        pace.receive(chunk);
      } catch (error) {
        fail(error);
      }
    };
    let failure: unknown;
    const fail = (error: unknown) => {
      failure ??= error;
      received.clear();
      body.removeListener('data', receive);
      // What is left is dropped when the error is answered.
      if (request.complete) body.resume();
      else body.pause();
      reject(error);
    };
    this.#fail = fail;
    const refused = () => fail(tooManyBytes(context));
    using pace = new BodyPace({ ...this.#parts, deadline, refused });
    const cut = () => fail(cutOff());
    if (failure === undefined) body.on('data', receive);
    body.once('error', cut).once('close', cut);
    // Of a request that was answered meanwhile, Node announces no end.
    response.once('close', cut);
    body.once('end', () => {
      body.removeListener('close', cut);
      deadline[Symbol.dispose]();
      pace[Symbol.dispose]();
      resolve();
    });
    // The parser's error may have been answered already.
    if (expectsContinue(request) && !response.headersSent) response.writeContinue();
    try {
      await promise;
      const { length } = received;
      if (length > smallBody) await bytes.turns.take(payerKey(owner), length);
      if (failure !== undefined) throw failure;
      // Its connection may have ended while it waited for its turn.
      if (response.closed) throw cutOff();
      return received.whole();
    } finally {
      response.off('close', cut);
      this.#fail = undefined;
    }
  }

  /**
   * Counts what a body takes once it is read, before it is read; {@link parsedBytes}.
   *
   * @throws ProtocolError `rate_limited` if it is too much
   */
  holdParsed(parsed: number): void {
    const { response, context } = this.#parts;
    // A hold that grew after the end would never end.
    if (response.closed || !this.#hold.add(parsed)) throw tooManyBytes(context);
  }
}

/** Bytes that a peer takes in a millisecond, at least: it has that much longer for a large answer. */
export const slowestPeer = 4;

/**
 * Holds an answer until the peer has taken it; ends the connection of a peer that does not take it in
 * time, or has too much waiting.
 *
 * @param inMemory bytes of it that are in memory at once
 */
export function holdAnswer(
  { context, bytes, owner, response }: Omit<RequestBytesParts, 'request'>,
  length: number,
  inMemory = length,
): void {
  // Its event is over, and nothing would end what is held.
  if (response.closed) return;
  const end = () => void response.socket?.destroy();
  const hold = bytes.waiting.open(owner, end);
  // A write that ended while this process was busy is announced first.
  const deadline = context.clock.after(context.limits.sendTimeout + length / slowestPeer, () =>
    setImmediate(() => response.closed || end()),
  );
  response.once('close', () => {
    hold[Symbol.dispose]();
    deadline[Symbol.dispose]();
  });
  if (!hold.add(inMemory)) end();
}

/**
 * Reads and drops the rest of a body whose request is answered: it is charged, and not without end. One that has
 * arrived and is paused is read to its end, too: otherwise it would stay in memory as long as its connection.
 */
export function dropBody(parts: Omit<RequestBytesParts, 'response'>): void {
  const { context, request } = parts;
  if (request.closed || (request.complete && !request.isPaused())) return;
  const { droppedBodyBytes, requestTimeout } = context.limits;
  const end = () => void request.socket.destroy();
  ParsedPieces.of(request.socket)?.boundBody(request, droppedBodyBytes);
  const dropped = new DisposableStack();
  dropped.use(context.clock.after(requestTimeout, end));
  dropped.use(whenGone(request, () => dropped.dispose()));
  const pace = new BodyPace({ ...parts, refused: end });
  request.on('data', (chunk: Buffer) => {
    pace.receive(chunk);
    if (pace.received > droppedBodyBytes) end();
  });
  request.resume();
  request.socket.resume();
}

/** Whether the client sends the body when it is asked for. */
export function expectsContinue({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.expect?.toLowerCase() === '100-continue';
}

function checkBodyLength(length: number, { limits }: Pick<RelayContext, 'limits'>): void {
  if (length <= limits.httpBodyBytes) return;
  throw new ProtocolError('request_too_large', 'the body exceeds the limit of this relay');
}

/**
 * Charges the address and headers of a request to its owner.
 *
 * @throws ProtocolError `rate_limited` if the owner is in debt
 */
export function takeHead(
  bytes: Pick<ByteAccounts, 'charge'>,
  owner: ByteOwner,
  request: IncomingMessage,
): void {
  const wait = chargeHead(bytes, owner, request);
  if (wait === 0) return;
  throw new ProtocolError('rate_limited', 'too many bytes', { data: { retry_after: wait } });
}

/**
 * Charges the address and headers of a request, once.
 *
 * @returns 0, or the whole seconds until the owner may send again
 */
export function chargeHead(
  bytes: Pick<ByteAccounts, 'charge'>,
  owner: ByteOwner,
  request: IncomingMessage,
): number {
  if (charged.has(request)) return 0;
  charged.add(request);
  return bytes.charge(owner, headBytes(request));
}

/** Returns the bytes of a request's address and headers, about. */
export function headBytes({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length);
}
