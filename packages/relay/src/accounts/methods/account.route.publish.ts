import {
  type AccountDeviceState,
  type AccountRoute,
  badRequest,
  checkRoute,
  checkRouteDraft,
  type FinalRoute,
  ProtocolError,
  routeDraftSignatures,
  routeRelayInput,
} from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import { type Handler, type HandlerResult, JsonText } from '../../dispatch/handler.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { publicationNotRecorded } from '../../observability/peer-events.ts';
import { mayRegister, registrations, useRight } from '../../registration/index.ts';
import type { Reader, Writer } from '../../storage/types.ts';
import { countArrival } from '../arrivals.ts';
import { activateState, devicesFrom, wakeDeviceJobs } from '../devices.ts';
import { confirmHome, knownRoute } from '../home.ts';
import { endAnnouncement, readPreviousRelay } from '../own-route-store.ts';
import { publishDelay } from '../publish-times.ts';
import { markPublished } from '../route-value-store.ts';
import { checkTime, isRepeatedRoute, isStillHome, usableState } from '../rules.ts';
import { readStaged } from '../staged-store.ts';
import { deleteProfile, type KnownRoute, readRoute, readState, wasEverHere } from '../store.ts';
import { ownRoutesJobName, storeRoute } from '../store-route.ts';

/** `account.route.publish` (03 section 9). */
export const accountRoutePublish: Handler<'account.route.publish'> = async (context, call) => {
  const { network, clock, identity, limits, registration, registryStatus } = context;
  const { storage, verifier } = context;
  const { params: draft } = call;
  const { account } = draft;
  const now = clock.now();
  checkRouteDraft(network, draft);
  if (draft.relay_id !== identity.relayId) throw badRequest('relay_id', 'is not this relay');
  if (account !== call.session?.account) {
    throw new ProtocolError('forbidden', 'route of another account than the calling one');
  }
  checkTime(draft.updated_at, now, { ahead: limits.futureTolerance });
  if (draft.expires_at <= now) throw badRequest('expires_at', 'has passed');
  await verifier.verify(routeDraftSignatures(network, draft), 'route');
  if (!(await registryStatus.isActive())) {
    throw new ProtocolError(
      'temporarily_unavailable',
      'the registry does not list this relay as active: try another relay',
    );
  }
  const isAnswered = await lookUpUnknown(context, account, `address ${call.address}`);
  const route = cosign(context, draft);
  const submitted = knownRoute(network, route);
  // Accounts that come to this relay are counted for each address.
  const aggregates = [`account:${account}`, `address:${call.address}`];
  if (registration.mode !== 'open') aggregates.push(registrations);
  const publish = async (tx: Writer) => {
    const known = await readRoute(tx, account);
    const wasHere = await wasEverHere(tx, account);
    const notices = await activate(context, tx, { account, known, now });
    const leaving =
      known?.relayId === identity.relayId ? await readPreviousRelay(tx, account) : known?.relayId;
    // The same route with another signature of the account is a repeat, but the answer may differ
    // from the submission by the relay's signature only: the submitted draft is co-signed.
    if (isRepeatedRoute(submitted, known) && known !== undefined && covers(known, draft)) {
      return { text: known.text, notices, leaving };
    }
    if (!wasHere) await useRight(context, tx, { account, now });
    if (known?.relayId !== identity.relayId) {
      await countArrival(context, tx, { address: call.address, now });
    }
    const at = now + limits.remoteRetryFirst;
    const announce = leaving === undefined ? undefined : { relayId: leaving, at };
    // The account may have been at home at a relay that this one does not know of.
    const isConfirmed = isStillHome(known, identity.relayId) || (known === undefined && isAnswered);
    // Sent again soon if this process ends before enough relays have it.
    const publishAt = at;
    const change = { known, relayId: identity.relayId, now, announce, isConfirmed, publishAt };
    await storeRoute(tx, account, submitted, change);
    return { text: submitted.text, notices, leaving, isConfirmed };
  };
  const { policy } = context;
  let published = await storage.write(aggregates, async (tx) => {
    const mustAsk = policy.isOn && (await isNewcomer(context, tx, { account, now }));
    return mustAsk ? undefined : await publish(tx);
  });
  if (published === undefined) {
    await policy.ask({ ask: 'account', account, address: call.address });
    published = await storage.write(aggregates, publish);
  }
  if (published.isConfirmed === false) context.jobs.wake(ownRoutesJobName);
  return await replicate(context, published);
};

/**
 * Tells whether an account that may come to be at home here was never before. It is asked in the
 * transaction that would let the account in, since state and right may come at any moment.
 */
async function isNewcomer(
  context: RelayContext,
  tx: Reader,
  { account, now }: { readonly account: string; readonly now: number },
): Promise<boolean> {
  return (
    !(await wasEverHere(tx, account)) &&
    (await readStaged(tx, account, now)) !== undefined &&
    (await mayRegister(context, tx, { account, now }))
  );
}

/**
 * Asks the network for an account that is unknown here: a higher route refuses the submitted one,
 * and the relay that the account leaves is sent it. If nothing is found the account may move all the
 * same (07 §B12).
 *
 * @returns whether every relay answered that was to be asked; not before they are known
 */
async function lookUpUnknown(
  context: RelayContext,
  account: string,
  asker: string,
): Promise<boolean> {
  const { routeDirectory, storage } = context;
  const known = await storage.read((tx) => readRoute(tx, account));
  if (known !== undefined) return true;
  if (!routeDirectory.hasRelays) return routeDirectory.isAlone;
  try {
    return (await confirmHome(context, account, asker)).missed.length === 0;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return false;
  }
}

/** Replicates the committed route, then answers (07 §B12). Without enough replicas it is in force. */
async function replicate(
  context: RelayContext,
  published: {
    readonly text: string;
    readonly notices: readonly Notice[];
    readonly leaving: string | undefined;
  },
): Promise<HandlerResult> {
  const { bus, clock, jobs, routeDirectory, storage } = context;
  const { text, notices, leaving } = published;
  wakeDeviceJobs(context, notices);
  if (notices.length > 0) bus.publish(notices);
  const route = parseJson(text) as unknown as FinalRoute;
  const owner = `account:${route.account}` as const;
  const { isEnough, reachedLeaving } = await routeDirectory.replicate(route, leaving);
  if (leaving !== undefined) {
    if (reachedLeaving) {
      await storage.write(owner, (tx) => endAnnouncement(tx, route), { keepsFacts: true });
    }
    // It is sent the route again until it has it; the move does not wait for that.
    else jobs.wake(ownRoutesJobName);
  }
  if (!isEnough) {
    jobs.wake(ownRoutesJobName);
    throw new ProtocolError(
      'temporarily_unavailable',
      'the route is in force, but too few relays stored it: publish it again',
    );
  }
  // Before the registry was read, no relay was sent it: the job does that soon.
  if (!routeDirectory.hasRelays && !routeDirectory.isAlone) return { result: new JsonText(text) };
  const publishAt = clock.now() + publishDelay(context, route.account);
  try {
    await storage.write(owner, (tx) => markPublished(tx, route, { publishAt }), {
      keepsFacts: true,
    });
  } catch (error) {
    // The route is in force and replicated; it is sent once more.
    publicationNotRecorded(context, error);
  }
  return { result: new JsonText(text) };
}

/** Makes the final document; it leaves this relay only after the commit. */
function cosign({ network, identity }: RelayContext, draft: AccountRoute): FinalRoute {
  const signature = identity.sign(routeRelayInput(network, draft));
  const route = { ...draft, relay_signature: signature };
  checkRoute(network, route);
  return route;
}

/** Tells whether a known document is this draft, co-signed. */
function covers(known: KnownRoute, draft: AccountRoute): boolean {
  // The account was removed here since.
  if (known.text === '') return false;
  const { account_signature } = parseJson(known.text) as unknown as FinalRoute;
  return account_signature === draft.account_signature;
}

/** Puts the device state of the route into force, in the route's own transaction. */
async function activate(
  { network, identity }: RelayContext,
  tx: Writer,
  {
    account,
    known,
    now,
  }: { readonly account: string; readonly known: KnownRoute | undefined; readonly now: number },
): Promise<Notice[]> {
  const { state, staged } = usableState({
    known,
    relayId: identity.relayId,
    stored: await readState(tx, account),
    staged: await readStaged(tx, account, now),
  });
  // A profile from before the account moved away may be older than the one it has now elsewhere.
  if (!isStillHome(known, identity.relayId)) await deleteProfile(tx, account);
  if (!staged) return [];
  const devices = devicesFrom(network, parseJson(state.text) as unknown as AccountDeviceState);
  return await activateState(tx, account, { state, devices, now });
}
