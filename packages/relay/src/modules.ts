import { accounts } from './accounts/index.ts';
import { auth } from './auth/index.ts';
import { blobMigrations } from './blobs/index.ts';
import { blocks } from './blocks/index.ts';
import { channels } from './channels/index.ts';
import type { StoredModule } from './dispatch/module.ts';
import { federationMigrations, federationRestored } from './federation/index.ts';
import { groups } from './groups/index.ts';
import { messages } from './messages/index.ts';
import { registration } from './registration/index.ts';
import { clockMigration } from './storage/clock-mark.ts';
import { identityMigration } from './storage/identity.ts';
import { moveMigration } from './storage/move/mark.ts';
import type { RestoredStep } from './storage/restored.ts';
import type { Migration } from './storage/types.ts';
import { usageMigrations } from './usage/index.ts';

/** The modules that have tables. */
export const storedModules: readonly StoredModule[] = [
  registration,
  auth,
  accounts,
  messages,
  groups,
  channels,
  blocks,
];

/** Every migration of a relay's database: the only list. */
export const relayMigrations: readonly Migration[] = [
  identityMigration,
  moveMigration,
  clockMigration,
  ...storedModules.flatMap((module) => module.migrations),
  ...federationMigrations,
  ...blobMigrations,
  ...usageMigrations,
];

/** What each module does when the database was put back to an earlier state (`posthouse restored`). */
export const restoredStatements: readonly RestoredStep[] = [
  ...storedModules.flatMap((module) => module.restored),
  ...federationRestored,
];
