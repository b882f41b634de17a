/**
 * Formats a value for a terminal or an error message, without anything that may be a password or a
 * token, even in a malformed URL.
 */
export function redact(value: unknown): string {
  const text = JSON.stringify(value, (name, part) => {
    // Providers of nodes put keys into paths and queries.
    if (name === 'nodes') return Array.isArray(part) ? part.map(withoutPath) : withoutPath(part);
    return typeof part === 'string' ? withoutSecrets(part) : part;
  });
  return text ?? 'none';
}

function withoutPath(url: unknown): unknown {
  if (typeof url !== 'string') return url;
  return withoutSecrets(url.replace(/^([a-z]+:\/\/[^/?#]*)[/?#](?=.).*/is, '$1/[secret]'));
}

/** Replaces secrets; removes too much rather than too little, as passwords may be unencoded. */
function withoutSecrets(text: string): string {
  return (
    text
      .replace(/(:\/\/[^\s/:@]*):.*@/s, '$1:[secret]@')
      .replace(/^([^\s/:@]*):(?!\/\/)\S*@/, '$1:[secret]@')
      // A user name without password is a token, except for PostgreSQL.
      .replace(/^(?!postgres)(\w+:\/\/)[^:]*@/, '$1[secret]@')
      .replace(/((?:^|[?&\s])[^=&?\s]*(?:pass|%)[^=&?\s]*\s*=).*/is, '$1[secret]')
  );
}

/** Describes what {@link isServerUrl} accepts. */
export const serverUrl = 'a URL with / ? # @ in its password as %2F %3F %23 %40';

/**
 * Returns whether a text is a valid server URL. If a password is not percent-encoded, a part of it up
 * to the `@` would be parsed as a path; such a URL is refused.
 */
export function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, searchParams, hash } = new URL(text);
  const names = [...searchParams.keys()].join();
  return hash === '' && !pathname.includes('@') && !names.includes('@');
}
