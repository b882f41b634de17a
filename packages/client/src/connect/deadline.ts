import { RelayUnreachable } from '../errors.ts';

/**
 * Runs work with a deadline in milliseconds.
 * @throws RelayUnreachable after the deadline; the caller's own signal aborts with its own reason
 */
export async function withDeadline<T>(
  signal: AbortSignal,
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(milliseconds);
  try {
    return await work(AbortSignal.any([signal, deadline]));
  } catch (cause) {
    if (signal.aborted || !deadline.aborted) throw cause;
    throw new RelayUnreachable(`no answer within ${milliseconds} ms`, {
      outcomeUnknown: true,
      cause,
    });
  }
}

/** Waits for a shared promise until the signal aborts; the promise itself goes on. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    // Its own failure is of no interest to this caller, and must not be unhandled.
    promise.catch(() => undefined);
    return Promise.reject(signal.reason);
  }
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
