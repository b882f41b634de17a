import type { Conversation } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import { type Signal, signal } from '@preact/signals';
import { refresher } from '../engine/refresh.ts';
import type { ConversationSource, Line } from './conversation-source.ts';
import {
  type AttachedFile,
  beginSending,
  draftOf,
  draftPrefix,
  sendingPrefix,
  type UnsentText,
  unsentOf,
  write,
} from './drafts.ts';
import type { Host } from './host.ts';
import { keepLines } from './keep-lines.ts';
import { tabId, untilEnded } from './tabs.ts';

export type { Line } from './conversation-source.ts';

/** Messages of a page. */
const pageSize = 50;
/** Up to so many messages are shown so that what is read stays while others arrive. */
const mostHeld = 1_000;

type Key = Pick<Conversation, 'kind' | 'id'>;

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
  readonly draft: Signal<string>;
  readonly replyTo = signal<Line | undefined>(undefined);
  readonly files: Signal<readonly AttachedFile[]>;
  /** Whether something else than the newest messages is read: it stays, whatever arrives. */
  isReadingBack = false;
  readonly #app: Host;
  readonly #closing = new AbortController();
  /** Whether texts of other tabs were looked for. */
  #isTaking = false;
  /** The `order` of the oldest message that stays while older ones are read; not known before the next read. */
  #oldestHeld = Number.MAX_SAFE_INTEGER;
  #shown = pageSize;
  readonly refresh: () => Promise<void>;

  constructor(app: Host, { kind, id }: Key, source: ConversationSource) {
    this.#app = app;
    this.kind = kind;
    this.id = id;
    this.source = source;
    const { text, files } = draftOf(this.#draftKey);
    this.draft = text;
    this.files = files;
    this.refresh = refresher(
      () => this.#read(),
      (error) => {
        // The history of the browser may name a group that this account does not know.
        const isUnknown =
          isClientError(error, 'not_a_member') || isClientError(error, 'unknown_channel');
        if (isUnknown) app.notice.value = error;
        return !isUnknown && !this.#closing.signal.aborted && app.failed(error);
      },
    );
  }

  get #draftKey(): string {
    return `${draftPrefix}${this.kind}.${this.id}`;
  }

  /** Before the time of sending and the ID of the tab: texts that are not known to be stored. */
  get #sendingKey(): string {
    return `${sendingPrefix}${this.kind}.${this.id}.`;
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
  write(text: string): boolean {
    return write(this.#draftKey, text);
  }

  /** Stores the draft as a message, which leaves when it can. */
  async post(): Promise<void> {
    const text = this.draft.value.trim();
    const files = this.files.value;
    const attachments = files.flatMap(({ reference }) => reference ?? []);
    if (attachments.length < files.length || (text === '' && files.length === 0)) return;
    const replyTo = this.replyTo.value;
    // At once: a second Enter sends nothing, and what is typed meanwhile stays.
    const draftId = `${performance.timeOrigin + performance.now()}.${tabId}`;
    const endSending = beginSending(this.#draftKey, this.#sendingKey + draftId);
    this.files.value = [];
    this.replyTo.value = undefined;
    const draft = draftOf(this.#draftKey);
    draft.posting += 1;
    let isKept = true;
    try {
      await this.source.post({
        draftId,
        ...(text !== '' && { text }),
        ...(attachments.length > 0 && { attachments }),
        ...(replyTo && { replyTo }),
      });
    } catch (error) {
      // With what was written meanwhile.
      isKept = this.write([text, this.draft.value].filter(Boolean).join('\n'));
      this.files.value = [...files, ...this.files.value];
      this.replyTo.value ??= replyTo;
      throw error;
    } finally {
      draft.posting -= 1;
      if (isKept) endSending();
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
    this.#closing.abort();
    this.messages.value = [];
  }

  /**
   * Puts texts into the draft that other tabs did not store as messages before they ended: at once, or when a tab
   * ends that is open.
   */
  #beginTaking(): void {
    if (this.#isTaking) return;
    this.#isTaking = true;
    const tabs = unsentOf(`${this.kind}.${this.id}`);
    Promise.all([...tabs].map(([tab, texts]) => this.#takeOnceEnded(tab, texts))).catch((error) => {
      // The next read begins again.
      this.#isTaking = false;
      if (!this.#closing.signal.aborted) this.#app.failed(error);
    });
  }

  async #takeOnceEnded(tab: string, texts: readonly UnsentText[]): Promise<void> {
    await untilEnded(tab, this.#closing.signal);
    for (const text of texts) await this.#takeAlone(text);
  }

  /**
   * Takes a text, unless another tab does. One tab does: it has the lock of that name for as long as it lives, since
   * others may see for a while what it removed.
   */
  #takeAlone(text: UnsentText): Promise<void> {
    return new Promise((done, failed) => {
      const take = async (mine: unknown) => {
        if (mine !== null) await this.#take(text);
        done();
        return mine && new Promise(() => undefined);
      };
      navigator.locks.request(text.key, { ifAvailable: true }, take).catch(failed);
    });
  }

  async #take({ key, draftId }: UnsentText): Promise<void> {
    const { conversations } = this.#app.account;
    // The worker of a tab that ended may still be storing it: from here on that is done, or never.
    const isUnsent = await conversations.withdrawDraft(draftId);
    const unsent = isUnsent ? (localStorage.getItem(key) ?? '') : '';
    const written = this.draft.value;
    // The tab may have ended before it removed its draft.
    const isThere = unsent === '' || written.trim() === unsent;
    const draft = isThere ? written : [written, unsent].filter(Boolean).join('\n');
    // Without space for the draft, it stays where it is.
    if (isThere || this.write(draft)) localStorage.removeItem(key);
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
    this.messages.value = keepLines(this.messages.value, page.lines);
    this.isRead.value = true;
    this.#beginTaking();
    if (this.isReadingBack && this.#oldestHeld < Number.MAX_SAFE_INTEGER) return;
    this.#oldestHeld = page.lines[0]?.order ?? 0;
  }
}
