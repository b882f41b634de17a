import type { Conversation } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import type { ContentReference } from '@posthouse/protocol';
import { type Signal, signal } from '@preact/signals';
import { refresher } from '../engine/refresh.ts';
import type { ConversationSource, Line } from './conversation-source.ts';
import type { Host } from './host.ts';
import { isLocked } from './stores.ts';

export type { Line } from './conversation-source.ts';

/** Messages of a page. */
const pageSize = 50;
/** Up to so many messages are shown so that what is read stays while others arrive. */
const mostHeld = 1_000;
/** Seconds by which the relay's clock, which messages are dated by, may be slow. */
const clockSlack = 60;

type Key = Pick<Conversation, 'kind' | 'id'>;

/** A file that goes with the next message. */
export interface AttachedFile {
  readonly id: number;
  readonly file: File;
  /** URL of a picture that is safe to show. */
  readonly preview?: string;
  /** What is sent; absent until the file is stored. */
  readonly reference?: ContentReference;
  /** Why it was not stored; empty if nothing is wrong. */
  readonly fault: string;
  readonly stop: AbortController;
}

/** By conversation: what is attached stays while another one is shown. */
const attached = new Map<string, Signal<readonly AttachedFile[]>>();

/** The conversation that is shown: its messages from some point on, and what is being written. */
export class OpenConversation {
  readonly kind: Key['kind'];
  readonly id: string;
  readonly source: ConversationSource;
  /** Oldest first. */
  readonly messages = signal<readonly Line[]>([]);
  /** Whether there may be older messages than those shown. */
  readonly hasOlder = signal(false);
  readonly isRead = signal(false);
  readonly draft = signal('');
  readonly replyTo = signal<Line | undefined>(undefined);
  readonly files: Signal<readonly AttachedFile[]>;
  /** Whether something else than the newest messages is read: it stays, whatever arrives. */
  isReadingBack = false;
  readonly #app: Host;
  #isClosed = false;
  /** The `order` of the oldest message that stays while older ones are read; not known before the next read. */
  #oldestHeld = Number.MAX_SAFE_INTEGER;
  #shown = pageSize;
  readonly refresh: () => Promise<void>;

  constructor(app: Host, { kind, id }: Key, source: ConversationSource) {
    this.#app = app;
    this.kind = kind;
    this.id = id;
    this.source = source;
    this.draft.value = localStorage.getItem(this.#draftKey) ?? '';
    this.files = attached.get(this.#draftKey) ?? signal([]);
    attached.set(this.#draftKey, this.files);
    this.refresh = refresher(
      () => this.#read(),
      (error) => {
        // The history of the browser may name a group that this account does not know.
        const isUnknown =
          isClientError(error, 'not_a_member') || isClientError(error, 'unknown_channel');
        if (isUnknown) app.notice.value = error;
        return !isUnknown && !this.#isClosed && app.failed(error);
      },
    );
  }

  get #draftKey(): string {
    return `posthouse.draft.${this.kind}.${this.id}`;
  }

  /** Before the time of sending: texts that are not known to be stored. */
  get #sendingKey(): string {
    return `posthouse.sending.${this.kind}.${this.id}.`;
  }

  /** Shows a page more of what is older. */
  async showOlder(): Promise<void> {
    this.#shown += pageSize;
    this.#oldestHeld = Number.MAX_SAFE_INTEGER;
    await this.refresh();
    if (this.source.fetchOlder === undefined || this.messages.value.length >= this.#shown) return;
    await this.source.fetchOlder();
    await this.refresh();
  }

  /** Keeps what is being written; it survives a reload, unless the device is locked: then nothing is kept in plain. */
  write(text: string): void {
    this.draft.value = text;
    if (text === '' || isLocked()) localStorage.removeItem(this.#draftKey);
    else localStorage.setItem(this.#draftKey, text);
  }

  /** Stores the draft as a message, which leaves when it can. */
  async post(): Promise<void> {
    const text = this.draft.value.trim();
    const files = this.files.value;
    const attachments = files.flatMap(({ reference }) => reference ?? []);
    if (attachments.length < files.length || (text === '' && files.length === 0)) return;
    const replyTo = this.replyTo.value;
    // At once: a second Enter sends nothing, and what is typed meanwhile stays.
    this.write('');
    this.files.value = [];
    this.replyTo.value = undefined;
    const key = this.#sendingKey + (performance.timeOrigin + performance.now());
    if (text !== '' && !isLocked()) localStorage.setItem(key, text);
    try {
      await this.source.post({
        ...(text !== '' && { text }),
        ...(attachments.length > 0 && { attachments }),
        ...(replyTo && { replyTo }),
      });
    } catch (error) {
      if (this.draft.value === '') this.write(text);
      if (this.files.value.length === 0) this.files.value = files;
      throw error;
    } finally {
      localStorage.removeItem(key);
    }
    for (const { preview } of files) if (preview !== undefined) URL.revokeObjectURL(preview);
    await this.#changed();
  }

  /** Posts the content of a message that failed once more, in place of that one. */
  async postAgain(failed: Line): Promise<void> {
    const { body, attachments, replyTo } = failed;
    await this.source.post({
      ...(body && { text: body.text, contentType: body.content_type }),
      ...(attachments && { attachments }),
      ...(replyTo && { replyTo }),
    });
    await this.source.cancel(failed);
    await this.#changed();
  }

  /** Takes back a message that has not left, or one that failed. */
  async cancel(message: Line): Promise<void> {
    await this.source.cancel(message);
    await this.#changed();
  }

  /** Marks everything that is shown as read. */
  async markRead(): Promise<void> {
    const through = this.messages.value.at(-1)?.order;
    if (through === undefined) return;
    const { kind, id } = this;
    await this.#app.account.conversations.markRead({ kind, id }, { through });
    await this.#app.changed();
  }

  close(): void {
    this.#isClosed = true;
    this.messages.value = [];
  }

  /** Puts what a tab that ended could not store any more into the draft. */
  #takeUnsent(): void {
    const prefix = this.#sendingKey;
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
    for (const key of keys.sort()) {
      const unsent = localStorage.getItem(key) ?? '';
      localStorage.removeItem(key);
      const since = Number(key.slice(prefix.length)) / 1_000 - clockSlack;
      const isStored = this.messages.value.some(
        ({ from, body, createdAt }) =>
          from === this.#app.account.id && body?.text === unsent && createdAt > since,
      );
      if (!isStored) this.write([this.draft.value, unsent].filter(Boolean).join('\n'));
    }
  }

  async #changed(): Promise<void> {
    await Promise.all([this.refresh(), this.#app.changed()]);
  }

  async #read(): Promise<void> {
    let page = await this.source.read(this.#shown);
    while (this.isReadingBack && page.hasOlder && this.#shown < mostHeld) {
      if ((page.lines[0]?.order ?? 0) <= this.#oldestHeld) break;
      this.#shown += pageSize;
      page = await this.source.read(this.#shown);
    }
    this.hasOlder.value = page.hasOlder;
    this.messages.value = page.lines;
    if (!this.isRead.value) this.#takeUnsent();
    this.isRead.value = true;
    if (this.isReadingBack && this.#oldestHeld < Number.MAX_SAFE_INTEGER) return;
    this.#oldestHeld = page.lines[0]?.order ?? 0;
  }
}
