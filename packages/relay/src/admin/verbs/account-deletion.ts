/** `account manages` and `account delete`: what depends on an account, and removing it. */
import { AccountId, Type } from '@posthouse/protocol';
import { deleteAccount } from '../delete-account.ts';
import { readManaged } from '../inventory/managed.ts';
import { defineVerb, type Verb } from '../verb.ts';

/** Groups and channels that are named; the account may have more. */
const mostManaged = 1_000;

const manages = defineVerb({
  noun: 'account',
  name: 'manages',
  description:
    'Lists the open groups and channels here that an account owns, administers or moderates, which ' +
    `stay without it if it is deleted: at most ${mostManaged}, more is true if there are others.`,
  params: Type.Object({ account: AccountId }),
  changes: false,
  run: async ({ storage }, { account }) => await readManaged(storage, account, mostManaged),
});

const deletion = defineVerb({
  noun: 'account',
  name: 'delete',
  description:
    'Removes an account that is at home here: devices, profile, timeline, attachments. Revisions and ' +
    'sequences stay, so that none is given twice. Its groups and channels stay, and are in manages.',
  params: Type.Object({ account: AccountId }),
  changes: true,
  subject: ({ account }) => account,
  run: async ({ storage, clock, config, progress, signal }, { account }) => {
    const options = { now: clock.now(), limits: config.limits, progress, signal };
    const deleted = await deleteAccount(storage, account, options);
    const { items, more } = await readManaged(storage, account, mostManaged);
    return { account, ...deleted, manages: items, manages_more: more };
  },
});

export const accountDeletionVerbs: readonly Verb[] = [manages, deletion];
