import type { Conversation, Message } from '@posthouse/client';
import type { WorkerAccount } from '@posthouse/client/web';
import type { ContentReference } from '@posthouse/protocol';
import { type Signal, signal } from '@preact/signals';
import { refresher } from '../engine/refresh.ts';
import { isLocked } from './stores.ts';

/** Messages of a page. */
const pageSize = 50;
/** Up to so many messages are shown so that what is read stays while others arrive. */
const mostHeld = 1_000;

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

/** What a conversation needs of the app. */
export interface ConversationHost {
  readonly account: WorkerAccount;
  /** Reads the lists again. */
  changed(): Promise<void>;
  /** Shows an error; returns whether to try again. */
  failed(error: unknown): boolean;
}

/** The conversation that is shown: its messages from some point on, and what is being written. */
export class OpenConversation {
  readonly kind: Key['kind'];
  readonly id: string;
  /** Oldest first. */
  readonly messages = signal<readonly Message[]>([]);
  /** Whether there may be older messages than those shown. */
  readonly hasOlder = signal(false);
  readonly isRead = signal(false);
  readonly draft = signal('');
  readonly replyTo = signal<Message | undefined>(undefined);
  readonly files: Signal<readonly AttachedFile[]>;
  /** Whether something else than the newest messages is read: it stays, whatever arrives. */
  isReadingBack = false;
  readonly #app: ConversationHost;
  #isClosed = false;
  /** The `order` of the oldest message that stays while older ones are read; not known before the next read. */
  #oldestHeld = Number.MAX_SAFE_INTEGER;
  #shown = pageSize;
  readonly refresh: () => Promise<void>;

  constructor(app: ConversationHost, { kind, id }: Key) {
    this.#app = app;
    this.kind = kind;
    this.id = id;
    this.draft.value = localStorage.getItem(this.#draftKey) ?? '';
    this.files = attached.get(this.#draftKey) ?? signal([]);
    attached.set(this.#draftKey, this.files);
    this.refresh = refresher(
      () => this.#read(),
      (error) => !this.#isClosed && app.failed(error),
    );
  }

  get #draftKey(): string {
    return `posthouse.draft.${this.kind}.${this.id}`;
  }

  /** Shows a page more of what is older. */
  async showOlder(): Promise<void> {
    this.#shown += pageSize;
    this.#oldestHeld = Number.MAX_SAFE_INTEGER;
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
    const answered = this.replyTo.value;
    // At once: a second Enter sends nothing, and what is typed meanwhile stays.
    this.write('');
    this.files.value = [];
    this.replyTo.value = undefined;
    try {
      await this.#app.account.messages.post(this.id, {
        ...(text !== '' && { text }),
        ...{ attachments },
        ...(answered && { replyTo: { from: answered.from, messageId: answered.messageId } }),
      });
    } catch (error) {
      if (this.draft.value === '') this.write(text);
      if (this.files.value.length === 0) this.files.value = files;
      throw error;
    }
    await Promise.all([this.refresh(), this.#app.changed()]);
  }

  /** Posts the content of a message that failed once more. */
  async postAgain({ body, attachments = [], replyTo }: Message): Promise<void> {
    await this.#app.account.messages.post(this.id, {
      ...(body && { text: body.text, contentType: body.content_type }),
      ...{ attachments },
      ...(replyTo !== undefined && { replyTo }),
    });
    await Promise.all([this.refresh(), this.#app.changed()]);
  }

  /** Takes back a message that has not left. */
  async cancel(message: Message): Promise<void> {
    const { from, messageId } = message;
    await this.#app.account.messages.cancel({ from, messageId });
    await Promise.all([this.refresh(), this.#app.changed()]);
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

  async #read(): Promise<void> {
    let newest = await this.#list();
    while (this.isReadingBack && newest.length > this.#shown && this.#shown < mostHeld) {
      if ((newest[this.#shown - 1]?.order ?? 0) <= this.#oldestHeld) break;
      this.#shown += pageSize;
      newest = await this.#list();
    }
    this.hasOlder.value = newest.length > this.#shown;
    this.messages.value = newest.slice(0, this.#shown).reverse();
    this.isRead.value = true;
    if (this.isReadingBack && this.#oldestHeld < Number.MAX_SAFE_INTEGER) return;
    this.#oldestHeld = this.messages.value[0]?.order ?? 0;
  }

  async #list(): Promise<readonly Message[]> {
    return await this.#app.account.messages.list({
      ...{ with: this.id, newestFirst: true, limit: this.#shown + 1 },
    });
  }
}
