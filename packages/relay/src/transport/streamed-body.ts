/** Reads a large body piece by piece: one piece is in memory, and backpressure holds the rest back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { ArrivalDeadline } from './arrival-deadline.ts';
import { type ByteAccounts, tooManyBytes } from './byte-accounts.ts';
import type { ByteOwner } from './byte-ledger.ts';
import { GatheredChunks } from './gathered-chunks.ts';

export interface StreamedBodyParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits'>;
  readonly bytes: ByteAccounts;
  /** An account with a session. */
  readonly owner: ByteOwner;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Passes the pieces of a body on, in order. An account in debt is read more slowly.
 *
 * @param length bytes of the whole
 * @throws ProtocolError `bad_request` if it ends early; `temporarily_unavailable` if it takes too
 *   long; `rate_limited` if the account holds too many bytes
 */
export async function streamBody(
  { context, bytes, owner, request, response }: StreamedBodyParts,
  length: number,
  write: (piece: Uint8Array) => Promise<void>,
): Promise<void> {
  const { promise: ended, reject: end } = Promise.withResolvers<never>();
  // It may be rejected when nothing waits for it.
  ended.catch(() => {});
  using hold = bytes.received.open(owner, () => end(tooManyBytes(context)));
  using deadline = new ArrivalDeadline({
    ...{ context, bytes },
    owner: () => owner,
    period: context.limits.requestTimeout,
    hasSession: () => true,
    expired: () => {
      end(new ProtocolError('temporarily_unavailable', 'the body did not arrive in time'));
    },
  });
  // The end of a connection is answered by the parser's error, and is no event of the request then.
  const close = () => request.complete || end(cutOff());
  request.once('close', close).once('error', close);
  response.once('close', close);
  deadline.start();
  let left = length;
  const gathered = GatheredChunks.of(request);
  using _reader = gathered?.readBy({
    waiting: (count) => {
      if (count < 0) hold.release(-count);
      else if (!hold.add(count)) end(tooManyBytes(context));
    },
  });
  // A refusal is answered on the same connection, and the rest of the body is dropped.
  using pieces = new Pieces(request);
  while (left > 0) {
    const piece = await Promise.race([pieces.next(), ended]);
    if (piece === undefined) throw cutOff();
    gathered?.take(piece.length);
    if (!hold.add(piece.length)) throw tooManyBytes(context);
    deadline.receive(piece.length);
    deadline.pause();
    await write(piece);
    hold.release(piece.length);
    left -= piece.length;
    const chunks = gathered?.takeCount() ?? 1;
    const wait = bytes.charge(
      owner,
      Math.max(piece.length, chunks * context.limits.bodyChunkCharge),
    );
    if (wait > 0 && left > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      using _wait = bytes.debts.wait(owner, wait, resolve);
      await Promise.race([promise, ended]);
    }
    deadline.start();
  }
}

/** Takes one piece of a body at a time: in between it is paused. */
class Pieces implements Disposable {
  readonly #body: IncomingMessage;
  #take: ((piece?: Buffer) => void) | undefined;
  readonly #receive = (piece?: Buffer) => {
    this.#body.off('data', this.#receive);
    if (piece !== undefined) this.#body.pause();
    this.#take?.(piece);
  };
  readonly #end = () => this.#receive();

  constructor(body: IncomingMessage) {
    this.#body = body;
    body.once('end', this.#end).once('close', this.#end);
  }

  /** Resolves with the next piece; with nothing if the body has ended, or its peer has gone. */
  async next(): Promise<Buffer | undefined> {
    const body = this.#body;
    if (body.destroyed) return undefined;
    const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
    this.#take = resolve;
    body.on('data', this.#receive);
    body.resume();
    return await promise;
  }

  /** Takes no more: what is left is for another reader. */
  [Symbol.dispose](): void {
    this.#body.off('data', this.#receive).off('end', this.#end).off('close', this.#end);
  }
}

/** The error of a body that ends early. */
export function cutOff(): ProtocolError {
  return new ProtocolError('bad_request', 'the body is cut off');
}
