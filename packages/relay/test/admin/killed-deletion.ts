/**
 * A deletion of an account in a process of its own, which kills itself at a point of its writes:
 * `killed-deletion.ts <configuration, JSON> <account> <point> <pass>`. Prints how often it passed the point.
 */

import { deleteAccount } from '../../src/admin/delete-account.ts';
import type { RelayConfig } from '../../src/config/index.ts';
import { defaultLimits } from '../../src/limits.ts';
import { openStorage } from '../../src/storage/open.ts';
import { silentObserver } from '../support/silent-observer.ts';

const [config = '', account = '', at = '', last = ''] = process.argv.slice(2);
let passes = 0;
const reach = (point: string) => {
  if (point !== at) return;
  passes += 1;
  if (passes === Number(last)) process.kill(process.pid, 'SIGKILL');
};
const parts = { faults: { reach }, observer: silentObserver };
await using storage = await openStorage(JSON.parse(config) as RelayConfig, parts);
const now = Math.floor(Date.now() / 1_000);
await deleteAccount(storage, account, { now, limits: defaultLimits });
process.stdout.write(`${passes}\n`);
