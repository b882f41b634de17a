/** What to call members: by the name that they have in the group, else as everywhere. */
import type { Group, NamedMember } from '@posthouse/client';
import { visibleName } from '@posthouse/client/visible-text';
import { nameOf, shortId } from '../parts/names.ts';
import type { Host } from '../state/host.ts';

/**
 * A name of a contact's own choice stands next to the one that this person gave it: two members may
 * choose the same.
 */
export function memberName(app: Host, members: readonly NamedMember[], account: string): string {
  const known = nameOf(app, account);
  const nickname = members.find((member) => member.account === account)?.nickname;
  if (nickname === undefined || account === app.account.id) return known;
  return `${visibleName(nickname)} (${known})`;
}

/** The name of a group, safe to show. */
export function groupName({ id, state }: Pick<Group, 'id' | 'state'>): string {
  return state === undefined ? shortId(id) : visibleName(state.name);
}
