/**
 * The relay's store of encrypted attachments, outside of the protocol (decision 0032): the relay sees
 * bytes, lengths and accounts, and no key.
 */
import type { FileHandle } from 'node:fs/promises';
import { encodeBase64url, ProtocolError } from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { blobNotStored } from '../observability/events.ts';
import { unavailable } from '../storage/unavailable.ts';
import type { BlobFolder } from './folder.ts';
import {
  deleteEnded,
  insertBlob,
  markEnding,
  markStored,
  nextEndOf,
  readStored,
  readUsage,
} from './store.ts';

/** How much is stored, and for how long: the operator's settings. */
export interface BlobTerms {
  /** Bytes of a blob. */
  readonly maxBytes: number;
  /** Counted bytes of an account's blobs. */
  readonly accountBytes: number;
  /** Counted bytes of all blobs. */
  readonly totalBytes: number;
  /** Seconds. */
  readonly retention: number;
}

/** An upload of one blob. */
export interface Upload {
  readonly account: string;
  readonly bytes: number;
  /** Calls its parameter with each piece of the body, in order. */
  readonly receive: (write: (piece: Uint8Array) => Promise<void>) => Promise<void>;
  /** Whether the uploader's session is still good, when all bytes are there. */
  readonly mayStore: () => Promise<boolean>;
}

/** A file system takes whole blocks, and a row takes some of one. */
const block = 4_096;

/** Seconds that an upload's row stays after the upload must have ended. */
const margin = 60;

/** Seconds to wait if it is not known when there is room again. */
const pause = 3_600;

/** The form of a name; no other text reaches the file system. */
const namePattern = /^[A-Za-z0-9_-]{43}$/;

export class Blobs {
  readonly terms: BlobTerms;
  readonly folder: BlobFolder;
  readonly #context: RelayContext;
  /** Bytes of uploads under way, which their disk has not taken yet. */
  #arriving = 0;

  constructor(context: RelayContext, folder: BlobFolder, terms: BlobTerms) {
    this.#context = context;
    this.folder = folder;
    this.terms = terms;
  }

  /**
   * Stores a blob: durable, and counted for its account, when it resolves.
   *
   * @throws ProtocolError `request_too_large` above `maxBytes`; `rate_limited` if there is no room: with
   *   the seconds until the account's next blob ends, or an hour if others have the room; `unauthorized` if the session ended
   *   meanwhile; `temporarily_unavailable` if the disk has no room or does not store it; what `receive` throws
   */
  async put(upload: Upload): Promise<{ readonly name: string; readonly expiresAt: number }> {
    this.checkLength(upload.bytes);
    this.#checkDisks(upload.bytes);
    this.#arriving += upload.bytes;
    try {
      return await this.#put(upload);
    } finally {
      this.#arriving -= upload.bytes;
    }
  }

  async #put(upload: Upload): Promise<{ readonly name: string; readonly expiresAt: number }> {
    const name = encodeBase64url(this.#context.random(32));
    await this.#disk(() => this.folder.check());
    await this.#reserve(name, upload);
    try {
      await this.#disk(() => this.folder.write(name, upload.receive));
      if (!(await upload.mayStore())) throw new ProtocolError('unauthorized', 'no valid session');
      const expiresAt = this.#context.clock.now() + this.terms.retention;
      const isStored = await this.#context.storage.write(`account:${upload.account}`, (tx) =>
        markStored(tx, name, expiresAt),
      );
      if (!isStored) throw unavailable('the upload took too long: try again');
      return { name, expiresAt };
    } catch (error) {
      // A job does it if this fails: the row says that the upload is not complete.
      await this.#end(upload.account, name).catch((cause) => blobNotStored(this.#context, cause));
      throw error;
    }
  }

  /** Uploads that begin at once share the room that there is. */
  #checkDisks(bytes: number): void {
    const { disk } = this.#context;
    if (!disk.isLow('data') && !disk.isLow('blobs', this.#arriving + bytes)) return;
    throw unavailable(
      'the disk of the relay is nearly full: it takes no attachments until there is room',
    );
  }

  /** @throws ProtocolError `request_too_large` */
  checkLength(bytes: number): void {
    if (bytes <= this.terms.maxBytes) return;
    throw new ProtocolError(
      'request_too_large',
      `more than ${this.terms.maxBytes} bytes: send a smaller file`,
    );
  }

  /**
   * Opens a blob. The caller closes the file.
   * @throws ProtocolError `not_found`, for whatever reason it is not there; `temporarily_unavailable` if
   *   the folder of all blobs is not
   */
  async open(name: string): Promise<{ readonly file: FileHandle; readonly bytes: number }> {
    const blob = await this.#find(name);
    const file = await this.#disk(async () => {
      const found = await this.folder.read(name);
      if (found !== undefined) return found;
      await this.folder.check();
      // The folder may have come back after the first time.
      return await this.folder.read(name);
    });
    // Another process deleted it after the row was read.
    if (file === undefined) throw notFound();
    // Of another length, for example after part of a backup was restored: an answer of the announced
    // length cannot be made of it.
    if ((await file.stat()).size !== blob.bytes) {
      await file.close();
      throw notFound();
    }
    return { file, bytes: blob.bytes };
  }

  /**
   * Deletes a blob of the account.
   * @throws ProtocolError `not_found` if there is none of this name, or it is another account's;
   *   `temporarily_unavailable` if its file cannot be deleted: a job does it later
   */
  async delete(account: string, name: string): Promise<void> {
    const blob = await this.#find(name);
    if (blob.account !== account) throw notFound();
    await this.#disk(() => this.#end(account, name));
  }

  async #find(name: string) {
    if (!namePattern.test(name)) throw notFound();
    const now = this.#context.clock.now();
    const blob = await this.#context.storage.read((tx) => readStored(tx, name, now));
    if (blob === undefined) throw notFound();
    return blob;
  }

  /** Counts the bytes before they arrive, so that uploads at once share one quota. */
  async #reserve(name: string, { account, bytes }: Upload): Promise<void> {
    const { clock, dailyBytes, limits, storage } = this.#context;
    const counted = Math.max(1, Math.ceil(bytes / block)) * block;
    const now = clock.now();
    const keepUntil = now + Math.ceil(limits.slowMessageTimeout / 1_000) + margin;
    await storage.write(`account:${account}`, async (tx) => {
      const used = await readUsage(tx, account);
      const room = await dailyBytes.readRoom(tx, account);
      if (used + counted > this.terms.accountBytes || counted > room) {
        const until = (await nextEndOf(tx, account)) ?? now + pause;
        throw noRoom('the account stores too many bytes of attachments', until - now);
      }
      const total = await insertBlob(tx, { name, account, bytes, counted, keepUntil });
      if (total > this.terms.totalBytes) {
        throw noRoom('the relay stores as many bytes of attachments as it may', pause);
      }
    });
  }

  /** Runs work on the files. */
  async #disk<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      blobNotStored(this.#context, error);
      throw unavailable('the relay cannot reach its attachments now');
    }
  }

  /** Ends a blob: the row first, so that its upload cannot end well, then files, then what is counted. */
  async #end(account: string, name: string): Promise<void> {
    const { clock, storage } = this.#context;
    const aggregate = `account:${account}`;
    await storage.write(aggregate, (tx) => markEnding(tx, name, clock.now()));
    await this.folder.remove(name);
    await storage.write(aggregate, (tx) => deleteEnded(tx, account, [name]));
  }
}

function noRoom(text: string, seconds: number): ProtocolError {
  const data = { retry_after: Math.max(1, seconds) };
  return new ProtocolError('rate_limited', `${text}: try again later`, { data });
}

function notFound(): ProtocolError {
  return new ProtocolError('not_found', 'there is no such attachment');
}
