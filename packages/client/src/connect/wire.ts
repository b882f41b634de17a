import type { MethodName } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';

export interface ExchangeOptions {
  /** Session token, over HTTP; a WebSocket carries its session itself. */
  readonly token?: string | undefined;
  readonly signal: AbortSignal;
}

/** One way to a relay's methods: an HTTPS base address, or an open WebSocket. */
export interface Wire {
  readonly kind: 'http' | 'websocket';
  /** The address of the descriptor it talks to. */
  readonly address: string;
  /**
   * One request, one answer. The result is not yet checked against the method.
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  exchange(method: MethodName, params: object, options: ExchangeOptions): Promise<JsonValue>;
  close(): void;
}
