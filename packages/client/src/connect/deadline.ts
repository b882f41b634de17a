import { RelayUnreachable } from '../errors.ts';

/**
 * Runs work that must end within so many milliseconds; a missed deadline is an answer that did not
 * come. The caller's own signal stays what it is.
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

/** Waits for a promise that others wait for too, no longer than the signal allows. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
