import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ClientAddresses } from './client-addresses.ts';
import { writeError } from './early-errors.ts';
import { GatheredChunks } from './gathered-chunks.ts';
import { ParsedPieces } from './parsed-pieces.ts';

export interface PipelinedRequestsParts {
  readonly context: Pick<RelayContext, 'limits'>;
  readonly clients: ClientAddresses;
  readonly bytes: ByteAccounts;
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
}

interface Turn {
  /** The response under way. */
  current: ServerResponse;
  readonly waiting: Waiting[];
  /** What the requests that wait or were refused hold. */
  readonly holds: Set<Disposable>;
}

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly held: Disposable;
}

/**
 * Gives the pipelined requests of an HTTP connection their turns: the next one is handled when the
 * answer before it was flushed. Node would handle all of them at once.
 */
export class PipelinedRequests {
  readonly #parts: PipelinedRequestsParts;
  /** By connection. */
  readonly #turns = new WeakMap<Duplex, Turn>();

  constructor(parts: PipelinedRequestsParts) {
    this.#parts = parts;
  }

  /** Returns the response under way on a connection. */
  current(socket: Duplex): ServerResponse | undefined {
    return this.#turns.get(socket)?.current;
  }

  /** Handles a request when it is its turn, or refuses it if too many wait. */
  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const turn = this.#turns.get(socket);
    if (turn === undefined) {
      this.#turns.set(socket, { current: response, waiting: [], holds: new Set() });
      this.#start(request, response);
      return;
    }
    const { waiting } = turn;
    const { context, bytes, clients } = this.#parts;
    const { pipelinedRequests, waitingRequestCharge } = context.limits;
    const owner = { kind: 'address', id: clients.of(request) } as const;
    const end = () => void socket.destroy();
    const held = new DisposableStack();
    const hold = held.use(bytes.received.open(owner, end));
    turn.holds.add(held);
    if (!hold.add(waitingRequestCharge)) {
      end();
    } else if (underWay(turn) < pipelinedRequests) {
      // What arrives of its body meanwhile.
      const waits = (count: number) => {
        if (count < 0) hold.release(-count);
        else if (!hold.add(count)) end();
      };
      held.use(GatheredChunks.of(request)?.readBy({ waiting: waits }));
      waiting.push({ request, response, held });
    } else {
      // Node sends it after the answers before, then closes: what follows has no answer.
      ParsedPieces.of(socket)?.stop();
      writeError(response, new ProtocolError('rate_limited', 'too many requests at once'));
    }
  }

  #start(request: IncomingMessage, response: ServerResponse): void {
    const { bytes, clients, handle } = this.#parts;
    const { socket } = request;
    response.once('close', () => {
      const turn = this.#turns.get(socket);
      const [next] = turn?.waiting ?? [];
      if (turn === undefined || next === undefined || socket.destroyed) {
        this.#end(socket);
        return;
      }
      turn.current = next.response;
      const owner = payerKey({ kind: 'address', id: clients.of(next.request) });
      bytes.httpTurns.run(owner, () => {
        this.#startNext(socket, turn);
        return false;
      });
    });
    handle(request, response);
  }

  #startNext(socket: Duplex, turn: Turn): void {
    const next = turn.waiting.shift();
    // It may have ended while it waited for its turn.
    if (next === undefined || socket.destroyed || next.response.writableEnded) {
      this.#end(socket);
      return;
    }
    next.held[Symbol.dispose]();
    turn.holds.delete(next.held);
    this.#start(next.request, next.response);
  }

  #end(socket: Duplex): void {
    const turn = this.#turns.get(socket);
    this.#turns.delete(socket);
    for (const hold of turn?.holds ?? []) hold[Symbol.dispose]();
  }
}

/** Returns how many requests are not answered; the one whose answer is next may still wait for its turn. */
function underWay({ current, waiting }: Turn): number {
  return waiting[0]?.response === current ? waiting.length : waiting.length + 1;
}
