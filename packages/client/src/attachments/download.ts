/** Downloads attachments and avatars, which are stored outside of messages (01 §11.1, 04 §9, §10). */
import {
  type ContentReference,
  checkContentReference,
  type Network,
  openContent,
  ProtocolError,
} from '@posthouse/protocol';
import { withDeadline } from '../connect/deadline.ts';
import type { Transport } from '../connect/transport.ts';
import { ClientError, isClientError, RelayUnreachable } from '../errors.ts';

/** Options of {@link downloadContent}. */
export interface DownloadOptions {
  /**
   * Use another transport than the one that trusts a relay's private authority: content is on other
   * hosts. The host learns this machine's address.
   */
  readonly transport: Transport;
  readonly signal: AbortSignal;
  /** Larger content is refused before it is requested; 64 MiB by default. */
  readonly maxBytes?: number;
  /** Milliseconds for all of it; by default a minute, and one more for every 2 MiB. */
  readonly timeout?: number;
}

/** Bytes of content that is sealed or downloaded at most, unless a call says otherwise. */
export const defaultMaxBytes = 67_108_864;
const maxRedirects = 5;

/** Returns the milliseconds that a transfer may take, unless a call says otherwise. */
export const transferTime = (bytes: number) => 60_000 * (1 + Math.ceil(bytes / 2_097_152));
/** Bytes of the authentication tag at the end of encrypted content. */
const tagBytes = 16;

/**
 * Downloads, decrypts and checks content. Only HTTPS is used, also for redirects; pages follow none,
 * because browsers hide where they lead. Content is returned only if it has the length and digest of
 * the reference.
 *
 * @throws ClientError `invalid_input` for a malformed reference or content over the limit;
 *   `verification_failed` for content that does not match the reference, and for a redirect that is
 *   not to HTTPS or that this platform cannot check; `content_gone` if the host has it no longer;
 *   `relay_unreachable`, also after the `timeout`
 * @example
 * import { downloadContent, webTransport } from '@posthouse/client';
 * const signal = AbortSignal.timeout(60_000);
 * for (const { attachments = [] } of await account.messages.list()) {
 *   for (const attachment of attachments) {
 *     const bytes = await downloadContent(network, attachment, { transport: webTransport, signal });
 *   }
 * }
 */
export async function downloadContent(
  network: Network,
  reference: ContentReference,
  options: DownloadOptions,
): Promise<Uint8Array> {
  checkedReference(reference, options.maxBytes ?? defaultMaxBytes);
  const { signal, timeout = transferTime(reference.size) } = options;
  const body = await withDeadline(signal, timeout, (bounded) =>
    fetchHttps(reference, { ...options, signal: bounded }),
  ).catch((cause: unknown) => {
    if (!isClientError(cause, 'relay_misbehaviour')) throw cause;
    throw new ClientError(
      'verification_failed',
      'the content is longer than its reference says: ask the sender for another one',
      {
        cause,
      },
    );
  });
  const plaintext = openContent(network, reference, body);
  if (plaintext === undefined) {
    throw new ClientError(
      'verification_failed',
      'the content does not match its reference: ask the sender for another one',
    );
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
    throw new ClientError(
      'invalid_input',
      `content over ${maxBytes} bytes: raise \`maxBytes\` to download it`,
    );
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
      redirects: 'report',
      signal,
      maxBytes: size + tagBytes,
    });
    if (status === 200) return body;
    if (status < 300 || status > 399 || location === undefined) {
      if (status === 404 || status === 410) {
        throw new ClientError('content_gone', 'ask the sender to send the content again');
      }
      throw new RelayUnreachable(
        `the content host answered with status ${status}: try again later`,
        {
          outcomeUnknown: false,
        },
      );
    }
    // Resolved to an absolute address first, so that no other scheme is ever requested.
    const target = URL.canParse(location, url) ? new URL(location, url) : undefined;
    url = target?.href ?? '';
    if (target?.protocol !== 'https:') {
      throw new ClientError(
        'verification_failed',
        'redirected to an address that is not HTTPS: ask the sender for another reference',
      );
    }
  }
  throw new RelayUnreachable('too many redirects', { outcomeUnknown: false });
}
