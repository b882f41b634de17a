import type { Capability } from '@posthouse/protocol';
import type { Job } from '../context.ts';
import type { RestoredStep } from '../storage/restored.ts';
import type { Migration, Reader } from '../storage/types.ts';
import type { SubscriptionKind } from './call.ts';
import type { Handlers } from './handler.ts';
import type { Notice } from './notice.ts';
import type { RelayHandlers } from './relay-handler.ts';

/** What one folder adds to the relay: methods, jobs and resync sources. */
export interface Module {
  readonly name: string;
  /** The optional module it implements; a relay that does not host it answers none of its methods. */
  readonly capability?: Capability;
  readonly handlers: Handlers;
  /** Handlers of requests and notifications that other relays send (07 §C). */
  readonly relayHandlers?: RelayHandlers;
  readonly jobs: readonly Job[];
  readonly accountResync?: AccountResync;
  readonly subscriptionResync?: SubscriptionResync;
}

/** A module with tables of its own; `modules.ts` lists them. */
export interface StoredModule extends Module {
  readonly migrations: readonly Migration[];
  /** What runs in one transaction when the database was put back to an earlier state. */
  readonly restored: readonly RestoredStep[];
}

/**
 * Reads the notices that would bring connections of these accounts up to date, from one snapshot.
 * For processes that may have missed some (`notifications/connection-resync.ts`); a notice that a connection
 * has received already has no effect.
 *
 * @param accounts accounts with connections to this process, at most 100
 */
export type AccountResync = (
  tx: Reader,
  accounts: readonly string[],
  at: { readonly relayId: string; readonly now: number },
) => Promise<readonly Notice[]>;

/** As {@link AccountResync}, for subscribed groups or channels. */
export interface SubscriptionResync {
  readonly kind: SubscriptionKind;
  /**
   * @param ids IDs of groups or channels, at most 500
   * @param options.withLists if hints of lists may have been lost: lists have no version to compare
   */
  notices(
    tx: Reader,
    ids: readonly string[],
    options: { readonly withLists: boolean },
  ): Promise<readonly Notice[]>;
}
