import { accounts } from './accounts/index.ts';
import { auth } from './auth/index.ts';
import { channels } from './channels/index.ts';
import { groups } from './groups/index.ts';
import { messages } from './messages/index.ts';
import { identityMigration } from './storage/identity.ts';
import { moveMigration } from './storage/move/mark.ts';
import type { Migration } from './storage/types.ts';
import type { Subject } from './subject.ts';

/** The subjects that store something. */
export const storedSubjects: readonly Subject[] = [auth, accounts, messages, groups, channels];

/** Every migration of a relay's database: the only list. */
export const relayMigrations: readonly Migration[] = [
  identityMigration,
  moveMigration,
  ...storedSubjects.flatMap((subject) => subject.migrations),
];
