/**
 * Catching up everything that hosts have: each host on its own and beside the others, so that none
 * can hold up what another one tells (05 §17.1).
 */
import { catchUpChannels } from '../channels/catch-up-channels.ts';
import { channelRows } from '../channels/channel-rows.ts';
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';
import { catchUpGroups } from '../groups/catch-up-groups.ts';
import { groupRows } from '../groups/group-rows.ts';
import { noTimeLimit, type TimeLimit, withTimeLimit } from './budget.ts';
import { HostVisit } from './host-visit.ts';
import { mergeGenerators } from './merge.ts';

/** What is to be read. */
export interface SyncScope {
  /** Whether the account's own timeline is. */
  readonly home: boolean;
  /** Only what this relay hosts; everything by default. */
  readonly host?: string;
  /** These groups; all of them by default. */
  readonly groups?: ReadonlySet<string>;
  /** These channels; all that are followed by default. */
  readonly channels?: ReadonlySet<string>;
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
  scope: Omit<SyncScope, 'home'> & { readonly isTimed: boolean; readonly but?: string | undefined },
): AsyncGenerator<readonly AccountEvent[]> {
  const { relayId: homeId } = await core.home();
  const hosts = scope.host === undefined ? await allHosts(core) : [scope.host];
  const works = hosts
    .filter((host) => host !== scope.but)
    .map((host) => (either: AbortSignal) => {
      const read = (visit: TimeLimit) =>
        readHost(core, new HostVisit({ host, isHome: host === homeId }, visit, either), scope);
      return scope.isTimed ? withTimeLimit(core, either, read) : read(noTimeLimit(either));
    });
  yield* mergeGenerators<readonly AccountEvent[]>(signal, works);
}

async function* readHost(
  core: AccountCore,
  visit: HostVisit,
  { groups, channels }: Omit<SyncScope, 'home'>,
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
