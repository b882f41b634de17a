/** How many files and connections the system lets the process have open, and the limits that this bounds. */
import { readFileSync } from 'node:fs';
import { lowerDependent } from './limit-rules.ts';
import type { RelayLimits } from './limits.ts';

/** For the database, attachments under way and calls to other servers. */
const ownFiles = 256;

/** Limits of what is open, each with the least that it is lowered to. */
const lowered = {
  connections: 64,
  strangerConnections: 48,
  handshakesUnfinished: 16,
  peerConnections: 64,
} as const;

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
 * Lowers limits of connections that the operator has not set, all in the same ratio, until they fit: a
 * process without a free descriptor ends connections of everyone alike, before it knows whose they are.
 *
 * @param options.available files and connections that the process may have open
 * @param options.isSet whether the operator has set a limit
 * @returns the lowered limits
 */
export function fitOpenFiles(
  limits: RelayLimits,
  options: { readonly available: number; readonly isSet: (name: string) => boolean },
): Partial<RelayLimits> {
  const { connections, handshakesUnfinished, peerConnections } = limits;
  const most = connections + handshakesUnfinished + peerConnections;
  const ratio = Math.max(0, options.available - ownFiles) / most;
  if (ratio >= 1) return {};
  const fitted: Partial<RelayLimits> = Object.fromEntries(
    Object.entries(lowered)
      .filter(([name]) => !options.isSet(name))
      .map(([name, least]) => {
        const value = limits[name as keyof RelayLimits];
        return [name, Math.min(value, Math.max(least, Math.floor(value * ratio)))];
      }),
  );
  return { ...fitted, ...lowerDependent({ ...limits, ...fitted }, options.isSet) };
}
