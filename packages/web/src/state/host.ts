/** What conversations and the parts that are loaded later need of the app. */
import type { AccountEvent, Contact, Conversation, Group } from '@posthouse/client';
import type { WorkerAccount } from '@posthouse/client/web';
import type { ReadonlySignal, Signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import type { AppConfig } from '../app-config.ts';

/** Groups that wait for something; see `groups/rooms.tsx`. */
export interface RoomWatch {
  /** The part of the list that says what they wait for. */
  readonly Waiting: ComponentType;
  readonly groups: ReadonlySignal<readonly Group[]>;
  /** Applications and requests for new keys, by group. */
  readonly decisions: ReadonlySignal<ReadonlyMap<string, number>>;
  /** Groups whose host was put back to an earlier state. */
  readonly restored: ReadonlySignal<ReadonlySet<string>>;
  /** Takes an event of the account. */
  apply(event: AccountEvent): void;
  setRestored(ids: ReadonlySet<string>): void;
  refresh(): Promise<void>;
  /** Counts again what one group has to decide. */
  recount(id: string): Promise<void>;
  /** Takes an invitation out of the list: used or declined. */
  forget(address: string): void;
  /** Keeps the name of a group that was applied for: until it can be read, nothing else has it. */
  nameApplication(id: string, name: string): void;
}

export interface Host {
  readonly account: WorkerAccount;
  readonly config: AppConfig;
  readonly contacts: ReadonlySignal<readonly Contact[]>;
  /** Accounts of which nothing is shown. */
  readonly blocked: ReadonlySignal<ReadonlySet<string>>;
  readonly conversations: ReadonlySignal<readonly Conversation[]>;
  readonly rooms: ReadonlySignal<RoomWatch | undefined>;
  /** A sentence to announce, or an error. */
  readonly notice: Signal<unknown>;
  /** Runs what a person asked for; an error becomes a notice. Returns whether it succeeded. */
  try(work: () => Promise<unknown>): Promise<boolean>;
  /** Shows an error of something that is read again; returns whether to try again. */
  failed(error: unknown): boolean;
  /** Reads the lists again. */
  changed(): Promise<void>;
}
