/** Ends what must not outlive a restore: the statements of `auth` in `StoredModule.restored`. */
export const restored: readonly string[] = [
  // Sessions that were ended after the backup would be valid again.
  'DELETE FROM auth_sessions',
  // A challenge that was answered after the backup could be answered once more.
  'DELETE FROM auth_challenges',
];
