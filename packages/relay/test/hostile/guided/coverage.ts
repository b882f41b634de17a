import { Session } from 'node:inspector/promises';

/** Which parts of the project's sources ran, as V8 counts its blocks. */
export class Coverage implements AsyncDisposable {
  readonly #session = new Session();
  /** A block and the order of magnitude of its count. */
  readonly #known = new Set<string>();

  static async start(): Promise<Coverage> {
    const coverage = new Coverage();
    coverage.#session.connect();
    await coverage.#session.post('Profiler.enable');
    await coverage.#session.post('Profiler.startPreciseCoverage', {
      callCount: true,
      detailed: true,
    });
    return coverage;
  }

  get size(): number {
    return this.#known.size;
  }

  /** Returns whether anything ran since the last call that never ran, or never so often. */
  async hasGrown(): Promise<boolean> {
    const before = this.#known.size;
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    for (const { url, functions } of result) {
      if (!/\/packages\/\w+\/src\//.test(url)) continue;
      for (const { ranges } of functions) {
        for (const { startOffset, endOffset, count } of ranges) {
          const times = Math.min(8, 32 - Math.clz32(count));
          this.#known.add(`${url}:${startOffset}:${endOffset}:${times}`);
        }
      }
    }
    return this.#known.size > before;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.post('Profiler.stopPreciseCoverage');
    this.#session.disconnect();
  }
}
