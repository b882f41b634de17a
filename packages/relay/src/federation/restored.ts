/** Doubts what a restored database has of other relays: statements for `posthouse restored`. */
export const federationRestored: readonly string[] = [
  // How long a relay has been failing decides whether an account waits for its answer: a backup does
  // not know what came after it.
  'UPDATE relays SET failing_since = NULL, failures = 0, retry_at = NULL WHERE failing_since IS NOT NULL',
];
