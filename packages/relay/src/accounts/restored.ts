/** Doubts what others may have changed since a backup: the statements in `StoredModule.restored`. */
export const restored: readonly string[] = [
  // An account at home here may have moved: its route is not used until the network was asked once
  // (`home.ts`).
  `UPDATE account_routes SET checked_at = 0, held_until = -held_until
    WHERE held_until > 0 AND relay_id = (SELECT value FROM relay_facts WHERE name = 'relay')`,
  // A device of an account at home elsewhere may have been removed: its relay is asked first.
  'UPDATE remote_devices SET stale = 1, generation = generation + 1, failures = 0, next_check_at = 0',
];
