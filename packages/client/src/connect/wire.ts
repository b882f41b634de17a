import type { MethodName } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';

export interface ExchangeOptions {
  /** Session token, for HTTP; a WebSocket has its session by itself. */
  readonly token?: string | undefined;
  readonly signal: AbortSignal;
}

/** Exchanges requests with one relay: over an HTTPS base address, or an open WebSocket. */
export interface Wire {
  readonly kind: 'http' | 'websocket';
  /** The descriptor's address it is connected to. */
  readonly address: string;
  /**
   * Sends one request and returns its result, not yet checked against the method.
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  exchange(method: MethodName, params: object, options: ExchangeOptions): Promise<JsonValue>;
  close(): void;
}
