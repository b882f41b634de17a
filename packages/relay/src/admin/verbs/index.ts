/** All verbs: the one list, for commands and HTTP. */
import type { Verb } from '../verb.ts';
import { accountVerbs } from './account.ts';
import { accountDeletionVerbs } from './account-deletion.ts';
import { accountExportVerbs } from './account-export.ts';
import { blockVerbs } from './block.ts';
import { inventoryVerbs } from './inventory.ts';
import { inviteVerbs } from './invite.ts';
import { peerVerbs } from './peer.ts';
import { reportVerbs } from './report.ts';

export const verbs: readonly Verb[] = [
  ...inventoryVerbs,
  ...accountVerbs,
  ...accountDeletionVerbs,
  ...accountExportVerbs,
  ...inviteVerbs,
  ...blockVerbs,
  ...peerVerbs,
  ...reportVerbs,
];

const byName: ReadonlyMap<string, Verb> = new Map(
  verbs.map((verb) => [`${verb.noun} ${verb.name}`, verb]),
);

/**
 * Returns a verb, or `undefined`.
 *
 * @example
 * findVerb('account', 'allow')?.changes; // true
 */
export function findVerb(noun: string, name: string): Verb | undefined {
  return byName.get(`${noun} ${name}`);
}
