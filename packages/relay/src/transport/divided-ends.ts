import type { Duplex } from 'node:stream';
import type { StepTurns } from '../step-turns.ts';

export interface DividedEndsParts {
  readonly socket: Duplex;
  readonly turns: StepTurns;
  /** Whose turns are taken. */
  readonly owner: string;
}

/** What the system says of a connection that its peer ended. */
interface ReadError extends Error {
  readonly syscall?: unknown;
}

/**
 * Has what follows when the peer of a connection ends it done in turns (0019): peers may end thousands at one moment, and
 * Node would close all of them in the turn in which it reads their ends, some 0.1 ms each. Nothing is received meanwhile.
 */
export function divideEnds({ socket, turns, owner }: DividedEndsParts): void {
  const push = socket.push.bind(socket);
  const destroy = socket._destroy.bind(socket);
  const inTurn = (work: () => void) =>
    turns.run(owner, () => {
      work();
      return false;
    });
  // Node pushes `null` when the peer has sent all, and destroys the stream if it cannot be read.
  socket.push = (chunk: unknown) => {
    if (chunk !== null) return push(chunk);
    inTurn(() => push(null));
    return false;
  };
  socket._destroy = (error: ReadError | null, callback) => {
    if (error?.syscall === 'read') inTurn(() => destroy(error, callback));
    else destroy(error, callback);
  };
}
