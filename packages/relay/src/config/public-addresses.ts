import { relayOrigin } from '@posthouse/protocol';

/**
 * The public addresses of a relay. The origin of a request comes from this configuration and the
 * path it was sent to, never from a header (02 §8).
 */
export class PublicAddresses {
  /** Base path of an HTTPS address, `''` for the root. */
  readonly #https: ReadonlyMap<string, string>;
  /** Path of a WebSocket address. */
  readonly #wss: ReadonlyMap<string, string>;
  #port = 0;

  /**
   * Port 0 in an address stands for the port that the relay listens on, once it is known.
   *
   * @throws TypeError for addresses of one kind that share a path and so could not be told apart,
   *   or whose path needs escaping
   */
  constructor(https: readonly string[], wss: readonly string[]) {
    this.#https = byPath(https, '');
    this.#wss = byPath(wss, '/');
  }

  /** Says which port port 0 became. */
  setPort(port: number): void {
    this.#port = port;
  }

  /** The port the relay listens on. */
  get port(): number {
    return this.#port;
  }

  get https(): string[] {
    return [...this.#https.values()].map((address) => this.#withPort(address));
  }

  get wss(): string[] {
    return [...this.#wss.values()].map((address) => this.#withPort(address));
  }

  get basePaths(): string[] {
    return [...this.#https.keys()];
  }

  /** The origin that callers of a base path see. */
  httpOrigin(basePath: string): string {
    return relayOrigin(this.#withPort(this.#https.get(basePath) ?? ''));
  }

  /** The origin behind a WebSocket path; `undefined` where no address has it. */
  webSocketOrigin(path: string): string | undefined {
    const address = this.#wss.get(path);
    return address === undefined ? undefined : relayOrigin(this.#withPort(address));
  }

  #withPort(address: string): string {
    return address.replace(/:0(?=\/|$)/, `:${this.#port}`);
  }
}

function byPath(addresses: readonly string[], root: string): Map<string, string> {
  const paths = new Map<string, string>();
  for (const address of addresses) {
    const path = address.replace(/^[a-z]+:\/\/[^/]*/, '');
    if (!/^(?:\/[A-Za-z0-9._~-]+)*$/.test(path)) {
      throw new TypeError(`${address}: a path of plain segments without a slash at its end`);
    }
    if (paths.has(path || root)) throw new TypeError(`${address}: another address has this path`);
    paths.set(path || root, address);
  }
  return paths;
}
