/** Addresses of channels and of groups' invitations as one word of text, for links and QR codes. */
import { decodeBase64url, encodeBase64url, type Network, utf8 } from '@posthouse/protocol';
import { canonicalJson, decodeUtf8, type JsonObject, parseJson } from '@posthouse/protocol/json';

type LinkKind = 'group' | 'channel';

/** Encodes an address: service word, kind, and the canonical JSON in base64url. */
export function encodeLink(network: Network, kind: LinkKind, address: JsonObject): string {
  return `${linkPrefix(network, kind)}${encodeBase64url(utf8(canonicalJson(address)))}`;
}

/** Decodes a link; the caller checks the result. @throws Error if the text is not such a link */
export function decodeLink(network: Network, kind: LinkKind, text: string): unknown {
  const prefix = linkPrefix(network, kind);
  const word = text.trim();
  const bytes = word.startsWith(prefix) ? decodeBase64url(word.slice(prefix.length)) : undefined;
  if (bytes === undefined) throw new TypeError(`expected ${prefix}`);
  return parseJson(decodeUtf8(bytes));
}

function linkPrefix({ word }: Network, kind: LinkKind): string {
  return `${word}-${kind}:`;
}
