/** Which accounts may come to be at home at this relay (02 §9.4, 03 §4.3). */
import { ProtocolError } from '@posthouse/protocol';
import { customerNetwork } from '../config/ip-address.ts';
import type { Home, RegistrationMode, RelayContext } from '../context.ts';
import type { AggregateKey, Reader, Storage, Writer } from '../storage/types.ts';
import {
  countOfNetwork,
  deleteOfLargestNetwork,
  deleteRequest,
  disallowAccount,
  fullSince,
  fullSinceOfAddress,
  insertRequest,
  isAllowed,
  isWaiting,
  listRequests,
} from './account-store.ts';
import { inviteDigest } from './invite-code.ts';
import {
  countUse,
  deleteClaim,
  deleteOldClaims,
  isUsable,
  readClaim,
  writeClaim,
} from './invite-store.ts';

/** What writes of invites, of accounts that are let in and of requests are serialized by. */
export const registrations: AggregateKey = 'registration';

/** An account that comes to be at home here. */
interface Newcomer {
  readonly account: string;
  /** Unix seconds. */
  readonly now: number;
}

/** Tells whether an account that was never at home here may come to be. */
export async function mayRegister(
  { registration }: Pick<RelayContext, 'registration'>,
  tx: Reader,
  { account, now }: Newcomer,
): Promise<boolean> {
  const { mode } = registration;
  if (mode === 'open') return true;
  if (mode === 'closed') return false;
  if (await isAllowed(tx, account)) return true;
  if (mode !== 'invite') return false;
  const invite = await readClaim(tx, account);
  return invite !== undefined && (await isUsable(tx, invite, now));
}

/**
 * Uses up the right of an account that was never at home here, in the transaction that stores its
 * route. The write must hold {@link registrations}, unless the mode is `open`.
 *
 * @throws ProtocolError `state_conflict` if the right ended since the device state was staged
 */
export async function useRight(
  { registration }: Pick<RelayContext, 'registration'>,
  tx: Writer,
  { account, now }: Newcomer,
): Promise<void> {
  const { mode } = registration;
  if (mode === 'open') return;
  const invite = mode === 'invite' ? await readClaim(tx, account) : undefined;
  if (mode !== 'closed' && (await disallowAccount(tx, account))) {
    await deleteClaim(tx, account);
    return;
  }
  if (invite === undefined || !(await countUse(tx, invite, now))) {
    throw new ProtocolError(
      'state_conflict',
      `the right to be at home here ended: ${adviceOf[mode]}`,
    );
  }
  await deleteClaim(tx, account);
}

/** What an account without a right can do. */
const adviceOf: Readonly<Record<RegistrationMode, string>> = {
  open: 'try again',
  invite: 'ask the operator of this relay for an invite code',
  approval: 'the operator of this relay has to let the account in; try again later',
  list: 'ask the operator of this relay to let the account in',
  closed: 'this relay takes no new accounts; choose another one',
};

/**
 * Makes the error for an account that may not come to be at home here. In mode `approval` its request
 * is stored first.
 *
 * @returns `route_stale` if it is known to be at home elsewhere, otherwise `target_not_local`
 * @throws ProtocolError `rate_limited` if there is no room for the request
 */
export async function refuseNewcomer(
  context: RelayContext,
  newcomer: { readonly account: string; readonly address: string; readonly home: Home },
): Promise<ProtocolError> {
  const { mode } = context.registration;
  if (mode === 'approval') await storeRequest(context, newcomer);
  const code = newcomer.home.kind === 'elsewhere' ? 'route_stale' : 'target_not_local';
  return new ProtocolError(code, `the account cannot be at home here: ${adviceOf[mode]}`);
}

async function storeRequest(
  { clock, limits, storage }: RelayContext,
  { account, address }: { readonly account: string; readonly address: string },
): Promise<void> {
  const now = clock.now();
  const fullUntil = await storage.write(registrations, async (tx) => {
    // The operator may have let it in meanwhile.
    if ((await isWaiting(tx, account)) || (await isAllowed(tx, account))) return undefined;
    const ofAddress = await fullSinceOfAddress(
      ...([tx, address, limits.registrationRequestsPerAddress] as const),
    );
    if (ofAddress !== undefined) return ofAddress + limits.registrationRequestPeriod;
    const network = customerNetwork(address);
    const place = 1 + (await countOfNetwork(tx, network));
    const since = await fullSince(tx, limits.registrationRequests);
    // A network with fewer requests than another has room, so that none takes all of it.
    if (since !== undefined && !(await deleteOfLargestNetwork(tx, place))) {
      return since + limits.registrationRequestPeriod;
    }
    await insertRequest(tx, { account, address, askedAt: now, network, place });
    return undefined;
  });
  if (fullUntil === undefined) return;
  throw new ProtocolError('rate_limited', 'too many accounts wait for the operator of this relay', {
    data: { retry_after: Math.max(1, fullUntil - now) },
  });
}

/** Requests that are read, and removed, at once. */
const batchSize = 500;

/**
 * Removes the requests that were made from some addresses.
 *
 * @param isMeant is given the address of each request, as `addressKey` writes it
 * @returns how many they were
 */
export async function rejectFrom(
  storage: Storage,
  isMeant: (address: string) => boolean,
): Promise<number> {
  let rejected = 0;
  let after: readonly [number, string] = [-1, ''];
  for (;;) {
    const from = after;
    const read = await storage.read((tx) => listRequests(tx, batchSize, from));
    const meant = read.filter(({ address }) => isMeant(address));
    if (meant.length > 0) {
      rejected += await storage.write(registrations, async (tx) => {
        let removed = 0;
        for (const { account } of meant) removed += (await deleteRequest(tx, account)) ? 1 : 0;
        return removed;
      });
    }
    const last = read.at(-1);
    if (last === undefined || read.length < batchSize) return rejected;
    after = [last.askedAt, last.account];
  }
}

/** Whether an invite code is taken; `undefined` if this relay asks for none. */
export interface OfferedInvite {
  /** What is stored of a code that can be used; `undefined` for any other. */
  readonly digest: string | undefined;
}

/**
 * Reads the invite of a code that came with a sign-in; `undefined` if none came, or this relay asks
 * for none.
 */
export async function offeredInvite(
  { clock, registration, storage }: RelayContext,
  code: unknown,
): Promise<OfferedInvite | undefined> {
  if (code === undefined || registration.mode !== 'invite') return undefined;
  const digest = inviteDigest(code);
  const isGood =
    digest !== undefined && (await storage.read((tx) => isUsable(tx, digest, clock.now())));
  return { digest: isGood ? digest : undefined };
}

/**
 * Stores that an account showed an invite. Above `limits.claimsOfInvite` the invite's oldest claim
 * goes: its account shows the code again. The write must hold {@link registrations}.
 */
export async function claimInvite(
  { limits }: Pick<RelayContext, 'limits'>,
  tx: Writer,
  claim: { readonly account: string; readonly invite: string; readonly now: number },
): Promise<void> {
  await writeClaim(tx, claim);
  await deleteOldClaims(tx, claim.invite, limits.claimsOfInvite);
}
