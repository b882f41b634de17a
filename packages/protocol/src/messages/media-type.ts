import { badRequest } from '../errors.ts';

/** A parsed media type. Type, subtype and parameter names are lowercase; values are as written. */
export interface MediaType {
  readonly type: string;
  readonly subtype: string;
  /** `type/subtype`. */
  readonly essence: string;
  /** In order of appearance; a name may occur more than once. */
  readonly parameters: readonly { readonly name: string; readonly value: string }[];
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const essence = new RegExp(`^(${token})/(${token})`);
/** Octets from 0x80 on are `obs-text`; in text they are any character from U+0080 on. */
const quoted = '"(?:[\\t !#-\\[\\]-~\\u0080-\\u{10FFFF}]|\\\\[\\t -~\\u0080-\\u{10FFFF}])*"';
/** One `;` with an optional parameter after it: RFC 9110 §5.6.6 allows empty ones. */
const parameter = new RegExp(`[ \\t]*;[ \\t]*(?:(${token})=(${token}|${quoted}))?`, 'uy');

/**
 * Parses a media type (RFC 9110 §8.3.1), quoted parameter values included.
 *
 * @returns `undefined` for text that is not a media type
 * @example
 * parseMediaType('Text/Markdown; variant="CommonMark"')?.essence; // 'text/markdown'
 * parseMediaType('markdown'); // undefined
 */
export function parseMediaType(text: string): MediaType | undefined {
  const [all, type, subtype] = essence.exec(text) ?? [];
  if (all === undefined || type === undefined || subtype === undefined) return undefined;
  const parameters: { name: string; value: string }[] = [];
  let at = all.length;
  while (at < text.length) {
    parameter.lastIndex = at;
    const match = parameter.exec(text);
    if (match === null) return undefined;
    at = parameter.lastIndex;
    const [, name, value] = match;
    if (name !== undefined && value !== undefined) {
      parameters.push({ name: name.toLowerCase(), value: unquote(value) });
    }
  }
  return {
    type: type.toLowerCase(),
    subtype: subtype.toLowerCase(),
    essence: `${type}/${subtype}`.toLowerCase(),
    parameters,
  };
}

/**
 * Parses a media type that must be one.
 * @throws ProtocolError `bad_request`
 */
export function checkMediaType(text: string, path: string): MediaType {
  const parsed = parseMediaType(text);
  if (parsed === undefined) throw badRequest(path, 'expected a media type');
  return parsed;
}

function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/gsu, '$1') : value;
}
