/**
 * Measures how the cost of group calls grows with members and events: the median of each method as a
 * multiple of its cost in a small group of the same run, and its number of statements. Then the cost
 * per account of calls with many accounts, the cost of reading all events, and the verification of
 * all events by a client in a process of its own.
 *
 *   npm run bench:groups [-- --members 10,1000,10000 --events 1000,100000 --engine postgres]
 *
 * Calls go through dispatch, without sockets; everything is durable.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGroupSecret } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { TestGroup } from '../packages/relay/test/fixtures/group.ts';
import { Person } from '../packages/relay/test/fixtures/person.ts';
import { admitAll, applyAll, fillTimeline, makeMembers } from './large-groups.ts';
import { type Cost, MeasuredRelay } from './measured-relay.ts';
import { count, counts, readOptions, word } from './options.ts';

const values = readOptions('npm run bench:groups', {
  members: counts([10, 1_000, 10_000]),
  events: counts([1_000, 100_000]),
  engine: word(['sqlite', 'postgres']),
  rounds: count(15),
});
const { members: memberCounts, events: eventCounts, rounds } = values;

/** Accounts in one call of a batch method. */
const batchSize = 500;
/** Boxes in one call of `group.secret.rotation.prepare`. */
const boxesPerCall = 1_000;

/** Costs by method, of one group at one size. */
type Costs = Map<string, Cost[]>;

interface Accounts {
  readonly ann: Person;
  readonly ben: Person;
  readonly cem: Person;
  readonly guest: Person;
}

/** Calls every method of a group once or more; afterwards the group has the same size. */
async function callAllMethods(
  relay: MeasuredRelay,
  group: TestGroup,
  { ann, ben, cem, guest }: Accounts,
) {
  const { groupId: group_id } = group;
  const session = ann.session();
  const read = (method: string, params: object = {}, as = method) =>
    relay.call(method, { group_id, ...params }, { session, as });
  const invite = await group.invite();
  const { invite_id } = invite;
  await group.apply(guest, invite);
  await read('group.application.list');
  await read('group.invite.list');
  await read('group.invite.resolve', { invite_id });
  await group.approve([guest], { by: ben });
  const sequence = await group.send(ann, await epochOf(relay, group));
  await read('group.resolve');
  await read('group.sync', {}, 'group.sync (first page)');
  await read('group.sync', { after: Math.floor(sequence / 2) }, 'group.sync (in the middle)');
  await read('group.sync', { after: sequence - 10 }, 'group.sync (last 10)');
  await read('group.key.sync', { after: (await epochOf(relay, group)) - 3 });
  await relay.call('group.subscribe', { group_ids: [group_id] }, { session });
  await group.update({ name: `round ${sequence}` });
  await group.setRole(guest, 'administrator');
  await group.setRole(guest, 'member');
  await group.transfer(cem);
  await group.transfer(ann);
  await group.requestRecovery(guest);
  await read('group.member.recovery.list');
  await group.recover([guest]);
  await group.requestRecovery(guest);
  await read('group.member.recovery.reject', { accounts: [guest.account] });
  const secret = createGroupSecret(nodeRandom);
  const preparation = group.preparation(secret, [guest]);
  await relay.call('group.secret.rotation.prepare', preparation, { session });
  if (sequence % 2 === 0) await group.remove([guest]);
  else await group.leave(guest);
  await group.ban([guest]);
  await group.unban([guest]);
  await group.apply(guest, invite);
  await read('group.application.reject', { accounts: [guest.account] });
  await read('group.invite.revoke', { invite_id });
}

async function epochOf(relay: MeasuredRelay, { groupId }: TestGroup): Promise<number> {
  const row = await relay.context.storage.read((tx) =>
    tx.get<{ epoch: number }>('SELECT epoch FROM groups WHERE group_id = ?', groupId),
  );
  return row?.epoch ?? 0;
}

async function measure(relay: MeasuredRelay, group: TestGroup, accounts: Accounts): Promise<Costs> {
  const costs: Costs = new Map();
  // The first round warms up caches.
  await callAllMethods(relay, group, accounts);
  relay.meter = (method, cost) => void costs.set(method, [...(costs.get(method) ?? []), cost]);
  for (let count = 0; count < rounds; count += 1) await callAllMethods(relay, group, accounts);
  relay.meter = undefined;
  return costs;
}

const median = (numbers: readonly number[]) =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** Measures calls with many accounts: milliseconds and statements per account. */
async function measureBatches(relay: MeasuredRelay, group: TestGroup, people: readonly Person[]) {
  const lines: string[] = [];
  const size = Math.min(batchSize, people.length);
  const batch = people.slice(-size);
  let cost: Cost = { milliseconds: 0, statements: 0 };
  relay.meter = (_, latest) => {
    cost = latest;
  };
  const note = (what: string, items: number) => {
    const each = (cost.milliseconds / items).toFixed(3);
    const statements = (cost.statements / items).toFixed(2);
    lines.push(`${what.padEnd(28)} ${each} ms and ${statements} statements each of ${items}`);
  };
  await group.remove(batch);
  note('remove at once', size);
  await applyAll(relay, group, batch);
  await group.approve(batch);
  note('admit at once', size);
  await group.ban(batch);
  note('ban at once', size);
  await group.unban(batch);
  note('unban at once', size);
  await applyAll(relay, group, batch);
  await group.approve(batch);
  const secret = createGroupSecret(nodeRandom);
  const { members } = group;
  const session = group.owner.session();
  for (let start = 0; start < members.length; start += boxesPerCall) {
    const boxBatch = members.slice(start, start + boxesPerCall);
    const preparation = group.preparation(secret, boxBatch);
    await relay.call('group.secret.rotation.prepare', preparation, { session });
    const isEnd = start === 0 || start + boxesPerCall >= members.length;
    if (isEnd) note(start === 0 ? 'prepare, first boxes' : 'prepare, last boxes', boxBatch.length);
  }
  await group.write('group.secret.rotation.commit', group.rotation(secret));
  group.secret = secret;
  lines.push(
    `commit of the rotation       ${cost.milliseconds.toFixed(1)} ms, ${cost.statements} statements`,
  );
  relay.meter = undefined;
  return lines;
}

/** Reads all pages into a file and verifies them in a process of its own. */
async function readAll(relay: MeasuredRelay, group: TestGroup, folder: string) {
  const file = join(folder, 'pages.jsonl');
  const out = createWriteStream(file);
  const session = group.owner.session();
  const times: number[] = [];
  relay.meter = (_, { milliseconds }) => void times.push(milliseconds);
  let bytes = 0;
  for (let after = -1, isMore = true; isMore; ) {
    const params = { group_id: group.groupId, after, limit: 500 };
    const page = (await relay.call('group.sync', params, { session })) as unknown as {
      readonly events: readonly { readonly sequence: number }[];
      readonly has_more: boolean;
    };
    const text = JSON.stringify(page);
    bytes += text.length;
    if (!out.write(`${text}\n`)) await once(out, 'drain');
    after = page.events.at(-1)?.sequence ?? after;
    isMore = page.has_more;
  }
  relay.meter = undefined;
  out.end();
  await once(out, 'finish');
  const verifier = new URL('group-verifier.ts', import.meta.url).pathname;
  const output = execFileSync(process.execPath, [verifier, file, group.groupId, relay.relayId]);
  const { events, seconds, maxRss } = JSON.parse(String(output)) as {
    readonly events: number;
    readonly seconds: number;
    readonly maxRss: number;
  };
  const total = times.reduce((sum, time) => sum + time, 0);
  return [
    `read all, ${times.length} pages`.padEnd(28) +
      ` ${(total / 1_000).toFixed(2)} s, ${(bytes / 1e6).toFixed(0)} MB; median of the first pages ${median(times.slice(0, 10)).toFixed(1)} ms, of the last ${median(times.slice(-10)).toFixed(1)} ms`,
    `verified by a client        ${events} events in ${seconds.toFixed(1)} s (${((seconds * 1e6) / events).toFixed(0)} µs each), at most ${(maxRss / 2 ** 20).toFixed(0)} MiB`,
  ];
}

/** Finds statements whose query plan reads a whole table or sorts (SQLite only). */
async function tableScans(relay: MeasuredRelay, statements: Iterable<string>): Promise<string[]> {
  if (values.engine !== 'sqlite') return [];
  const scans: string[] = [];
  for (const sql of statements) {
    if (!/^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)/i.test(sql)) continue;
    const blanks = [...sql.matchAll(/\?/g)].map(() => 0);
    const plan = await relay.context.storage.read((tx) =>
      tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...blanks),
    );
    // Reading a list that is in the statement, or no table at all, is no full scan.
    const isOwn = (detail: string) =>
      detail === 'SCAN CONSTANT ROW' || sql.includes(`AS ${/^SCAN (\w+)$/.exec(detail)?.[1]}`);
    const bad = plan
      .map(({ detail }) => detail)
      .filter((detail) => /^SCAN|TEMP B-TREE/.test(detail) && !isOwn(detail));
    if (bad.length > 0) scans.push(`${bad.join('; ')}: ${sql.replace(/\s+/g, ' ')}`);
  }
  return scans;
}

await using relay = await MeasuredRelay.open(values.engine);
const folder = mkdtempSync(join(tmpdir(), 'posthouse-pages-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const ann = await Person.register(relay, 'ann');
const ben = await Person.register(relay, 'ben');
const cem = await Person.register(relay, 'cem');
const guest = await Person.register(relay, 'guest');
const accounts = { ann, ben, cem, guest };
const allMembers = await makeMembers(relay, Math.max(...memberCounts));
const tables: { readonly label: string; readonly costs: Costs }[] = [];
const lines: string[] = [];
for (const members of memberCounts) {
  const started = performance.now();
  const group = await TestGroup.create(relay, ann, { member_capacity: 10_000 });
  await group.admit(ben, cem);
  await group.setRole(ben, 'administrator');
  // Room for the guest.
  const others = allMembers.slice(0, Math.max(1, members - 4));
  await admitAll(relay, group, others);
  for (const events of eventCounts) {
    await fillTimeline(relay, group, events);
    const label = `${members} members, ${events} events`;
    const seconds = ((performance.now() - started) / 1_000).toFixed(0);
    console.error(`${label}: built after ${seconds} s`);
    tables.push({ label, costs: await measure(relay, group, accounts) });
    lines.push(`\n${label}`, ...(await readAll(relay, group, folder)));
    if (events !== Math.max(...eventCounts)) continue;
    lines.push(...(await measureBatches(relay, group, others)));
  }
}
await report();

/** Prints one row for each method: the first column in milliseconds, the others as multiples. */
async function report(): Promise<void> {
  const [first] = tables as [(typeof tables)[number]];
  const names = [...first.costs.keys()].sort();
  console.log(`medians of ${rounds} calls, ${values.engine}; multiples of the first column\n`);
  for (const [index, { label }] of tables.entries()) console.log(`  (${index + 1}) ${label}`);
  const head = tables.map((_, index) => `(${index + 1})`.padStart(9)).join('');
  console.log(`\n${''.padEnd(34)}${head}  statements`);
  for (const name of names) {
    const times = tables.map(({ costs }) =>
      median((costs.get(name) ?? []).map(({ milliseconds }) => milliseconds)),
    );
    const [base = 1] = times;
    const counts = tables.flatMap(({ costs }) =>
      (costs.get(name) ?? []).map(({ statements }) => statements),
    );
    const cells = times.map((time, index) =>
      (index === 0 ? `${time.toFixed(2)} ms` : `x ${(time / base).toFixed(2)}`).padStart(9),
    );
    const fewest = Math.min(...counts);
    const largest = Math.max(...counts);
    const range = fewest === largest ? `${fewest}` : `${fewest} to ${largest}`;
    console.log(`${name.padEnd(34)}${cells.join('')}  ${range}`);
  }
  console.log(lines.join('\n'));
  const scans = await tableScans(relay, relay.allStatements);
  console.log(`\nstatements that read a whole table or sort: ${scans.length}`);
  for (const each of scans) console.log(`  ${each}`);
}
