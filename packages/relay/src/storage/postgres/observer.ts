import type { AggregateKey } from '../types.ts';

/** Events of the engine that operators must see. */
export interface PostgresObserver {
  /** The server became unreachable; called once until {@link restored}. */
  lost(error: unknown): void;
  restored(): void;
  /** A write is retried after a conflict. */
  conflicted(): void;
  /** The outcome of a commit is unknown; its caller gets `temporarily_unavailable`. */
  commitUnknown(error: unknown): void;
  /** Another process took a lock on the database that excludes this one. */
  lockLost(error: unknown): void;
  /**
   * These aggregates may have changed without notices: a write found nothing to change, so that it
   * may repeat one whose process died before it published; or a commit succeeded whose caller was
   * told that its outcome is unknown. `any`: so may all aggregates.
   */
  unannounced(aggregates: readonly AggregateKey[] | 'any'): void;
  /** The server has been out of reach for some seconds, called again and again; or is not any more. */
  reachable(isReachable: boolean): void;
}

export const noObserver: PostgresObserver = {
  lost() {},
  restored() {},
  conflicted() {},
  commitUnknown() {},
  lockLost() {},
  unannounced() {},
  reachable() {},
};
