import type { Job } from '../context.ts';
import type { Handler } from './handler.ts';
import type { AccountResync, Module, SubscriptionResync } from './module.ts';

/** All modules of a relay together. */
export interface ModuleSet {
  /** Handlers by method name: the only table there is. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly jobs: readonly Job[];
  readonly accountResyncs: readonly AccountResync[];
  readonly subscriptionResyncs: readonly SubscriptionResync[];
}

/**
 * Combines modules into one set.
 * @throws Error if two modules handle the same method
 */
export function combineModules(modules: readonly Module[]): ModuleSet {
  const handlers: Record<string, Handler> = {};
  for (const module of modules) {
    for (const [name, handler] of Object.entries(module.handlers)) {
      if (Object.hasOwn(handlers, name)) throw new Error(`two modules handle ${name}`);
      handlers[name] = handler;
    }
  }
  return {
    handlers,
    jobs: modules.flatMap((module) => module.jobs),
    accountResyncs: modules.flatMap((module) => module.accountResync ?? []),
    subscriptionResyncs: modules.flatMap((module) => module.subscriptionResync ?? []),
  };
}
