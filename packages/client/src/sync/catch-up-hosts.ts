/** Catching up all hosts concurrently: a slow host does not delay the others (05 §17.1). */
import { catchUpChannels } from '../channels/catch-up-channels.ts';
import { channelRows } from '../channels/channel-rows.ts';
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';
import { catchUpGroups } from '../groups/catch-up-groups.ts';
import { groupRows } from '../groups/group-rows.ts';
import { giveUpInEndedGroups } from '../groups/timeline/send-group-message.ts';
import { formerRelaysToRead, readFormerRelay } from '../messages/former-relays.ts';
import { noTimeLimit, type TimeLimit, withTimeLimit } from './budget.ts';
import { HostVisit } from './host-visit.ts';
import { mergeGenerators } from './merge.ts';

/** What one synchronization reads. */
export interface SyncScope {
  /** Whether the account's own timeline is read. */
  readonly home: boolean;
  /** Only what this relay hosts; everything by default. */
  readonly host?: string;
  /** These groups; all of them by default. */
  readonly groups?: ReadonlySet<string>;
  /** These channels; all that are followed by default. */
  readonly channels?: ReadonlySet<string>;
}

/**
 * Reads groups and channels of hosts, and sends what waits for them; reads former home relays.
 *
 * @param scope.isTimed whether the time per host is limited; if not, what waits is sent in the
 *   background
 * @param scope.except a host that is skipped
 * @throws ClientError if the home relay is unavailable, after the other hosts were read
 */
export async function* catchUpHosts(
  core: AccountCore,
  signal: AbortSignal,
  scope: Omit<SyncScope, 'home'> & {
    readonly isTimed: boolean;
    readonly except?: string | undefined;
  },
): AsyncGenerator<readonly AccountEvent[]> {
  const { relayId: homeId } = await core.home();
  if (scope.groups === undefined) await giveUpInEndedGroups(core);
  const hosts = scope.host === undefined ? await allHosts(core) : [scope.host];
  const works = hosts
    .filter((host) => host !== scope.except)
    .map((host) => (either: AbortSignal) => {
      const address = { host, isHome: host === homeId, sendsInBackground: !scope.isTimed };
      const read = (visit: TimeLimit) =>
        readHost(core, new HostVisit(address, visit, either), scope);
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
  yield* readFormerRelay(core, visit.host, visit);
}

/**
 * Every relay that hosts a group or channel this device stores, and former home relays that are to
 * be read.
 */
async function allHosts(core: AccountCore): Promise<string[]> {
  const former = await formerRelaysToRead(core, { isDue: true });
  return await core.store.read(async (tx) => {
    const rows = [...(await groupRows(tx)), ...(await channelRows(tx))];
    return [...new Set([...rows.map(({ relay_id }) => relay_id), ...former])];
  });
}
