/** How many files and connections the system lets the process have open, and the limits that this bounds. */
import { readFileSync } from 'node:fs';
import { highestDependent, lowerDependent } from './limit-rules.ts';
import { defaultLimits, type RelayLimits } from './limits.ts';

/** For the database, attachments under way and calls to other servers. */
const ownFiles = 256;

/** Limits of what is open, each with the least that it is lowered to. */
const lowered = { connections: 64, handshakesUnfinished: 16, peerConnections: 64 } as const;

/** What is left for those with a session keeps its share. */
const strangersShare = defaultLimits.strangerConnections / defaultLimits.connections;

/** Returns how many the process may have; `undefined` if the system does not say, or has no limit. */
export function processFiles(): number | undefined {
  try {
    const [, soft] =
      /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/**
 * Lowers limits of connections that the operator has not set, all in the same ratio, until they fit next
 * to those that are set: a process without a free descriptor ends connections of everyone alike, before it
 * knows whose they are. A limit stays above what the operator has set of those that it bounds.
 *
 * @param options.available files and connections that the process may have open
 * @param options.isSet whether the operator has set a limit
 * @returns the lowered limits
 */
export function fitOpenFiles(
  limits: RelayLimits,
  options: { readonly available: number; readonly isSet: (name: string) => boolean },
): Partial<RelayLimits> {
  const { available, isSet } = options;
  const all = Object.entries(lowered) as [keyof typeof lowered, number][];
  const sum = (some: typeof all) => some.reduce((total, [name]) => total + limits[name], 0);
  const free = all.filter(([name]) => !isSet(name));
  const room = available - ownFiles - (sum(all) - sum(free));
  const ratio = Math.max(0, room) / sum(free);
  if (free.length === 0 || ratio >= 1) return {};
  const fitted: { -readonly [Name in keyof RelayLimits]?: number } = {};
  for (const [name, least] of free) {
    const lowest = Math.max(least, highestDependent(limits, name, isSet));
    fitted[name] = Math.min(limits[name], Math.max(lowest, Math.floor(limits[name] * ratio)));
  }
  if (!isSet('strangerConnections')) {
    const { connections = limits.connections } = fitted;
    const most = Math.floor(connections * strangersShare);
    fitted.strangerConnections = Math.min(limits.strangerConnections, most);
  }
  return lowerDependent(limits, fitted, isSet);
}
