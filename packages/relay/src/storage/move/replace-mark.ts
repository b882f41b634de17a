import { type MoveDatabase, naming } from './databases.ts';
import { changeMark, type MoveMark } from './mark.ts';

/**
 * Replaces a database's mark, or removes it; does nothing if it is the same.
 *
 * @throws MoveError if the database has another mark than `from`
 */
export async function replaceMark(
  end: MoveDatabase,
  from: MoveMark | undefined,
  to: MoveMark | undefined,
): Promise<void> {
  if (from?.state === to?.state && from?.moveId === to?.moveId) return;
  await naming(end, () => end.storage.write('relay', (tx) => changeMark(tx, from, to)));
}
