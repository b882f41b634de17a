/** What the app shows: signals, fed by the client in the worker. Screens read them and call {@link App}. */

import type { AccountEvent, Contact, Conversation } from '@posthouse/client';
import { isClientError, type WorkerAccount, type WorkerClient } from '@posthouse/client/web';
import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { type AppConfig, fetchConfig, readConfig } from '../app-config.ts';
import { followAccount } from '../engine/follow.ts';
import { openClient } from '../engine/open-client.ts';
import { refresher } from '../engine/refresh.ts';
import { TriedAgain } from '../parts/fault.tsx';
import { text } from '../text/index.ts';
import { personSource } from './conversation-source.ts';
import { ending, noteEnding } from './ending.ts';
import type { Host, RoomWatch } from './host.ts';
import { LaterRooms, type RoomParts } from './later-rooms.ts';
import { OpenConversation } from './open-conversation.ts';
import { deleteUnused, isLocked, readLock } from './stores.ts';
import { joinTabs } from './tabs.ts';
import { UnreadTotal } from './unread-total.ts';

/** Where the app is before and after there is an account. */
export type Phase =
  | { readonly kind: 'starting'; readonly say?: string }
  | { readonly kind: 'welcome' }
  | { readonly kind: 'locked' }
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly error: unknown };

export type Connection = 'connecting' | 'connected' | 'disconnected';
export type { Contact, Conversation };

/** What is loaded when it is needed first. */
interface LaterParts {
  readonly loadRooms: () => Promise<RoomParts>;
  /** Names the conversation that the page opens with, if it does. */
  readonly firstShown: () => Pick<Conversation, 'kind' | 'id'> | undefined;
  /** Takes over a lock that an earlier version kept in `localStorage`. */
  readonly adoptLock: (lock: string) => Promise<void>;
}

/** How many conversations are listed; the list asks for more when its end is shown. */
const listStep = 50;

/** What all screens read and call. */
export class App implements Host {
  readonly phase = signal<Phase>({ kind: 'starting' });
  readonly connection = signal<Connection>('connecting');
  readonly #conversations = signal<readonly Conversation[]>([]);
  /** Without those of blocked people. */
  readonly conversations = computed(() =>
    this.#conversations.value.filter(({ id }) => !this.blocked.value.has(id)),
  );
  readonly contacts = signal<readonly Contact[]>([]);
  readonly opened = signal<OpenConversation | undefined>(undefined);
  /** A sentence to announce, or what went wrong; screens show it until it is closed. */
  readonly notice = signal<unknown>('');
  /** Whether a visitor who read a channel wants an account. */
  readonly wantsAccount = signal(false);
  /** Invitations, applications and what else groups wait for; loaded after the start. */
  readonly rooms: ReadonlySignal<RoomWatch | undefined>;
  /** Whether a wallet with this account's key was saved on this device. */
  readonly hasBackup = signal(localStorage.getItem(backupMark) !== null);
  readonly requests = computed(() => this.contacts.value.filter(({ status }) => status === 'asks'));
  /** Unread messages, also of conversations that are not listed yet. */
  readonly unread = computed(() =>
    this.#conversations.value
      .filter(({ id }) => this.blocked.value.has(id))
      .reduce((sum, { unread }) => sum - unread, this.#counted.value),
  );
  readonly #counted = signal(0);
  readonly blocked: ReadonlySignal<ReadonlySet<string>> = computed(
    () =>
      new Set(
        this.contacts.value.flatMap(({ account, status }) => (status === 'blocked' ? account : [])),
      ),
  );
  /** Takes every event but those of the connection; set by notifications. */
  noticed: ((event: AccountEvent) => void) | undefined;
  readonly #laterRooms: LaterRooms;
  readonly #openFirst: () => Promise<void>;
  readonly #adoptLock: LaterParts['adoptLock'];
  #config: AppConfig | undefined;
  #client: WorkerClient | undefined;
  #account: WorkerAccount | undefined;
  #listed = listStep;
  /** Whether the client was closed for good: what was being read fails then, and that is no news. */
  #isEnding = false;
  /** What was opened last; its source may still be loading. */
  #wanted: Pick<Conversation, 'kind' | 'id'> | undefined;
  #hasMore = false;
  readonly #total = new UnreadTotal();
  /** What was last announced of something that is tried again. */
  #fault: TriedAgain | undefined;
  readonly #refreshList = refresher(
    async () => {
      const { conversations } = this.account;
      const listed = await conversations.list({ limit: this.#listed });
      this.#hasMore = listed.length === this.#listed;
      this.#conversations.value = listed;
      this.#counted.value = await this.#total.count(conversations, listed, this.#hasMore);
      if (this.notice.value === this.#fault) this.notice.value = '';
    },
    (error) => this.failed(error),
  );
  readonly #refreshContacts = refresher(
    async () => {
      this.contacts.value = await this.account.contacts.list();
      this.#readProfiles();
    },
    (error) => this.failed(error),
  );

  constructor({ loadRooms, firstShown, adoptLock }: LaterParts) {
    this.#laterRooms = new LaterRooms(loadRooms);
    this.rooms = this.#laterRooms.watch;
    this.#adoptLock = adoptLock;
    this.#openFirst = () => this.open(firstShown());
  }

  /** The account. Only screens of the phase `ready` are shown when there is one. */
  get account(): WorkerAccount {
    if (this.#account === undefined) throw new Error('there is no account yet');
    return this.#account;
  }

  get client(): WorkerClient {
    if (this.#client === undefined) throw new Error('the client is not open yet');
    return this.#client;
  }

  get config(): AppConfig {
    if (this.#config === undefined) throw new Error('the configuration is not read yet');
    return this.#config;
  }

  /** Reads the configuration, opens the client, and shows the account if there is one. */
  async start(): Promise<void> {
    try {
      this.#config = await readConfig();
      if (navigator.onLine) this.#renewConfig().catch(() => undefined);
      await joinTabs();
      const earlier = localStorage.getItem(earlierLock);
      if (earlier !== null) await this.#adoptLock(earlier);
      localStorage.removeItem(earlierLock);
      await readLock();
      if (isLocked()) this.phase.value = { kind: 'locked' };
      else await this.openStore();
      if (this.phase.value.kind === 'ready') deleteUnused();
    } catch (error) {
      this.#end(error);
    }
  }

  /**
   * Opens the client, and shows the account if there is one.
   *
   * @param storeKey of a locked device
   * @throws ClientError `store_mismatch` for another key
   */
  async openStore(storeKey?: Uint8Array): Promise<void> {
    const failed = (error: unknown) => this.#end(error);
    try {
      this.#client = await openClient(this.config, { failed, storeKey });
      await this.use(await this.#client.account());
    } catch (error) {
      if (!isClientError(error, 'not_set_up')) throw error;
      this.phase.value = { kind: 'welcome' };
    }
  }

  /** Takes over what the operator changed: at once if nothing works with what was kept, but once only. */
  async #renewConfig(): Promise<void> {
    const { isChanged } = await fetchConfig();
    const isUsable = this.phase.value.kind === 'ready' && this.connection.value === 'connected';
    if (!isChanged || isUsable || sessionStorage.getItem(reloadMark) !== null) return;
    sessionStorage.setItem(reloadMark, '1');
    location.reload();
  }

  /**
   * Sets an account up on this device: a new one, or that of a key.
   *
   * @param options.recover removes all other devices of the account, whose relay is gone
   * @throws ClientError, RelayRefused; the same call can be made again, and goes on
   */
  async setUp({
    inviteCode,
    accountKey,
    recover = false,
  }: {
    readonly inviteCode: string;
    readonly accountKey?: Uint8Array;
    readonly recover?: boolean;
  }): Promise<void> {
    const account = await this.client.setUp({
      ...{ relayId: this.config.relayId, recover },
      ...(accountKey !== undefined && { accountKey, keepKey: true }),
      ...(inviteCode !== '' && { inviteCode }),
    });
    await this.use(account);
  }

  /** Notes that a wallet with the key was saved. */
  backedUp(): void {
    localStorage.setItem(backupMark, '1');
    this.hasBackup.value = true;
  }

  /** Shows an account that is set up on this device. */
  async use(account: WorkerAccount): Promise<void> {
    this.#account = account;
    followAccount(account, {
      listener: (event) => this.#apply(event),
      failed: (error) => !noteEnding(error) && this.failed(error),
      begun: () => {
        void this.changed();
        void this.opened.value?.refresh();
      },
    });
    // Together: the conversation is there with the list.
    await Promise.all([this.#refreshList(), this.#refreshContacts(), this.#openFirst()]);
    this.phase.value = { kind: 'ready' };
  }

  /**
   * Closes the client, does what needs its store alone, and loads the page again.
   *
   * @param work is given a function that shows a sentence meanwhile
   */
  async endWith(work: (say: (sentence: string) => void) => Promise<void>): Promise<void> {
    const say = (sentence?: string) => {
      this.phase.value = { kind: 'starting', ...(sentence && { say: sentence }) };
    };
    say();
    this.#isEnding = true;
    try {
      await this.client.close();
      await work(say);
      location.replace(location.pathname);
    } catch (error) {
      this.#end(error);
    }
  }

  /** Lists all conversations, to search in them. */
  async listAll(): Promise<void> {
    while (await this.listMore());
  }

  /** Lists more conversations, if there may be more. Returns whether there are: not if they cannot be read now. */
  async listMore(): Promise<boolean> {
    if (!this.#hasMore) return false;
    const before = this.#conversations.value.length;
    this.#listed = Math.max(before * 2, listStep);
    await this.#refreshList();
    return this.#conversations.value.length > before;
  }

  /** Shows a conversation, or none; the one that was shown before keeps its draft. */
  async open(key: Pick<Conversation, 'kind' | 'id'> | undefined): Promise<void> {
    const before = this.opened.value;
    this.#wanted = key;
    if (before?.kind === key?.kind && before?.id === key?.id) return;
    before?.close();
    this.opened.value = undefined;
    if (key === undefined) return;
    const make = key.kind === 'person' ? personSource : await this.#laterRooms.source(key.kind);
    // Another one may have been opened meanwhile.
    if (this.#wanted !== key) return;
    if (make === undefined) {
      this.notice.value = text.partMissing;
      return;
    }
    if (key.kind === 'person') this.#readProfiles(key.id);
    const opened = new OpenConversation(this, key, make(this, key.id));
    this.opened.value = opened;
    await opened.refresh();
  }

  /** Runs what a person asked for; an error becomes a notice. Returns whether it succeeded. */
  async try(work: () => Promise<unknown>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.notice.value = error;
      return false;
    }
  }

  /**
   * Shows an error of something that is read again by itself. A store that cannot be used ends the app: only
   * loading the page again may help.
   *
   * @returns whether to try again
   */
  failed(error: unknown): boolean {
    if (this.#isEnding) return false;
    if (storeErrors.some((code) => isClientError(error, code))) {
      this.#end(error);
      return false;
    }
    this.#fault = new TriedAgain(error);
    this.notice.value = this.#fault;
    return true;
  }

  #end(error: unknown): void {
    this.phase.value = { kind: 'failed', error };
  }

  /** Reads the lists again, after a change of this tab. */
  async changed(): Promise<void> {
    const { id } = this.opened.value ?? {};
    if (this.#conversations.value.every((each) => each.id !== id)) this.#total.forget();
    await Promise.all([this.#refreshList(), this.#refreshContacts()]);
  }

  /** Reads again what has names of others in it. */
  async namesChanged(): Promise<void> {
    await Promise.all([this.changed(), this.opened.value?.refresh()]);
  }

  #readProfiles(again?: string): void {
    if (this.connection.value !== 'connected') return;
    const read = async () => await (await import('./profiles.ts')).readProfiles(this, again);
    read().catch(() => undefined);
  }

  #apply(event: AccountEvent): void {
    if (event.kind === 'connection') {
      this.connection.value = event.state;
      if (event.state === 'connected') ending.value = '';
      this.#readProfiles();
      this.#laterRooms.apply(this, event);
      return;
    }
    this.noticed?.(event);
    if (['conversation-read', 'events-missed'].includes(event.kind)) this.#total.forget();
    void this.#refreshList();
    this.#laterRooms.apply(this, event);
    if (event.kind.startsWith('contact-') || event.kind === 'events-missed') {
      void this.#refreshContacts();
    }
    void this.opened.value?.refresh();
  }
}

/** What no other try helps against. */
const storeErrors = ['store_unavailable', 'store_mismatch', 'store_damaged'] as const;

const backupMark = 'posthouse.backup';
/** Where earlier versions kept the lock. */
const earlierLock = 'posthouse.lock';
/** Set in a tab that was loaded again for another configuration. */
const reloadMark = 'posthouse.reloaded';
