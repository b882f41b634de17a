/** When a relay is killed. */
import { writePoints } from '../../src/storage/types.ts';

/**
 * Points of the relay's code at which it kills itself: those of a write, a statement of a
 * transaction, one of the statements with which it starts, a checkpoint of SQLite's log, before and
 * after notifications are published, before and after the bytes of an answer are handed to the socket.
 */
export const crashPoints = [
  ...writePoints,
  ...(['statement', 'start', 'checkpoint'] as const),
  ...(['publish', 'published', 'send', 'sent'] as const),
] as const;
export type CrashPoint = (typeof crashPoints)[number];

/** A process dies at the `pass`th time it comes to a point. */
export interface CrashPlan {
  readonly point: CrashPoint;
  readonly pass: number;
  /**
   * Microseconds that it goes on, for another thread to end it in the middle of what follows; at 0
   * it ends itself on the spot.
   */
  readonly delay: number;
}

/** A kill from outside: under load, while the process starts, while it stops; or one at a point. */
export type Kill =
  | { readonly kind: 'moment'; readonly answers: number; readonly turns: number }
  | { readonly kind: 'starting'; readonly milliseconds: number }
  | { readonly kind: 'stopping'; readonly answers: number; readonly turns: number }
  | { readonly kind: 'point'; readonly plan: CrashPlan };

/** Highest pass at which a process dies: how often it comes to the point within some 50 answers. */
const passes: Partial<Record<CrashPoint, number>> = { start: 6, statement: 400, published: 20 };
const manyPasses = 40;

/** Points of an engine. PostgreSQL's log is its server's. */
export function pointsOf(engine: string | undefined): readonly CrashPoint[] {
  return crashPoints.filter((point) => engine === 'sqlite' || point !== 'checkpoint');
}

/**
 * Chooses as many kills, in random order: two of three at points, each point once before one is
 * chosen again.
 *
 * @param upTo a whole number from 1 to its parameter
 */
export function chooseKills(
  count: number,
  points: readonly CrashPoint[],
  upTo: (most: number) => number,
): Kill[] {
  const outside = ['moment', 'starting', 'stopping'] as const;
  const kills = Array.from({ length: count }, (_, index): Kill => {
    const third = Math.floor(index / 3);
    const point = points[(2 * third + (index % 3)) % points.length] as CrashPoint;
    if (index % 3 < 2) return { kind: 'point', plan: choosePlan(point, upTo) };
    const kind = outside[third % outside.length] ?? 'moment';
    if (kind === 'starting') return { kind, milliseconds: upTo(600) };
    return { kind, answers: upTo(90), turns: upTo(40) };
  });
  for (let index = kills.length - 1; index > 0; index -= 1) {
    const other = upTo(index + 1) - 1;
    [kills[index], kills[other]] = [kills[other] as Kill, kills[index] as Kill];
  }
  return kills;
}

function choosePlan(point: CrashPoint, upTo: (most: number) => number): CrashPlan {
  // What follows these takes its time: the log is written and flushed, or copied to the database.
  const isLong = point === 'commit' || point === 'checkpoint';
  const delay = isLong || upTo(3) === 1 ? upTo(1_500) : 0;
  return { point, pass: upTo(passes[point] ?? manyPasses), delay };
}
