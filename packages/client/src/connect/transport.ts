/**
 * Transports bytes to a relay. Only this part of the client differs between browsers and Node;
 * only Node can trust a private certificate authority.
 */
import type { HttpVerb } from '@posthouse/protocol';
import { RelayMisbehaviour } from '../errors.ts';

/** One HTTPS request of a {@link Transport}. */
export interface HttpRequest {
  readonly verb: HttpVerb;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  /** Called with how many bytes of `body` were sent, if the transport knows; not every transport calls it. */
  readonly progress?: (sent: number) => void;
  /** A longer response body is refused while it is received. */
  readonly maxBytes: number;
  /**
   * What happens to a redirect: `refuse` by default. With `report`, its status and `location` are the
   * answer; a browser, which shows neither to a page, follows it, if it can only lead to HTTPS.
   */
  readonly redirects?: 'refuse' | 'report';
}

/** The answer to an {@link HttpRequest}. */
export interface HttpResponse {
  readonly status: number;
  readonly contentType: string | undefined;
  /** Content coding of `body`, if the transport did not decode it. */
  readonly coding?: string | undefined;
  /** Target of a redirect, unless the platform refuses redirects by itself. */
  readonly location?: string | undefined;
  readonly body: Uint8Array;
}

/**
 * The error of a body over `maxBytes`, counted after decoding.
 * @returns RelayMisbehaviour `oversized_response`
 */
export function oversized({ url, maxBytes }: HttpRequest): RelayMisbehaviour {
  return new RelayMisbehaviour(
    'oversized_response',
    `response over ${maxBytes} bytes: report it to the operator of ${new URL(url).origin}`,
  );
}

/** Callbacks of a socket. `closed` is called once, as the last one. */
export interface SocketEvents {
  /** A text message, or `undefined` for a binary one. */
  message(text: string | undefined): void;
  /** The message was over `maxBytes`; the socket ends. */
  oversized(): void;
  closed(reason: string): void;
}

/** An open WebSocket. */
export interface Socket {
  send(text: string): void;
  close(code: number): void;
}

/** Transports requests to relays. Implement it to use another HTTP stack or a proxy. */
export interface Transport {
  /**
   * Makes one exchange over HTTPS. Redirects are not followed: a token must not reach another origin
   * (02 §2.6), and a descriptor's addresses are used as they are.
   *
   * @throws RelayUnreachable
   * @throws RelayMisbehaviour `oversized_response`
   */
  request(request: HttpRequest): Promise<HttpResponse>;
  /**
   * Opens a WebSocket. Absent if the platform has none.
   * @throws RelayUnreachable
   */
  connect?(url: string, events: SocketEvents, signal: AbortSignal): Promise<Socket>;
}
