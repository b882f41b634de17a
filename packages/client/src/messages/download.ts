/** Attachments and avatars: what lies outside the message (01 §11.1, 04 §9, §10). */
import {
  type ContentReference,
  checkContentReference,
  type Network,
  openContent,
  ProtocolError,
} from '@posthouse/protocol';
import type { Transport } from '../connect/transport.ts';
import { ClientError, isClientError, RelayUnreachable } from '../errors.ts';

export interface DownloadOptions {
  /**
   * Not the one that trusts a relay's private authority: content lies on hosts of its own. It shows
   * the host this machine's address.
   */
  readonly transport: Transport;
  readonly signal: AbortSignal;
  /** Larger content is refused before it is asked for; 64 MiB by default. */
  readonly maxBytes?: number;
}

const defaultMaxBytes = 67_108_864;
const maxRedirects = 5;
/** Authentication tag behind encrypted content. */
const tagBytes = 16;

/**
 * Downloads, decrypts and checks content. Only HTTPS is asked, redirects included, and nothing is
 * given back that has not the length and digest the reference promises.
 *
 * @throws ClientError `invalid_input` for a malformed reference or content over the limit;
 *   `verification_failed` for content that is not what was promised; `relay_unreachable`
 * @example
 * const image = await downloadContent(network, attachment, { transport: webTransport, signal });
 */
export async function downloadContent(
  network: Network,
  reference: ContentReference,
  options: DownloadOptions,
): Promise<Uint8Array> {
  checkedReference(reference, options.maxBytes ?? defaultMaxBytes);
  const body = await fetchHttps(reference, options).catch((cause: unknown) => {
    if (!isClientError(cause, 'relay_misbehaviour')) throw cause;
    throw new ClientError('verification_failed', 'the content is longer than it should be', {
      cause,
    });
  });
  const plaintext = openContent(network, reference, body);
  if (plaintext === undefined) {
    throw new ClientError('verification_failed', 'the content is not what was referred to');
  }
  return plaintext;
}

function checkedReference(reference: ContentReference, maxBytes: number): void {
  try {
    checkContentReference(reference);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', `reference: ${cause.message}`, { cause });
  }
  if (reference.size > maxBytes) {
    throw new ClientError('invalid_input', `content over ${maxBytes} bytes`);
  }
}

async function fetchHttps(
  { uri, size }: ContentReference,
  { transport, signal }: DownloadOptions,
): Promise<Uint8Array> {
  let url = uri;
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    const { status, location, body } = await transport.request({
      verb: 'GET',
      url,
      headers: {},
      signal,
      maxBytes: size + tagBytes,
    });
    if (status === 200) return body;
    if (status < 300 || status > 399 || location === undefined) {
      throw new RelayUnreachable(`status ${status}`, { outcomeUnknown: false });
    }
    url = new URL(location, url).href;
    if (!url.startsWith('https:')) {
      throw new ClientError('verification_failed', 'redirected to an address that is not HTTPS');
    }
  }
  throw new RelayUnreachable('too many redirects', { outcomeUnknown: false });
}
