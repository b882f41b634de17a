/** What the parts of the crash rig have in common. */
import type { Row } from '../../src/storage/types.ts';

export type IsOver = () => boolean;

/** Every row of every table. */
export type Tables = Readonly<Record<string, readonly Row[]>>;

/** Accounts that write to one part of a relay, and what was acknowledged to them. */
export interface Writers {
  /** Writes until it is over; rejects as soon as an answer is wrong. */
  write(isOver: IsOver): Promise<unknown>;
  /** Reads everything as clients do, and compares it with what was acknowledged. */
  check(): Promise<void>;
  /** Compares rows that no method shows. */
  checkRows?(tables: Tables): void;
  /** Heads of the timelines that hints were about, by account, group or channel. */
  heads?(): Promise<ReadonlyMap<string, number>>;
}
