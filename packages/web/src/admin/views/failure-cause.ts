/** Why a relay cannot be reached, in a sentence. */

/** What is found in errors of sockets, names and certificates, and what it means. */
const causes: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'Nothing listens at its address: it does not run, or has another port.'],
  [/ENOTFOUND|EAI_AGAIN/, 'Its host name is not found.'],
  [/EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL/, 'There is no way to its address from here.'],
  [/ECONNRESET|EPIPE|socket hang up/i, 'It ended the connection.'],
  [/ETIMEDOUT|time.?out|timed out|deadline/i, 'It does not answer in time.'],
  [/certificate|CERT_|self.signed/i, 'Its certificate is not accepted.'],
  [/no address/i, 'It has no address in its descriptor or in the registry.'],
];

/**
 * Returns why a relay fails, as far as the error says.
 *
 * @example
 * causeOf('connect ECONNREFUSED 192.0.2.7:443'); // 'Nothing listens at its address: …'
 */
export function causeOf(error: string): string {
  const found = causes.find(([pattern]) => pattern.test(error));
  return found?.[1] ?? 'It cannot be reached, or does not answer as a relay does.';
}
