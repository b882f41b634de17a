/**
 * A value as people may see it, in a terminal or an error: what may be a password or a token is
 * not in it, however badly it was written.
 */
export function redact(value: unknown): string {
  const text = JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? withoutSecrets(part) : part,
  );
  return text ?? 'none';
}

/** A password that was not percent-encoded may hold anything: rather too much goes than too little. */
function withoutSecrets(text: string): string {
  return (
    text
      .replace(/(:\/\/[^\s/:@]*):.*@/s, '$1:[secret]@')
      .replace(/^([^\s/:@]*):(?!\/\/)\S*@/, '$1:[secret]@')
      // A user alone is a token, except for PostgreSQL.
      .replace(/^(?!postgres)(\w+:\/\/)[^:]*@/, '$1[secret]@')
      .replace(/((?:^|[?&\s])[^=&?\s]*(?:pass|%)[^=&?\s]*\s*=).*/is, '$1[secret]')
  );
}

/** What {@link isServerUrl} asks for. */
export const serverUrl = 'a URL with / ? # @ in its password as %2F %3F %23 %40';

/**
 * Whether a text is the URL of a server. A password that is not percent-encoded may end the host
 * before its time; the rest of it, up to the `@`, would be taken for a path.
 */
export function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, searchParams, hash } = new URL(text);
  const names = [...searchParams.keys()].join();
  return hash === '' && !pathname.includes('@') && !names.includes('@');
}
