/**
 * Verifies a group from its beginning as a client does, in a process of its own. Reads pages of
 * `group.sync` from a file, one a line, and retains only the state and the current page. Prints the
 * number of events, the seconds and the peak memory of the process.
 */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { advanceGroup, type GroupProjection, verifyGroupSyncPage } from '@posthouse/protocol';
import { network } from '../packages/relay/test/support/modules.ts';

const [file = '', group_id = '', relay_id = ''] = process.argv.slice(2);
let group: GroupProjection | undefined;
let events = 0;
const started = performance.now();
for await (const line of createInterface({ input: createReadStream(file) })) {
  const request = { group_id, after: group?.sequence ?? -1, limit: 500 };
  const page = verifyGroupSyncPage(network, JSON.parse(line), request);
  const advance = advanceGroup(network, group ?? { group_id, relay_id }, page);
  if (advance.blocked !== undefined) throw advance.blocked.error;
  if (advance.outcomes.some(({ kind }) => kind === 'rejected')) throw new Error('rejected');
  group = advance.group;
  events += page.events.length;
}
const seconds = (performance.now() - started) / 1_000;
const { maxRSS } = process.resourceUsage();
console.log(JSON.stringify({ events, seconds, maxRss: maxRSS * 1_024 }));
