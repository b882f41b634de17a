import { relayOrigin } from '@posthouse/protocol';

/**
 * The public addresses of a relay. The origin of a request follows from this configuration and the
 * request's path, never from a header (02 §8).
 */
export class PublicAddresses {
  /** Base path of an HTTPS address, `''` for the root. */
  readonly #https: ReadonlyMap<string, string>;
  /** Path of a WebSocket address. */
  readonly #wss: ReadonlyMap<string, string>;
  #port = 0;
  #peerPort: number | undefined;

  /**
   * Port 0 in an address is replaced by the port that {@link setPort} sets.
   *
   * @throws TypeError if two addresses of one kind have the same path, or a path needs escaping
   */
  constructor(https: readonly string[], wss: readonly string[]) {
    this.#https = byPath(https, '');
    this.#wss = byPath(wss, '/');
  }

  /** Sets the port that the relay listens on. */
  setPort(port: number): void {
    this.#port = port;
  }

  /** Sets the port that the relay listens on for other relays. */
  setPeerPort(port: number): void {
    this.#peerPort = port;
  }

  /** The port for other relays; without a listener, one next to the relay's own. */
  get peerPort(): number {
    return this.#peerPort ?? (this.#port < 65_535 ? this.#port + 1 : this.#port - 1);
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

  /** Returns the origin of a base path. */
  httpOrigin(basePath: string): string {
    return relayOrigin(this.#withPort(this.#https.get(basePath) ?? ''));
  }

  /** Returns the origin of a WebSocket path; `undefined` if no address has it. */
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
      throw new TypeError(
        `${address}: expected a path of plain segments without a slash at its end`,
      );
    }
    if (paths.has(path || root))
      throw new TypeError(`${address}: another address has the same path; give each its own`);
    paths.set(path || root, address);
  }
  return paths;
}
