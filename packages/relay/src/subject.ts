import type { Capability } from '@posthouse/protocol';
import type { Handler, Notice, SubscriptionKind } from './call.ts';
import type { Job } from './context.ts';
import type { Migration, Reader } from './storage/types.ts';

/** What a folder offers to the composition root; `handlers.ts` puts them together. */
export interface Offering {
  readonly name: string;
  /** The optional module it implements; a relay that does not host it answers none of its methods. */
  readonly capability?: Capability;
  /** Handlers by the method's dotted name; made with {@link defineHandlers}. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly jobs: readonly Job[];
  readonly news?: News;
  readonly subscribedNews?: SubscribedNews;
}

/**
 * What notices of a subject last said about these accounts, as one snapshot has it: for processes
 * that may have missed some (`notifications/catch-up.ts`). Nothing to tell those who heard it.
 *
 * @param accounts of connections here, a hundred at the most
 */
export type News = (
  tx: Reader,
  accounts: readonly string[],
  place: { readonly relayId: string; readonly now: number },
) => Promise<readonly Notice[]>;

/** As {@link News}, of what connections here subscribed. */
export interface SubscribedNews {
  readonly kind: SubscriptionKind;
  /**
   * @param ids of groups or channels, five hundred at the most
   * @param options.withLists where hints of lists may have been lost: nothing tells whether one was
   */
  tell(
    tx: Reader,
    ids: readonly string[],
    options: { readonly withLists: boolean },
  ): Promise<readonly Notice[]>;
}

/**
 * What a subject folder offers: `accounts/index.ts` exports `accounts: Subject`,
 * `messages/index.ts` exports `messages: Subject`, and so on; `schema.ts` lists them.
 */
export interface Subject extends Offering {
  readonly migrations: readonly Migration[];
}

/**
 * Takes handlers with parameters of their own type. Safe because dispatch checks the parameters
 * against the schema of the method the handler stands under.
 */
export function defineHandlers(
  // biome-ignore lint/suspicious/noExplicitAny: each handler has its own parameter type
  handlers: Readonly<Record<string, Handler<any>>>,
): Readonly<Record<string, Handler>> {
  return handlers;
}
