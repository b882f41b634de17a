import { type Finding, failed, ok, warning } from './check.ts';

/** Days before its end at which a certificate is a warning: renewal usually comes at 30. */
const soon = 14;

const day = 86_400_000;

/** Judges the end of a certificate's validity, which is in real time. */
export function validityOf(what: string, until: Date): Finding {
  const days = Math.floor((until.getTime() - Date.now()) / day);
  const date = until.toISOString().slice(0, 10);
  const cure = 'renew the certificate; a running relay reads new files by itself';
  if (days < 0) return failed(`${what}: expired on ${date}`, cure);
  const seen = `${what}: valid until ${date}, ${days} days left`;
  return days < soon ? warning(seen, cure) : ok(seen);
}
