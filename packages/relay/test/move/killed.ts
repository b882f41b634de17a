/** A move in a process of its own, which kills itself before a statement, or before its commit. */

import { relayMigrations } from '../../src/modules.ts';
import { moveStorage, parseAddress } from '../../src/storage/move/move.ts';

const [from = '', to = '', last = ''] = process.argv.slice(2);
let count = 0;
function maybeDie(): void {
  count += 1;
  if (count === Number(last)) process.kill(process.pid, 'SIGKILL');
}
const end = { beforeStatement: maybeDie, beforeCommit: maybeDie };
await moveStorage({
  from: parseAddress(from),
  to: parseAddress(to),
  migrations: relayMigrations,
  faults: { source: end, target: end },
});
