/** A link to a group or a channel: the SDK's one word of text, not looked at yet. */
export interface SharedLink {
  readonly kind: 'group' | 'channel';
  readonly address: string;
}

/** Characters of a text that are searched: a stranger may write many. */
const mostSearched = 16_000;

/**
 * Finds a group's or channel's address in a text: in a link of any messenger, or as it stands. The end of the address is
 * found first, so that each character is looked at a few times only, whatever the text is.
 */
export function findShared(text: string): SharedLink | undefined {
  const searched = text.slice(0, mostSearched);
  for (const found of searched.matchAll(/-(group|channel)(?::|%3A)([\w-]{1,4096})/gi)) {
    const [, kind = '', rest] = found;
    const before = searched.slice(Math.max(0, found.index - 65), found.index);
    const [word] = /\b[a-z][\w.-]{0,63}$/i.exec(before) ?? [];
    if (word === undefined) continue;
    return { kind: kind as SharedLink['kind'], address: `${word}-${kind}:${rest}` };
  }
  return undefined;
}
