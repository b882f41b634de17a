/**
 * What carries bytes to a relay. The client is the same in browsers and in Node; only this
 * differs, and only Node can trust a certificate authority of its own.
 */
import type { HttpVerb } from '@posthouse/protocol';

export interface HttpRequest {
  readonly verb: HttpVerb;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** A longer response body is refused while it arrives. */
  readonly maxBytes: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly contentType: string | undefined;
  /** Where a redirect points, unless the platform refuses redirects by itself. */
  readonly location?: string | undefined;
  readonly body: Uint8Array;
}

/** What a socket tells its owner. `closed` comes once and last. */
export interface SocketEvents {
  /** A text message, or `undefined` for a binary one. */
  message(text: string | undefined): void;
  /** The message was over `maxBytes`; the socket ends. */
  oversized(): void;
  closed(reason: string): void;
}

export interface Socket {
  send(text: string): void;
  close(code: number): void;
}

export interface Transport {
  /**
   * One exchange over HTTPS. Redirects are not followed: a token must not reach another origin
   * (02 §2.6), and a descriptor's addresses are used as they are.
   *
   * @throws RelayUnreachable
   * @throws RelayMisbehaviour `oversized_response`
   */
  request(request: HttpRequest): Promise<HttpResponse>;
  /**
   * Opens a WebSocket. Absent where the platform has none.
   * @throws RelayUnreachable
   */
  connect?(url: string, events: SocketEvents, signal: AbortSignal): Promise<Socket>;
}
