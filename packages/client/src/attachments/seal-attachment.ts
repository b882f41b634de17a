/** Encrypts attachments and has them stored where recipients can download them (04 §9, §10). */
import {
  type ContentReference,
  checkContentReference,
  type Network,
  ProtocolError,
  parseMediaType,
  sealContent,
} from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import { untilAborted, withDeadline } from '../connect/deadline.ts';
import { webRandom } from '../environment.ts';
import { ClientError, isClientError, RelayUnreachable } from '../errors.ts';
import { defaultMaxBytes, transferTime } from './download.ts';

/**
 * Stores bytes at a host of the app's choice. The bytes are encrypted; the host learns their length
 * and, later, the address and time of each download.
 *
 * @example
 * import type { Uploader } from '@posthouse/client';
 * const uploader: Uploader = {
 *   async put(bytes, { signal }) {
 *     const uri = `https://files.example.com/${crypto.randomUUID()}`;
 *     const { ok } = await fetch(uri, { method: 'PUT', body: bytes, signal });
 *     if (!ok) throw new Error('not stored');
 *     return uri;
 *   },
 * };
 */
export interface Uploader {
  /**
   * Stores bytes and returns the HTTPS address at which anybody can download them, unchanged.
   *
   * @param options.progress to call while bytes are sent, if it is known how many were
   */
  put(
    bytes: Uint8Array<ArrayBuffer>,
    options: { readonly signal: AbortSignal; readonly progress?: ShowProgress | undefined },
  ): Promise<string>;
}

/** How much of an upload was sent. */
export interface UploadProgress {
  /** Encrypted bytes that were sent; more each time. */
  readonly sent: number;
  /** Encrypted bytes in all. */
  readonly of: number;
}

type ShowProgress = (progress: UploadProgress) => void;

/** Options of {@link sealAttachment}. */
export interface SealOptions {
  /** Media type of the plaintext; recipients preview by it. */
  readonly contentType: string;
  readonly uploader: Uploader;
  readonly signal: AbortSignal;
  /** Larger plaintext is refused before it is encrypted; 64 MiB by default. */
  readonly maxBytes?: number;
  /** Milliseconds for the upload; by default a minute, and one more for every 2 MiB. */
  readonly timeout?: number;
  /** Called while the bytes are sent, if uploader and platform know how much was. */
  readonly progress?: ShowProgress;
  /** A cryptographically secure source; Web Crypto by default. */
  readonly random?: Random;
}

/**
 * Encrypts content with a key of its own, uploads it, and returns the reference to send. All who can
 * read the message that carries the reference can read the content (04 §9.1).
 *
 * @throws ClientError `invalid_input` for a malformed media type, content over the limit, or an
 *   uploader that returns no HTTPS address; `relay_unreachable` if the upload failed; what else the
 *   uploader throws as a ClientError
 * @example
 * import { sealAttachment, type Uploader } from '@posthouse/client';
 * declare const uploader: Uploader;
 * const signal = AbortSignal.timeout(60_000);
 * const picture = new Uint8Array([1, 2, 3]);
 * const reference = await sealAttachment(network, picture, {
 *   contentType: 'image/png',
 *   ...{ uploader, signal },
 * });
 * await account.messages.send(account.id, { text: 'a picture', attachments: [reference] });
 */
export async function sealAttachment(
  network: Network,
  plaintext: Uint8Array,
  options: SealOptions,
): Promise<ContentReference> {
  const { contentType, signal, maxBytes = defaultMaxBytes, random = webRandom } = options;
  if (parseMediaType(contentType) === undefined) {
    throw new ClientError('invalid_input', `${contentType}: use a media type such as image/png`);
  }
  if (plaintext.length > maxBytes) {
    throw new ClientError(
      'invalid_input',
      `content over ${maxBytes} bytes: send a smaller file, or raise \`maxBytes\``,
    );
  }
  signal.throwIfAborted();
  const { body, reference } = sealContent(network, { plaintext, contentType, random });
  const uri = await upload(new Uint8Array(body), options);
  const sealed = { uri, ...reference };
  try {
    checkContentReference(sealed);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError(
      'invalid_input',
      'the uploader returned no HTTPS address: correct the uploader',
      { cause },
    );
  }
  return sealed;
}

async function upload(
  bytes: Uint8Array<ArrayBuffer>,
  { uploader, signal, timeout = transferTime(bytes.length), progress }: SealOptions,
): Promise<string> {
  let most = 0;
  const report = (now: UploadProgress) => {
    // An upload that is made again begins at its start.
    if (now.sent > most) progress?.(now);
    most = Math.max(most, now.sent);
  };
  try {
    return await withDeadline(signal, timeout, (bounded) =>
      untilAborted(uploader.put(bytes, { signal: bounded, progress: progress && report }), bounded),
    );
  } catch (cause) {
    signal.throwIfAborted();
    if (isClientError(cause)) throw cause;
    throw new RelayUnreachable('the upload failed: try again', { outcomeUnknown: true, cause });
  }
}
