/** Text with its media type: in direct messages, group messages and channel posts (04 §8). */
import { badRequest } from '../errors.ts';
import { checkPart, checkSchema, checkText, memberPath, type Static, Type } from '../schema.ts';
import { checkMediaType, parseMediaType } from './media-type.ts';

/** Source text and the media type it is written in. */
export const MessageBody = Type.Object({ content_type: Type.String(), text: Type.String() });
export type MessageBody = Static<typeof MessageBody>;

/**
 * Checks a body: media type, no charset but UTF-8, text that is not only white space. An unknown
 * format is accepted.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkMessageBody(value);
 * console.log(value.text);
 */
export function checkMessageBody(value: unknown, path = ''): asserts value is MessageBody {
  checkSchema(MessageBody, value, path);
  checkPart(value, path);
  const { parameters } = checkMediaType(value.content_type, memberPath(path, 'content_type'));
  for (const parameter of parameters) {
    if (parameter.name === 'charset' && parameter.value.toLowerCase() !== 'utf-8') {
      throw badRequest(memberPath(path, 'content_type'), 'charset is not utf-8');
    }
  }
  checkText(value.text, { allowEmpty: false }, memberPath(path, 'text'));
}

/**
 * Returns how a client shows a body's text: as CommonMark 0.31.2, or as it is. `unknown` is shown
 * as plain text too; it creates no attachment references (04 §8, §8.1).
 *
 * @example
 * bodyFormat('text/markdown; variant=CommonMark'); // 'commonmark'
 * bodyFormat('text/markdown; variant=GFM'); // 'unknown'
 */
export function bodyFormat(contentType: string): 'plain' | 'commonmark' | 'unknown' {
  const media = parseMediaType(contentType);
  if (media?.essence === 'text/plain') return 'plain';
  if (media?.essence !== 'text/markdown') return 'unknown';
  const variants = media.parameters.filter(({ name }) => name === 'variant');
  const known = variants.every(({ value }) => value.toLowerCase() === 'commonmark');
  return known ? 'commonmark' : 'unknown';
}
