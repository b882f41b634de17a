import type { IncomingMessage } from 'node:http';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ArrivalDeadline } from './arrival-deadline.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { GatheredChunks } from './gathered-chunks.ts';

export interface BodyPaceParts {
  readonly context: Pick<RelayContext, 'limits'>;
  readonly bytes: ByteAccounts;
  readonly owner: ByteOwner;
  readonly request: IncomingMessage;
  /** Stands still while the body is held back. */
  readonly deadline?: ArrivalDeadline;
  /** Of what arrives while the body is held back. */
  readonly hold: ByteHold;
  /** Called if that is too much. */
  readonly refused: () => void;
}

/** Bytes of a body that are read at once: more of it waits for its turns. */
export const smallBody = 65_536;

/**
 * Charges a body chunk by chunk, and holds the rest of it back while its owner owes, with all that the owner sends, or
 * until a later turn of the event loop if much was read in this one (02 §18).
 */
export class BodyPace implements Disposable {
  readonly #parts: BodyPaceParts;
  readonly #chunks: GatheredChunks | undefined;
  readonly #late: Disposable | undefined;
  /** What the body waits for. */
  #wait: Disposable | undefined;
  #isEnded = false;
  #received = 0;
  readonly #pause = (seconds: number) => this.#waitForDebt(seconds);
  readonly #end = () => this[Symbol.dispose]();

  constructor(parts: BodyPaceParts) {
    this.#parts = parts;
    this.#chunks = GatheredChunks.of(parts.request);
    this.#late = this.#chunks?.watch((bytes) => this.#holdLate(bytes));
    parts.request.once('close', this.#end);
    this.#startReceiving();
  }

  /** Bytes that were received. */
  get received(): number {
    return this.#received;
  }

  /** Charges the next bytes. Each chunk costs a least, but the first one, which belongs to the call. */
  receive({ length }: Uint8Array): void {
    const { bytes, context, owner } = this.#parts;
    const chunks = this.#chunks?.take(length) ?? 1;
    const count = this.#received === 0 ? chunks - 1 : chunks;
    this.#received += length;
    const wait = bytes.charge(owner, Math.max(length, count * context.limits.bodyChunkCharge));
    const isFull = bytes.turns.count(length) && this.#received > smallBody;
    if (wait > 0) this.#waitForDebt(wait);
    else if (isFull) this.#waitForTurn();
  }

  /** Holds nothing back any more. */
  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#parts.request.off('close', this.#end);
    this.#late?.[Symbol.dispose]();
    this.#stopReceiving();
    this.#wait?.[Symbol.dispose]();
  }

  #holdLate(bytes: number): void {
    const { hold, refused } = this.#parts;
    if (bytes < 0) hold.release(-bytes);
    else if (!hold.add(bytes)) refused();
  }

  #waitForDebt(seconds: number): void {
    const { bytes, owner } = this.#parts;
    if (this.#mayPause) this.#pauseUntil((goOn) => bytes.debts.wait(owner, seconds, goOn));
  }

  #waitForTurn(): void {
    const { bytes, owner } = this.#parts;
    if (!this.#mayPause) return;
    this.#pauseUntil((goOn) => {
      const ended = new AbortController();
      void bytes.turns.take(payerKey(owner)).then(() => ended.signal.aborted || goOn());
      return { [Symbol.dispose]: () => ended.abort() };
    });
  }

  /** Whether more is to come, and nothing is waited for. */
  get #mayPause(): boolean {
    if (this.#isEnded || this.#wait !== undefined) return false;
    return this.#received !== Number(this.#parts.request.headers['content-length']);
  }

  #pauseUntil(begin: (goOn: () => void) => Disposable): void {
    const { request, deadline } = this.#parts;
    this.#stopReceiving();
    request.pause();
    deadline?.pause();
    this.#wait = begin(() => {
      this.#wait = undefined;
      request.resume();
      deadline?.start();
      this.#startReceiving();
    });
  }

  /** Lets the owner's other connections pause this one, after a turn: what has arrived is read in it. */
  #startReceiving(): void {
    setImmediate(() => {
      if (this.#isEnded || this.#wait !== undefined) return;
      this.#parts.bytes.receivers.add(this.#parts.owner, this.#pause);
    });
  }

  #stopReceiving(): void {
    this.#parts.bytes.receivers.delete(this.#parts.owner, this.#pause);
  }
}
