import '../dispose-symbols.ts';
/** Locks by name among the users of one object; they are granted in the order of asking. */
export class LocalLocks {
  readonly #last = new Map<string, Promise<void>>();

  /** @throws the signal's reason */
  async lock(name: string, { signal }: { readonly signal: AbortSignal }): Promise<Disposable> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(name, promise);
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', abort);
    try {
      signal.throwIfAborted();
      await Promise.race([before, aborted.promise]);
    } catch (error) {
      void before.then(resolve);
      throw error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
    return { [Symbol.dispose]: resolve };
  }
}
