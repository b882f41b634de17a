/** Which settings a running relay takes over from a changed configuration, and which need a restart. */
import type { RelayLimits } from '../limits.ts';
import type { RelayConfig } from './schema.ts';
import { settings } from './settings.ts';

/**
 * Limits that are read each time they are used. The others size caches and parts that are made once,
 * or are agreed between the processes.
 */
export const liveLimits = [
  ...(['accountRate', 'accountBurst', 'addressRate', 'addressBurst'] as const),
  ...(['accountBytes', 'accountBytesBurst', 'addressBytes', 'addressBytesBurst'] as const),
  ...(['routeResolvesPerCall', 'diskFree', 'accountsPerAddress'] as const),
  ...(['accountDailyBytes', 'groupDailyBytes', 'channelDailyBytes'] as const),
  ...(['accountStoredBytes', 'groupStoredBytes', 'channelStoredBytes'] as const),
  ...(['accountReceivedDailyBytes'] as const),
  ...(['foreignRelayDailyBytes', 'foreignDailyBytes'] as const),
  ...(['registrationInvites', 'registrationInviteNote', 'claimsOfInvite'] as const),
  ...(['registrationRequests', 'registrationRequestsPerAddress'] as const),
  ...(['registrationRequestPeriod'] as const),
  ...([
    'blockedAccounts',
    'blockedAddresses',
    'blockedChannels',
    'blockedRelays',
    'blockReason',
  ] as const),
  ...(['challenges', 'challengesPerAddress', 'challengesOfAccount'] as const),
  ...(['stagedStates', 'stagedStatesPerAddress', 'askedDevices'] as const),
  ...(['sessionsPerMinute', 'sessionsOfDevice', 'sessionsOfAccount'] as const),
  ...(['connectionsPerAddress', 'addressHandshakesUnfinished'] as const),
  ...(['addressHandshakesWaiting', 'subscriptionsPerAccount'] as const),
  ...(['blobTransfers', 'blobTransfersPerOwner'] as const),
  ...(['messageRetention', 'groupMessageRetention', 'channelTimelineRetention'] as const),
  ...(['groupMembers', 'groupsOfAccount', 'groupInvites', 'groupBans'] as const),
  ...(['channelsOfAccount', 'channelPostBytes'] as const),
  ...(['channelReports', 'channelReportPeriod', 'queuedDeliveries'] as const),
] as const satisfies readonly (keyof RelayLimits)[];

/** Settings that are no limits. */
const liveSettings = ['trustedProxies', 'tls.certificate', 'tls.key', 'log'] as const;

const live: ReadonlySet<string> = new Set([
  ...liveSettings,
  ...liveLimits.map((name) => `limits.${name}`),
]);

/**
 * Returns whether a change of a setting has an effect only after a restart.
 *
 * @param path dotted, as in `posthouse config explain`
 * @example
 * needsRestart('listen'); // true
 * needsRestart('limits.accountRate'); // false
 */
export function needsRestart(path: string): boolean {
  return !live.has(path);
}

/** Returns the paths of the settings whose values differ, in the order of the schema. */
export function changedSettings(before: RelayConfig, after: RelayConfig): string[] {
  return settings.flatMap(({ path }) => {
    const [was, is] = [before, after].map((config) => JSON.stringify(valueAt(config, path)));
    return was === is ? [] : [path];
  });
}

function valueAt(config: RelayConfig, path: string): unknown {
  const [group = '', key] = path.split('.');
  const value = (config as unknown as Record<string, unknown>)[group];
  return key === undefined ? value : (value as Record<string, unknown> | undefined)?.[key];
}
