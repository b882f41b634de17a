/** Calls of groups and channels, and authentications: relays only, the floor has none. */
import { measuredCalls } from '../call-frames.ts';
import type { Table } from '../table.ts';
import { type Compared, compare, figureColumns, figureNotes } from './compared.ts';

/** Accounts that call at once: members of one group; the owner of a channel and its ten moderators. */
export const callers = 11;

/** About how many a second a relay answers: only the length of runs follows from it. */
const expectedRate = 1_000;

/** Measures each call in alternating runs of the relays. */
export async function callTable(parts: Compared): Promise<Table> {
  const rows = [];
  for (const call of measuredCalls) {
    const isAuthentication = call === 'authentication';
    const each = Math.max(2, Math.ceil((expectedRate * parts.seconds) / callers));
    const measured = await compare(parts, {
      frames: (name) => ({ do: 'calls', name, call, callers, each }),
      // The second call of an authentication needs the answer to the first one.
      window: isAuthentication ? 1 : 4,
      perItem: isAuthentication ? 2 : 1,
    });
    rows.push(...measured.map((row) => ({ call, ...row })));
  }
  const [first] = parts.servers;
  return {
    section: 'calls',
    title: `Other calls, of ${callers} accounts`,
    columns: [
      { key: 'call', label: 'call' },
      { key: 'server', label: 'server' },
      ...figureColumns(parts.servers.length > 1 ? first?.target.name : undefined),
    ],
    rows,
    notes: [
      ...figureNotes,
      'No account subscribes to group or channel. An authentication is a challenge and a proof; p50 and p99 are of one of the two calls.',
    ],
  };
}
