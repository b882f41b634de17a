import type { Job } from '../context.ts';
import type { Handlers } from './handler.ts';
import type { AccountResync, Module, SubscriptionResync } from './module.ts';
import type { RelayHandlers } from './relay-handler.ts';

/** All modules of a relay together. */
export interface ModuleSet {
  /** Handlers by method name: the only table there is. */
  readonly handlers: Handlers;
  readonly relayHandlers: RelayHandlers;
  readonly jobs: readonly Job[];
  readonly accountResyncs: readonly AccountResync[];
  readonly subscriptionResyncs: readonly SubscriptionResync[];
}

/**
 * Combines modules into one set.
 * @throws Error if two modules handle the same method
 */
export function combineModules(modules: readonly Module[]): ModuleSet {
  let handlers: Handlers = {};
  for (const module of modules) {
    const twice = Object.keys(module.handlers).find((name) => Object.hasOwn(handlers, name));
    if (twice !== undefined) throw new Error(`two modules handle ${twice}`);
    handlers = { ...handlers, ...module.handlers };
  }
  return {
    handlers,
    relayHandlers: Object.assign({}, ...modules.map(({ relayHandlers }) => relayHandlers)),
    jobs: modules.flatMap((module) => module.jobs),
    accountResyncs: modules.flatMap((module) => module.accountResync ?? []),
    subscriptionResyncs: modules.flatMap((module) => module.subscriptionResync ?? []),
  };
}
