/** What relays say of an account before a device is set up for it (03 §10, §11.2). */
import type { AccountDeviceState, FinalRoute } from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { Core } from '../core.ts';
import {
  activeRelays,
  ClientError,
  isClientError,
  isRefusal,
  resolveOwnState,
  resolveRouteAt,
  usableRoute,
} from '../taken.ts';

/** Relays that must say that they know no route, if that is not most of the registry. */
const enoughWithoutRoute = 8;
/** Relays that are asked at once. */
const askedAtOnce = 4;

interface Question {
  readonly account: string;
  readonly signal: AbortSignal;
}

/**
 * Asks the relays of the registry for the route of an account. `undefined` if there is none: more than
 * half of the relays say so, or eight. A wrong "none" would cost an account all its devices, so one
 * relay's word is not enough, and one that does not answer says nothing.
 *
 * @param options.first a relay to ask alone before the others
 * @param options.isOwnKey whether the key was drawn in this store: then those that answer decide
 * @throws ClientError `no_relay` if too few relays answered, and what the only relay answered
 */
export async function findRoute(
  core: Core,
  options: Question & {
    readonly first: string | undefined;
    readonly shuffle: <T>(items: T[]) => T[];
    readonly isOwnKey: boolean;
  },
): Promise<FinalRoute | undefined> {
  const { account, first, shuffle, isOwnKey, signal } = options;
  const active = (await activeRelays(core.registry, { signal })).map((entry) => entry.relay_id);
  const others = shuffle(active.filter((relayId) => relayId !== first));
  const order = first === undefined ? others : [first, ...others];
  const failures: unknown[] = [];
  let without = 0;
  for (let at = 0; at < order.length && without < enoughWithoutRoute; ) {
    const asked = order.slice(at, at + (at === 0 ? 1 : askedAtOnce));
    at += asked.length;
    const answers = await Promise.allSettled(
      asked.map((relayId) => routeKnownTo(core, relayId, { account, signal })),
    );
    signal.throwIfAborted();
    for (const answer of answers) {
      if (answer.status === 'rejected') failures.push(answer.reason);
      else if (answer.value !== undefined) return answer.value;
      else without += 1;
    }
  }
  const unforeseen = failures.find((error) => !isClientError(error));
  if (unforeseen !== undefined) throw unforeseen;
  // A route that was verified earlier proves that the account exists.
  const known = await core.store.read((tx) => usableRoute(core, tx, account));
  if (known !== undefined) return known;
  const enough = Math.min(enoughWithoutRoute, Math.floor(active.length / 2) + 1);
  if (without >= (isOwnKey ? 1 : enough)) return undefined;
  const [cause] = failures;
  if (without === 0 && failures.length === 1) throw cause;
  throw new ClientError(
    'no_relay',
    `${without} of ${active.length} relays know no account of this key: try ` +
      'again; if it is new, or all its devices are lost, pass `recover`',
    { cause },
  );
}

/** Asks one relay for the account's route; `undefined` if it knows none. */
async function routeKnownTo(
  core: Core,
  relayId: string,
  question: Question,
): Promise<FinalRoute | undefined> {
  try {
    return await resolveRouteAt(core, relayId, question);
  } catch (error) {
    if (isRefusal(error, 'not_found', 'route_not_found')) return undefined;
    throw error;
  }
}

/**
 * Asks a relay whether it is the account's home, or knows another one, over a session of the account.
 *
 * @returns the state that is in force there, `elsewhere`, or `undefined` if it knows of no account
 */
export async function findState(
  core: Core,
  connection: RelayConnection,
  question: Question,
): Promise<AccountDeviceState | 'elsewhere' | undefined> {
  try {
    return await resolveOwnState(core, connection, question);
  } catch (error) {
    if (isRefusal(error, 'route_stale')) return 'elsewhere';
    if (isRefusal(error, 'not_found', 'route_not_found', 'target_not_local')) return undefined;
    throw error;
  }
}
