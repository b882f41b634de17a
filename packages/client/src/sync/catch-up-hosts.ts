/**
 * Catching up everything that hosts have: each host on its own and beside the others, so that none
 * can hold up what another one tells (05 §17.1).
 */
import { catchUpChannels } from '../channels/catch-up.ts';
import { channelRows } from '../channels/rows.ts';
import type { AccountCore } from '../core.ts';
import { type ClientError, isClientError } from '../errors.ts';
import type { AccountEvent } from '../events.ts';
import type { Scope } from '../follow/follow-relay.ts';
import { catchUpGroups } from '../groups/catch-up.ts';
import { groupRows } from '../groups/rows.ts';
import { endless, type Visit, visiting } from './budget.ts';
import { isSilence } from './host-calls.ts';
import { together } from './merge.ts';

/** One host while it is read. */
export class HostVisit implements Visit {
  readonly host: string;
  readonly signal: AbortSignal;
  readonly isOver: () => boolean;
  readonly #isHome: boolean;
  /** Whoever asked for all of it; the visit itself may end earlier. */
  readonly #asker: AbortSignal;
  #silence: ClientError | undefined;

  constructor(
    place: { readonly host: string; readonly isHome: boolean },
    { signal, isOver }: Visit,
    asker: AbortSignal,
  ) {
    this.host = place.host;
    this.#isHome = place.isHome;
    this.signal = signal;
    this.isOver = isOver;
    this.#asker = asker;
  }

  /** A host that did not answer just now is not asked again for each of its groups. */
  checkAnswers(): void {
    if (this.#silence !== undefined) throw this.#silence;
  }

  /**
   * What failed for one group or channel of it.
   * @throws whatever concerns more than that: an abort, a silent home relay, a fault of the program
   */
  failureOf(error: unknown): ClientError {
    this.#asker.throwIfAborted();
    if (!isClientError(error)) throw error;
    if (isSilence(error)) {
      if (this.#isHome) throw error;
      this.#silence = error;
    }
    return error;
  }
}

/**
 * Reads what hosts have, and sends what waits for it.
 *
 * @param scope.isTimed whether each host gets a limited time
 * @param scope.but a host that is left out
 * @throws ClientError where the home relay answers nothing, once the other hosts were read
 */
export async function* catchUpHosts(
  core: AccountCore,
  signal: AbortSignal,
  scope: Omit<Scope, 'home'> & { readonly isTimed: boolean; readonly but?: string | undefined },
): AsyncGenerator<readonly AccountEvent[]> {
  const { relayId: homeId } = await core.home();
  const hosts = scope.host === undefined ? await allHosts(core) : [scope.host];
  const works = hosts
    .filter((host) => host !== scope.but)
    .map((host) => (either: AbortSignal) => {
      const read = (visit: Visit) =>
        readHost(core, new HostVisit({ host, isHome: host === homeId }, visit, either), scope);
      return scope.isTimed ? visiting(core, either, read) : read(endless(either));
    });
  yield* together<readonly AccountEvent[]>(signal, works);
}

async function* readHost(
  core: AccountCore,
  visit: HostVisit,
  { groups, channels }: Omit<Scope, 'home'>,
): AsyncGenerator<readonly AccountEvent[]> {
  yield* catchUpGroups(core, visit, groups);
  yield* catchUpChannels(core, visit, channels);
}

/** Every relay that hosts something this device knows of. */
async function allHosts({ store }: AccountCore): Promise<string[]> {
  return await store.read(async (tx) => {
    const rows = [...(await groupRows(tx)), ...(await channelRows(tx))];
    return [...new Set(rows.map(({ relay_id }) => relay_id))];
  });
}
