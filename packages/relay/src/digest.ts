import { hash } from 'node:crypto';

/** SHA-256 of a text's UTF-8, base64url. Identifies stored texts; never sent to a client. */
export function digest(text: string): string {
  // One call: a hash object has memory of its own, and collecting it costs more than a short hash.
  return hash('sha256', text, 'base64url');
}
