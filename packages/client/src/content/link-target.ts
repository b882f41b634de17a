/** What a target of a link or image may become (04 §8, 06 §10.3). */
import { targetKind } from '@posthouse/protocol';

/** An address that may be followed, and the host it leads to. */
export interface SafeLink {
  readonly url: string;
  readonly host: string;
}

const maxUrlLength = 8192;

/**
 * Judges a target of a body. The result is all ASCII: hosts in the form that is looked up, the rest
 * percent-encoded, so that no character of it can reorder or hide what stands next to it. User names
 * are refused, because `https://bank.example@evil.example/` is read as the wrong host; headers of
 * `mailto:` are dropped, because mail programs attach files by them.
 *
 * @returns `undefined` for what must not be followed
 */
export function safeLink(target: string): SafeLink | undefined {
  if (target.length > maxUrlLength || targetKind(target) !== 'web') return undefined;
  // CommonMark encodes a backslash in its output; a browser would read one as a slash.
  const written = target.replaceAll('\\', '%5C');
  const url = URL.canParse(written) ? new URL(written) : undefined;
  if (url === undefined || url.username !== '' || url.password !== '') return undefined;
  if (url.protocol === 'mailto:') return mailLink(url.pathname);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  // The URL parser encodes everything else; a text that it leaves is none of ours to show.
  return isAscii(url.href) && url.host !== '' ? { url: url.href, host: url.host } : undefined;
}

/** One recipient; anything else, lists of recipients included, is refused. */
function mailLink(recipient: string): SafeLink | undefined {
  const [, local, domain] =
    /^([\w!#$&'*+./=?^`{|}~-]{1,64})@([\w.-]{1,253})$/.exec(recipient) ?? [];
  if (local === undefined || domain === undefined) return undefined;
  return { url: `mailto:${local}@${domain}`, host: domain };
}

const isAscii = (text: string) => /^[!-~]*$/.test(text);
