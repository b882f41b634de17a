/**
 * Sends bodies to the page's own origin over `XMLHttpRequest`, so that their progress is known; all else as
 * `webTransport` does. An `XMLHttpRequest` cannot omit cookies: it sends and stores them, `webTransport` does not. If it
 * is answered 401 with `www-authenticate`, the browser may ask for a login (0032).
 */
import {
  type HttpRequest,
  type HttpResponse,
  oversized,
  type Transport,
} from '../connect/transport.ts';
import { webTransport } from '../connect/web-transport.ts';
import { RelayUnreachable } from '../errors.ts';
import { platform, type UploadRequest } from './platform.ts';

/**
 * A header that relays let no page of another origin send. `XMLHttpRequest` follows redirects: with it, the browser
 * refuses one to another origin, which must not get the token (02 §2.6).
 */
const sameOriginOnly = 'x-same-origin-only';

/** Transports as `webTransport` does, and tells the progress of what is sent to the page's own origin. */
export const uploadTransport: Transport = {
  ...webTransport,
  request(asked) {
    const { XMLHttpRequest: Upload, origin } = platform;
    const isTold = asked.progress !== undefined && new URL(asked.url).origin === origin;
    return Upload !== undefined && isTold
      ? upload(new Upload(), asked)
      : webTransport.request(asked);
  },
};

function upload(exchange: UploadRequest, asked: HttpRequest): Promise<HttpResponse> {
  const { url, signal, maxBytes, progress } = asked;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    exchange.open(asked.verb, url);
    for (const [name, value] of Object.entries({ ...asked.headers, [sameOriginOnly]: '1' })) {
      exchange.setRequestHeader(name, value);
    }
    exchange.responseType = 'arraybuffer';
    const abort = () => exchange.abort();
    signal.addEventListener('abort', abort, { once: true });
    exchange.upload.onprogress = ({ loaded }) => progress?.(loaded);
    exchange.onprogress = ({ loaded }) => {
      if (loaded <= maxBytes) return;
      reject(oversized(asked));
      abort();
    };
    exchange.onloadend = () => {
      signal.removeEventListener('abort', abort);
      const { status, response, responseURL } = exchange;
      if (signal.aborted) reject(signal.reason);
      else if (response === null || status === 0 || responseURL !== new URL(url).href) {
        const { origin } = new URL(url);
        reject(new RelayUnreachable(`no answer from ${origin}`, { outcomeUnknown: true }));
      } else {
        const contentType = exchange.getResponseHeader('content-type') ?? undefined;
        resolve({ status, contentType, body: new Uint8Array(response) });
      }
    };
    exchange.send(asked.body);
  });
}
