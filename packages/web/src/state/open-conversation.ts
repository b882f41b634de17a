import type { Conversation } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import { type Signal, signal } from '@preact/signals';
import { refresher } from '../engine/refresh.ts';
import type { ConversationSource, Line, LineDraft } from './conversation-source.ts';
import {
  type AttachedFile,
  beginPosting,
  draftOf,
  onEntry,
  type PostedDraft,
  take,
  type UnsentText,
  unsentOf,
  write,
} from './drafts.ts';
import type { Host } from './host.ts';
import { keepLines } from './keep-lines.ts';
import { tabId, untilTabEnded } from './tabs.ts';

export type { Line } from './conversation-source.ts';

/** Messages of a page. */
const pageSize = 50;
/** Up to so many messages are shown so that what is read stays while others arrive. */
const mostHeld = 1_000;
/** Seconds by which the relay's clock, which messages are dated by, may be slow. */
const clockSlack = 60;

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
  /** Tabs whose end is waited for, to take what they did not store as messages. */
  readonly #awaitedTabs = new Set<string>();
  /** The `order` of the oldest message that stays while older ones are read; not known before the next read. */
  #oldestHeld = Number.MAX_SAFE_INTEGER;
  #shown = pageSize;
  readonly refresh: () => Promise<void>;

  constructor(app: Host, { kind, id }: Key, source: ConversationSource) {
    this.#app = app;
    this.kind = kind;
    this.id = id;
    this.source = source;
    this.draft = this.#draft.text;
    this.files = this.#draft.files;
    const look = () => this.isRead.value && this.#takeUnsent();
    onEntry(this.#draft, look, this.#closing.signal);
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

  get #draft() {
    return draftOf(`${this.kind}.${this.id}`);
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
    return write(this.#draft, text);
  }

  /** Stores the draft as a message, which leaves when it can. */
  async post(): Promise<void> {
    const text = this.draft.value.trim();
    const files = this.files.value;
    const attachments = files.flatMap(({ reference }) => reference ?? []);
    if (attachments.length < files.length || (text === '' && files.length === 0)) return;
    const replyTo = this.replyTo.value;
    // At once: a second Enter sends nothing, and what is typed meanwhile stays.
    const posted = beginPosting(this.#draft);
    this.files.value = [];
    this.replyTo.value = undefined;
    const content = {
      ...(text !== '' && { text }),
      ...(attachments.length > 0 && { attachments }),
      ...(replyTo && { replyTo }),
    };
    try {
      await this.#postDraft(posted, content);
    } catch (error) {
      // With what was attached meanwhile.
      this.files.value = [...files, ...this.files.value];
      this.replyTo.value ??= replyTo;
      throw error;
    }
    for (const { preview } of files) if (preview !== undefined) URL.revokeObjectURL(preview);
    await this.#changed();
  }

  /** Posts a draft. @throws why it is not stored as a message, or why that is not known */
  async #postDraft(posted: PostedDraft, content: LineDraft): Promise<void> {
    const { draftId } = posted;
    try {
      await this.source.post({ draftId, ...content });
    } catch (error) {
      // The worker may have stored it, and ended before its answer.
      const { conversations } = this.#app.account;
      const isWithdrawn = await conversations.withdrawDraft(draftId).catch(() => undefined);
      if (isWithdrawn === undefined) posted.leave();
      if (isWithdrawn) posted.putBack();
      if (isWithdrawn !== false) throw error;
    }
    posted.end();
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
  #takeUnsent(): void {
    for (const tab of new Set(unsentOf(this.#draft).map((text) => text.tab))) {
      if (this.#awaitedTabs.has(tab)) continue;
      this.#awaitedTabs.add(tab);
      // After an error, the next read begins again.
      this.#takeOnceEnded(tab).catch((error) => {
        this.#awaitedTabs.delete(tab);
        if (!this.#closing.signal.aborted) this.#app.failed(error);
      });
    }
  }

  async #takeOnceEnded(tab: string): Promise<void> {
    if (tab !== tabId) await untilTabEnded(tab, this.#closing.signal);
    const texts = unsentOf(this.#draft).filter((text) => text.tab === tab);
    const errors: unknown[] = [];
    for (const text of texts) await this.#takeAlone(text).catch((error) => errors.push(error));
    this.#awaitedTabs.delete(tab);
    if (errors.length > 0) throw errors[0];
  }

  /**
   * Takes a text, unless another tab does. One tab does: it has the lock of that name for as long as it lives, since
   * others may see for a while what it removed.
   */
  #takeAlone(text: UnsentText): Promise<void> {
    return new Promise((done, failed) => {
      const takeIt = async (mine: unknown) => {
        if (mine !== null) await this.#take(text);
        done();
        return mine && new Promise(() => undefined);
      };
      navigator.locks.request(text.key, { ifAvailable: true }, takeIt).catch(failed);
    });
  }

  async #take(text: UnsentText): Promise<void> {
    if (await this.#isUnsent(text)) take(this.#draft, text);
    else localStorage.removeItem(text.key);
  }

  /** Whether a text is no message. The worker of a tab that ended may still be storing it: from here on, it does not. */
  async #isUnsent({ key, draftId, sentAt }: UnsentText): Promise<boolean> {
    const { id, conversations } = this.#app.account;
    try {
      if (!(await conversations.withdrawDraft(draftId))) return false;
    } catch (error) {
      // Nothing was posted under a name that is none.
      if (!isClientError(error, 'invalid_input')) throw error;
    }
    if (sentAt === undefined) return true;
    const { lines } = await this.source.read(this.#shown);
    const text = localStorage.getItem(key);
    return !lines.some(
      ({ from, body, createdAt }) =>
        from === id && body?.text === text && createdAt > sentAt / 1_000 - clockSlack,
    );
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
    this.#takeUnsent();
    if (this.isReadingBack && this.#oldestHeld < Number.MAX_SAFE_INTEGER) return;
    this.#oldestHeld = page.lines[0]?.order ?? 0;
  }
}
