import type { ContentReference } from '@posthouse/protocol';
import { downloadContent } from '../attachments/download.ts';
import {
  sealAttachment,
  type Uploader,
  type UploadProgress,
} from '../attachments/seal-attachment.ts';
import type { Transport } from '../connect/transport.ts';
import { webTransport } from '../connect/web-transport.ts';
import type { AccountCore } from '../core.ts';
import { isClientError } from '../errors.ts';
import { type Abortable, signalOf } from './options.ts';

/** What to seal, and where to store it. */
export interface SealRequest extends Abortable {
  /** Media type of the plaintext. */
  readonly contentType: string;
  /** Where the encrypted bytes are stored; by default at the home relay, if it offers that. */
  readonly uploader?: Uploader;
  /** Larger plaintext is refused; 64 MiB by default. */
  readonly maxBytes?: number;
  /** Milliseconds for the upload; by default a minute, and one more for every 2 MiB. */
  readonly timeout?: number;
  /**
   * Called while the bytes are sent: in Node, and in a worker whose relay has the origin of the page. `fetch`, which
   * all else is sent with, does not know.
   */
  readonly progress?: (progress: UploadProgress) => void;
}

/** How to download. */
export interface DownloadRequest extends Abortable {
  /**
   * By default the platform's `fetch`, and the account's own transport for content at its home relay.
   */
  readonly transport?: Transport;
  /** Larger content is refused before it is requested; 64 MiB by default. */
  readonly maxBytes?: number;
  /** Milliseconds for all of it; by default a minute, and one more for every 2 MiB. */
  readonly timeout?: number;
}

/**
 * Seals attachments for messages, posts and group messages, and downloads those of others.
 *
 * @example
 * const file = new TextEncoder().encode('minutes of the meeting');
 * const reference = await account.attachments.seal(file, { contentType: 'text/plain' });
 * await account.messages.send(account.id, { text: 'minutes', attachments: [reference] });
 * const bytes = await account.attachments.download(reference);
 */
export class Attachments {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Encrypts content with a key of its own, uploads it and returns the reference to send (04 §9, §10).
   *
   * @throws ClientError `invalid_input`; `no_relay` if no uploader is given and the home relay stores
   *   no attachments
   * @throws RelayRefused `rate_limited` if the account stores too much; RelayUnreachable,
   *   RelayMisbehaviour
   * @example
   * const picture = new Uint8Array([1, 2, 3]);
   * const reference = await account.attachments.seal(picture, { contentType: 'image/png' });
   */
  async seal(content: Uint8Array, request: SealRequest): Promise<ContentReference> {
    const core = this.#core;
    const uploader = request.uploader ?? (await core.later()).relayUploader(core);
    const { network, random } = core;
    return await sealAttachment(network, content, {
      ...request,
      ...{ uploader, random, signal: signalOf(request) },
    });
  }

  /**
   * Downloads an attachment, decrypts it and checks length and digest. Its host learns this machine's
   * address: do it when a person asks, or by a policy the person chose (04 §10).
   *
   * @throws ClientError `invalid_input`, `verification_failed`, `relay_unreachable`; `content_gone` if
   *   the host has it no longer
   * @example
   * const [message] = await account.messages.list({ limit: 1 });
   * for (const reference of message?.attachments ?? []) await account.attachments.download(reference);
   */
  async download(reference: ContentReference, request: DownloadRequest = {}): Promise<Uint8Array> {
    const signal = signalOf(request);
    const transport = request.transport ?? (await this.#transportFor(reference, signal));
    return await downloadContent(this.#core.network, reference, {
      ...request,
      ...{ transport, signal },
    });
  }

  /** The own transport may trust a private authority, but only for relays. */
  async #transportFor({ uri }: ContentReference, signal: AbortSignal): Promise<Transport> {
    const home = await this.#core.home();
    const connection = await home.authenticated(signal).catch((error: unknown) => {
      signal.throwIfAborted();
      if (!isClientError(error)) throw error;
    });
    const addresses = connection?.relay.https ?? [];
    const isHome = addresses.some((base) => uri.startsWith(`${base.replace(/\/$/, '')}/`));
    return isHome ? this.#core.transport : webTransport;
  }
}
