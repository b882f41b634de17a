/** `account`: which accounts the operator lets in (03 §4.3). */
import { AccountId, badRequest, ProtocolError, Type } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { wasEverHere } from '../../accounts/index.ts';
import { networkOf } from '../../blocks/index.ts';
import {
  allowAccount,
  deleteRequest,
  disallowAccount,
  isWaiting,
  listAllowed,
  listRequests,
  registrations,
  rejectFrom,
} from '../../registration/index.ts';
import { firstByTime, pageParams, readPage } from '../pages.ts';
import { defineVerb, type Verb, type VerbTools } from '../verb.ts';

/** What each verb about one account has in common. */
const aboutOne = {
  noun: 'account',
  params: Type.Object({ account: AccountId }),
  changes: true,
  subject: ({ account }: { readonly account: string }, { is_here }: JsonObject) =>
    is_here === true ? undefined : account,
} as const;

const allow = defineVerb({
  ...aboutOne,
  name: 'allow',
  description: 'Lets an account in, unless it is here already (is_here).',
  run: async (tools, { account }) => {
    const isHere = await tools.storage.read((tx) => wasEverHere(tx, account));
    if (!isHere) await letIn(tools, account);
    return { account, is_here: isHere };
  },
});

const disallow = defineVerb({
  ...aboutOne,
  name: 'disallow',
  description: 'Lets an account in no longer, if it is not here yet.',
  run: async ({ storage }, { account }) => {
    const wasAllowed = await storage.write(registrations, (tx) => disallowAccount(tx, account));
    if (wasAllowed) return { account };
    throw notFound(`${account} is not let in: see posthouse account allowed`);
  },
});

const approve = defineVerb({
  ...aboutOne,
  name: 'approve',
  description: 'Lets an account in that waits for it.',
  run: async (tools, { account }) => {
    const waits = await tools.storage.read((tx) => isWaiting(tx, account));
    if (!waits) throw notFound(`${notWaiting(account)}, or use posthouse account allow`);
    await letIn(tools, account);
    return { account };
  },
});

const reject = defineVerb({
  noun: 'account',
  name: 'reject',
  description:
    'Removes an account from those that wait, or all that asked from an address or network (rejected ' +
    'is their number); they may ask again.',
  params: Type.Object({
    account: Type.Optional(AccountId),
    address: Type.Optional(Type.String({ maxLength: 64 })),
  }),
  changes: true,
  subject: ({ account }, { address, rejected }) => {
    if (account !== undefined) return account;
    return rejected === 0 ? undefined : { address: String(address) };
  },
  run: async ({ storage }, { account, address }) => {
    if ((account === undefined) === (address === undefined)) {
      throw badRequest('', 'give one of account and address');
    }
    if (address !== undefined) {
      const { network, holds } = networkOf(address);
      return { address: network, rejected: await rejectFrom(storage, holds) };
    }
    const id = account as string;
    const wasWaiting = await storage.write(registrations, (tx) => deleteRequest(tx, id));
    if (wasWaiting) return { account: id };
    throw notFound(notWaiting(id));
  },
});

const allowed = defineVerb({
  noun: 'account',
  name: 'allowed',
  description: 'Lists the accounts that are let in and are not here yet, the newest last.',
  params: Type.Object(pageParams),
  changes: false,
  run: ({ storage }, params) =>
    readPage({
      params,
      start: firstByTime,
      read: (after, limit) => storage.read((tx) => listAllowed(tx, limit, after)),
      positionOf: ({ allowedAt, account }) => [allowedAt, account],
      wireOf: ({ account, allowedAt }) => ({ account, allowed_at: allowedAt }),
    }),
});

const waiting = defineVerb({
  noun: 'account',
  name: 'waiting',
  description: 'Lists the accounts that wait for approval, the newest last.',
  params: Type.Object(pageParams),
  changes: false,
  run: ({ storage }, params) =>
    readPage({
      params,
      start: firstByTime,
      read: (after, limit) => storage.read((tx) => listRequests(tx, limit, after)),
      positionOf: ({ askedAt, account }) => [askedAt, account],
      wireOf: ({ account, address, askedAt }) => ({ account, address, asked_at: askedAt }),
    }),
});

/** @throws ProtocolError `state_conflict` if too many are let in */
async function letIn({ storage, clock, config }: VerbTools, account: string): Promise<void> {
  const { allowedAccounts } = config.limits;
  const allowedAt = clock.now();
  const hasRoom = await storage.write(registrations, (tx) =>
    allowAccount(tx, { account, allowedAt }, allowedAccounts),
  );
  if (hasRoom) return;
  throw new ProtocolError(
    'state_conflict',
    `${allowedAccounts} accounts are let in and not here yet: disallow some, or raise limits.allowedAccounts`,
  );
}

const notWaiting = (account: string) => `${account} is not waiting: see posthouse account waiting`;

const notFound = (message: string) => new ProtocolError('not_found', message);

export const accountVerbs: readonly Verb[] = [allow, disallow, allowed, approve, reject, waiting];
