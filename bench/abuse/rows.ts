import type { Attack } from './attack.ts';
import { idleConnections } from './idle-connections.ts';
import { largeBodies } from './large-bodies.ts';
import { neverReading } from './never-reading.ts';
import { pings } from './pings.ts';
import { pipelining } from './pipelining.ts';
import { unfinishedBodies } from './unfinished-bodies.ts';
import { unfinishedMessages } from './unfinished-messages.ts';

/** Every row, by the name that `--rows` takes. */
export const attacks: Readonly<Record<string, Attack>> = {
  pings,
  'unfinished-messages': unfinishedMessages,
  'unfinished-bodies': unfinishedBodies,
  pipelining,
  'never-reading': neverReading,
  'large-bodies': largeBodies,
  'idle-connections': idleConnections,
};
