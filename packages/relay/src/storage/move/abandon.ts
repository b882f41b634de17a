/** Gives a move up: `mark.ts` describes the states. */
import { systemClock } from '../../clock.ts';
import { migrate } from '../migrations.ts';
import { markRestored, type RestoredStep } from '../restored.ts';
import type { Migration } from '../types.ts';
import {
  type DatabaseAddress,
  type MoveDatabase,
  MoveError,
  naming,
  openExclusive,
  openUnlessLost,
} from './databases.ts';
import type { MoveMark } from './mark.ts';
import { inspect } from './plan.ts';
import { replaceMark } from './replace-mark.ts';

export interface AbandonOptions {
  readonly from: DatabaseAddress;
  /** Needed if the source is out of service already, and the target not yet in service. */
  readonly to?: DatabaseAddress | undefined;
  /**
   * Instead of `to`: a target that was in service and that the operator declares lost for good.
   * The source then has the state it had at the move.
   */
  readonly lost?: DatabaseAddress | undefined;
  /** Every migration, and `restoredStatements`: with `lost`, the source is a state of earlier. */
  readonly migrations: readonly Migration[];
  readonly restored: readonly RestoredStep[];
}

/**
 * Gives a move up: the source goes back into service, the target never does.
 *
 * @returns the name of the target, which can be removed
 * @throws MoveError if there is nothing to give up, or it is too late
 */
export async function abandonMove({
  from,
  to,
  lost,
  migrations,
  restored,
}: AbandonOptions): Promise<string> {
  await using source = await openExclusive(from, { mustExist: true });
  const { mark: found } = await inspect(source);
  switch (found?.state) {
    case 'moving':
      if (lost === undefined) break;
      throw new MoveError(source.name, new Error('still has the whole state: leave --lost out'));
    case 'moved':
      if (lost === undefined) await abandonTarget(found, to);
      else {
        await checkLost(found, { source, lost });
        const now = systemClock.now();
        await naming(source, () => migrate(source.storage, migrations, now));
        await naming(source, () => markRestored(source.storage, restored, now));
      }
      break;
    default:
      throw new MoveError(
        source.name,
        new Error('is not being moved; there is nothing to give up'),
      );
  }
  await replaceMark(source, found, undefined);
  return found.other;
}

/** Marks the target as abandoned, before the source loses its mark: afterwards nothing may complete the move. */
async function abandonTarget(source: MoveMark, to: DatabaseAddress | undefined): Promise<void> {
  if (to === undefined) {
    const message = `the move to ${source.other} may be complete: give --to as well`;
    throw new MoveError(source.other, new Error(message));
  }
  await using target = await openExclusive(to, { mustExist: true });
  if (await abandonPartner(source, target)) return;
  throw new MoveError(target.name, new Error('is not part of this move: check --to'));
}

/**
 * Marks the target as abandoned.
 * @returns false if the target is not part of the move
 * @throws MoveError if the move is complete
 */
async function abandonPartner(source: MoveMark, target: MoveDatabase): Promise<boolean> {
  const { mark: found } = await inspect(target);
  if (found?.moveId !== source.moveId) return false;
  if (found.state !== 'arriving' && found.state !== 'abandoned') {
    throw new MoveError(target.name, new Error('is in service; move it back instead'));
  }
  await replaceMark(target, found, { ...found, state: 'abandoned' });
  return true;
}

/** @throws MoveError if the target is another one, or still exists and is in service */
async function checkLost(
  mark: MoveMark,
  { source, lost }: { readonly source: MoveDatabase; readonly lost: DatabaseAddress },
): Promise<void> {
  if (lost.name !== mark.other) {
    throw new MoveError(source.name, new Error(`was moved to ${mark.other}, not to ${lost.name}`));
  }
  await using target = await openUnlessLost(lost);
  if (target !== undefined) await abandonPartner(mark, target);
}
