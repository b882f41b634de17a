/** `account export`: what the relay keeps of one account, for the person. */
import { AccountId, ProtocolError, Type } from '@posthouse/protocol';
import { exportAccount } from '../export-account.ts';
import { defineVerb, type Verb } from '../verb.ts';

const exporting = defineVerb({
  noun: 'account',
  name: 'export',
  description:
    'Exports all that the relay keeps of an account, for the person: each line of the file is an item. Over HTTP ' +
    'only for callers that accept application/x-ndjson: items are lines {"item": ...} before the result.',
  params: Type.Object({ account: AccountId }),
  changes: false,
  run: async ({ emit, ...tools }, { account }) => {
    if (emit === undefined) {
      throw new ProtocolError(
        'bad_request',
        'send Accept: application/x-ndjson, for lines of items',
      );
    }
    return await exportAccount({ ...tools, emit }, account);
  },
});

export const accountExportVerbs: readonly Verb[] = [exporting];
