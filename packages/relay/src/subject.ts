import type { Handler } from './call.ts';
import type { Job } from './context.ts';
import type { Migration } from './storage/types.ts';

/** What a folder offers to the composition root; `handlers.ts` puts them together. */
export interface Offering {
  readonly name: string;
  /** Handlers by the method's dotted name; made with {@link defineHandlers}. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly jobs: readonly Job[];
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
