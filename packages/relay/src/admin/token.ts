/** What proves that a caller, or the relay, knows the token of the admin interface. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { withoutMapping } from '../config/ip-address.ts';

/** Characters of a challenge. */
const pattern = /^[0-9a-f]{64}$/;

/** Whether a header `Authorization` has the token; takes as long for each wrong one. */
export function isAuthorized(header: string | undefined, token: string): boolean {
  return isSame(header ?? '', `Bearer ${token}`);
}

/** Whether a text is a challenge that {@link proofOf} answers. */
export function isChallenge(text: string): boolean {
  return pattern.test(text);
}

/** The relay's end of a connection, as both sides see it. */
export interface RelayEnd {
  readonly address: string | undefined;
  readonly port: number | undefined;
  /** SHA-256 of the certificate; `undefined` without TLS. */
  readonly certificate: string | undefined;
}

/**
 * Proves to a command that the relay is at the other end of this connection, before the command sends
 * the token: while the relay does not run, any user of the machine can listen on its port. The proof
 * names the relay's end, so that such a user cannot get it from another process with the same token.
 */
export function proofOf(challenge: string, token: string, end: RelayEnd): string {
  const { address = '', port = 0, certificate = 'none' } = end;
  return createHmac('sha256', Buffer.from(token, 'hex'))
    .update(`posthouse admin ${challenge} ${withoutMapping(address)} ${port} ${certificate}`)
    .digest('hex');
}

/** Compares two texts in a time that says nothing about where they differ. */
export function isSame(found: string, expected: string): boolean {
  const [left, right] = [found, expected].map((text) =>
    createHmac('sha256', 'posthouse compare').update(text).digest(),
  ) as [Buffer, Buffer];
  return timingSafeEqual(left, right);
}
