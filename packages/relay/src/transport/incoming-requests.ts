import { ProtocolError, rpcErrors } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import {
  encodeFailure,
  encodeRefusal,
  guessId,
  type RefusedRequest,
  type RpcId,
  type RpcRequest,
  readEnvelope,
  readEnvelopeInSteps,
} from '../dispatch/envelope.ts';
import { parsedBytes, parsedBytesInSteps } from '../dispatch/parsed-bytes.ts';
import { largeText, type Steps } from '../dispatch/slices.ts';
import { tooManyBytes } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { RequestQueue } from './request-queue.ts';

/** What is known of a request when its text was read. */
export interface ReceivedText {
  readonly bytes: number;
  /** Whether it was charged before it was read. */
  readonly isPaid: boolean;
  /** Whether it is answered in the turn of its payer in which it was read. */
  readonly hasTurn: boolean;
}

export interface IncomingRequestsParts {
  readonly context: Pick<RelayContext, 'limits'>;
  readonly dispatcher: Pick<Dispatcher, 'longWork' | 'takeKnown'>;
  /** Returns the payer. */
  readonly owner: () => ByteOwner;
  /** Makes a hold for the bytes of one request. */
  readonly holdRequest: () => ByteHold;
  /** Returns the bytes that wait for the peer. */
  readonly waitingBytes: () => number;
  /** Answers a request; resolves when the answer was given to the socket. */
  readonly answer: (request: RpcRequest, text: ReceivedText, hold: ByteHold) => Promise<void>;
  /** Answers a text that is no request, or not admitted. */
  readonly refuse: (bytes: Uint8Array, answer: string, isPaid: boolean) => void;
  /** Called when a large text has been read. */
  readonly wasRead: () => void;
}

/**
 * Reads the texts of one WebSocket as requests and begins them (02 §3.3, §18): a number and bytes of
 * them may be under way, a large one is paid for before it is read, and each has an ID of its own.
 */
export class IncomingRequests implements Disposable {
  readonly #parts: IncomingRequestsParts;
  readonly #queue: RequestQueue;
  readonly #outstanding = new Set<RpcId>();
  /** Large requests that are being read: their IDs are not known yet. */
  #reading = 0;
  #isClosed = false;

  constructor(parts: IncomingRequestsParts) {
    this.#parts = parts;
    this.#queue = new RequestQueue(parts);
  }

  /** Number of requests that are not answered. */
  get outstanding(): number {
    return this.#outstanding.size;
  }

  /** Number of requests that are being read or not answered. */
  get underWay(): number {
    return this.#outstanding.size + this.#reading;
  }

  get #isFull(): boolean {
    return this.underWay >= this.#parts.context.limits.outstandingRequests;
  }

  /** Reads a text, and begins the request when there is room for its answer. */
  receive(bytes: Buffer): void {
    if (bytes.length < largeText) {
      const parsed = parsedBytes(bytes);
      this.#request(bytes, readEnvelope(bytes), { parsed, isPaid: false, hasTurn: true });
    } else {
      void this.#readLarge(bytes);
    }
  }

  /** Lets a request's ID be used again. */
  answered(id: RpcId): void {
    this.#outstanding.delete(id);
  }

  /** Begins the requests that there is room for; called when the peer has taken something. */
  startNext(): void {
    this.#queue.startNext();
  }

  /** Begins no request any more, also none that is being read. */
  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#queue[Symbol.dispose]();
  }

  /** Pays for a large request, then reads it in slices; it counts as one under way meanwhile. */
  async #readLarge(bytes: Buffer): Promise<void> {
    const { context, holdRequest, refuse, wasRead } = this.#parts;
    if (this.#isFull) {
      refuse(bytes, encodeFailure(guessId(bytes), tooManyRequests()), false);
      return;
    }
    const hold = holdRequest();
    if (!hold.add(bytes.length)) {
      refuse(bytes, encodeFailure(guessId(bytes), tooManyBytes(context)), false);
      return;
    }
    this.#reading += 1;
    const before = hold.bytes;
    const envelope = await this.#readPaid(bytes, hold);
    this.#reading -= 1;
    const parsed = Math.max(0, hold.bytes - before);
    hold[Symbol.dispose]();
    if (this.#isClosed) return;
    this.#request(bytes, envelope, { parsed, isPaid: true, hasTurn: false });
    wasRead();
  }

  async #readPaid(bytes: Buffer, hold: ByteHold): Promise<RpcRequest | RefusedRequest> {
    const { dispatcher } = this.#parts;
    const owner = this.#parts.owner();
    try {
      dispatcher.takeKnown(owner, bytes.length);
      return await dispatcher.longWork.read(payerKey(owner), () => this.#readInSteps(bytes, hold));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return { kind: 'refused', answer: encodeFailure(guessId(bytes), error) };
    }
  }

  *#readInSteps(bytes: Buffer, hold: ByteHold): Steps<RpcRequest | RefusedRequest> {
    const { context } = this.#parts;
    if (this.#isClosed) throw tooManyBytes(context);
    const parsed = yield* parsedBytesInSteps(bytes);
    // A hold that grew after the end would never end.
    if (this.#isClosed || !hold.add(parsed)) throw tooManyBytes(context);
    return yield* readEnvelopeInSteps(bytes);
  }

  #request(
    bytes: Buffer,
    envelope: RpcRequest | RefusedRequest,
    { parsed, ...text }: Pick<ReceivedText, 'isPaid' | 'hasTurn'> & { readonly parsed: number },
  ): void {
    const { context, holdRequest, answer } = this.#parts;
    const refuse = (refusal: string) => this.#parts.refuse(bytes, refusal, text.isPaid);
    if (envelope.kind === 'refused') {
      refuse(envelope.answer);
      return;
    }
    const { id, method } = envelope;
    if (this.#outstanding.has(id)) {
      const reason = 'a request with this id is in progress';
      refuse(encodeRefusal(id, rpcErrors.invalid_request, reason));
      return;
    }
    if (this.#isFull) {
      refuse(encodeFailure(id, tooManyRequests()));
      return;
    }
    const hold = holdRequest();
    const { waitingRequestCharge } = context.limits;
    if (!hold.add(Math.max(waitingRequestCharge, bytes.length + parsed))) {
      refuse(encodeFailure(id, tooManyBytes(context)));
      return;
    }
    this.#outstanding.add(id);
    const received = { ...text, bytes: bytes.length };
    this.#queue.add({ method, hold, start: () => answer(envelope, received, hold) });
    // If it waits, it takes another turn.
    received.hasTurn = false;
  }
}

function tooManyRequests(): ProtocolError {
  // There is room as soon as one of them is answered.
  const data = { retry_after: 1 };
  return new ProtocolError('rate_limited', 'too many requests in progress', { data });
}
