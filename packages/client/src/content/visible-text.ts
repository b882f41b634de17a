/** Characters of strangers' texts that mislead because they are not seen. */

/**
 * Sequences in which an invisible character belongs to what is seen: emoji with joiners, skin tones
 * and variation selectors, flags made of tags, and joiners inside words of scripts that need them.
 */
const legitimate = [
  '\\u{1F3F4}[\\u{E0030}-\\u{E0039}\\u{E0061}-\\u{E007A}]{1,8}\\u{E007F}',
  '[0-9#*]\\uFE0F\\u20E3',
  '\\p{Extended_Pictographic}[\\uFE0E\\uFE0F]?\\p{Emoji_Modifier}?(?:\\u200D\\p{Extended_Pictographic}[\\uFE0E\\uFE0F]?\\p{Emoji_Modifier}?){0,8}',
  '(?<=[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Mong}])[\\u200C\\u200D](?=[\\p{L}\\p{M}])',
].join('|');

/** White space but the space, controls, and all that has no width or is to be ignored. */
const invisible =
  '[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Cn}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u00A0\\u1680\\u2000-\\u200A\\u202F\\u205F\\u2800\\u3000]';

const inNames = new RegExp(`(${legitimate})|${invisible}`, 'gu');

/** Controls, and what reorders the text after it. Marks of direction are part of normal writing. */
const inTexts = /[\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]|(?![\n\t])\p{Cc}/gu;

const named = (character: string) =>
  `[U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;

/**
 * Makes a name of a stranger safe to stand next to other text: characters that turn the direction of
 * writing, that cannot be seen, or that begin a line are written as `[U+202E]`. Emoji, flags, and
 * joiners inside words stay. Use it for profiles, groups, channels and files. Letters of other
 * scripts that look alike stay too: an account is recognized by its ID.
 *
 * @example
 * import { visibleName } from '@posthouse/client/content';
 * visibleName('ann\u202Egnp.exe'); // 'ann[U+202E]gnp.exe'
 */
export function visibleName(name: string): string {
  return name.replace(inNames, (match, kept?: string) => kept ?? named(match));
}

/**
 * Makes a text of a stranger safe to show as a block of its own: controls, and characters that
 * reorder other text, are written as `[U+202E]`. Line feeds, tabs and marks of direction stay.
 *
 * @example
 * import { visibleText } from '@posthouse/client/content';
 * visibleText('a\r\nb\u0007'); // 'a\nb[U+0007]'
 */
export function visibleText(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(inTexts, named);
}
