import type { Handler } from './call.ts';
import type { Job } from './context.ts';
import type { News, Offering, SubscribedNews } from './subject.ts';

/** What all subjects offer together. */
export interface Offer {
  /** Handlers by method name: the only table there is. */
  readonly handlers: Readonly<Record<string, Handler>>;
  readonly jobs: readonly Job[];
  readonly news: readonly News[];
  readonly subscribedNews: readonly SubscribedNews[];
}

/**
 * Puts subjects together.
 * @throws Error for a method that two of them handle
 */
export function combine(subjects: readonly Offering[]): Offer {
  const handlers: Record<string, Handler> = {};
  for (const subject of subjects) {
    for (const [name, handler] of Object.entries(subject.handlers)) {
      if (Object.hasOwn(handlers, name)) throw new Error(`two subjects handle ${name}`);
      handlers[name] = handler;
    }
  }
  return {
    handlers,
    jobs: subjects.flatMap((subject) => subject.jobs),
    news: subjects.flatMap((subject) => subject.news ?? []),
    subscribedNews: subjects.flatMap((subject) => subject.subscribedNews ?? []),
  };
}
