/** Which targets of links may be followed (04 §8, 06 §10.3). */
import { isHashReference } from './hash-reference.ts';

/**
 * Classifies a target: a web address, one of the message's own attachments, or blocked. Scripts and
 * every other scheme are blocked, and `ni:` is never passed to the system.
 *
 * @example
 * targetKind('https://example.com/'); // 'web'
 * targetKind('javascript:alert(1)'); // 'blocked'
 */
export function targetKind(uri: string): 'web' | 'attachment' | 'blocked' {
  if (isHashReference(uri)) return 'attachment';
  return /^(?:https?:\/\/|mailto:)[^\s\u0000-\u001f]+$/i.test(uri) ? 'web' : 'blocked';
}
