/** `account delete`: removes an account that is at home here. */
import { AccountId, Type } from '@posthouse/protocol';
import { deleteAccount } from '../delete-account.ts';
import { defineVerb, type Verb } from '../verb.ts';

const deletion = defineVerb({
  noun: 'account',
  name: 'delete',
  description:
    'Removes an account that is at home here: devices, profile, timeline, attachments. Revisions and ' +
    'sequences stay, so that none is given twice. Its groups and channels stay.',
  params: Type.Object({ account: AccountId }),
  changes: true,
  subject: ({ account }) => account,
  run: async ({ storage, clock, config }, { account }) => {
    const { limits } = config;
    const deleted = await deleteAccount(storage, account, { now: clock.now(), limits });
    return { account, ...deleted };
  },
});

export const accountDeletionVerbs: readonly Verb[] = [deletion];
