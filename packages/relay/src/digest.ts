import { createHash } from 'node:crypto';

/** SHA-256 of a text's UTF-8, base64url. Identifies stored texts; never sent to a client. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
