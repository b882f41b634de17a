/**
 * Measures how long calls with the largest input hold the event loop: the CPU time of the longest
 * turns, which other programs on the machine do not change.
 *
 *   npm run bench:turns
 *
 * No turn of the loop should take 20 ms. Collecting garbage takes some turns longer.
 */
import { deriveAccountId, encodeBase64url } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { TestGroup } from '../packages/relay/test/fixtures/group.ts';
import { Person } from '../packages/relay/test/fixtures/person.ts';
import { MeasuredRelay } from './measured-relay.ts';

/** Milliseconds of CPU time of this thread. */
function cpuTime(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Runs work three times and prints the CPU time of its longest turns. */
async function measure(title: string, work: () => Promise<unknown>): Promise<void> {
  for (let run = 0; run < 3; run += 1) {
    const turns: number[] = [];
    let isOver = false;
    let last = cpuTime();
    const turn = () => {
      const now = cpuTime();
      turns.push(now - last);
      last = now;
      if (!isOver) setImmediate(turn);
    };
    setImmediate(turn);
    await nextTurn();
    const outcome = await work().then(
      () => 'ok',
      (error: { readonly code?: string }) => error.code ?? String(error),
    );
    isOver = true;
    await nextTurn();
    const longest = turns.toSorted((a, b) => b - a).slice(0, 3);
    const total = turns.reduce((sum, milliseconds) => sum + milliseconds, 0);
    const columns = [title.padEnd(40), outcome.padEnd(16), `total ${total.toFixed(0)} ms`];
    columns.push(`longest turns ${longest.map((value) => value.toFixed(1)).join(', ')} ms`);
    console.log(columns.join('   '));
  }
}

await using relay = await MeasuredRelay.open('sqlite');
const ann = await Person.register(relay, 'ann');
const ben = await Person.register(relay, 'ben');
const asAnn = { session: ann.session() };
const asBen = { session: ben.session() };
const group = await TestGroup.create(relay, ann);
const { groupId: group_id } = group;

const accounts = Array.from({ length: 20_000 }, () =>
  deriveAccountId(relay.context.network, encodeBase64url(nodeRandom(33))),
);
const foreign = JSON.stringify(group.link('group.member.ban', { accounts }, { by: ben }));
await measure('an outsider bans 20,000 accounts', () =>
  relay.call('group.member.ban', foreign, asBen),
);

const members = Array.from({ length: 170_000 }, (_, index) => `"${index.toString(36)}x":0`);
const account = `"account":"${ann.account}"`;
const unknown = `{${account},${members.join(',')}}`;
await measure('1.8 MB of unknown members', () => relay.call('auth.challenge', unknown));
const nested = `{${account},"x":[${'[[[[[[[[[[[]]]]]]]]]]],'.repeat(85_000)}1]}`;
await measure('2 MB of nested arrays', () => relay.call('auth.challenge', nested));

for (let epoch = 1; epoch < 50; epoch += 1) await group.rotate();
const keys = () => relay.call('group.key.sync', { group_id, limit: 50 }, asAnn);
await measure('a page of 50 group keys', keys);
await measure('16 such pages at once', () => Promise.all(Array.from({ length: 16 }, keys)));

const own = group.link('group.member.ban', { accounts: accounts.slice(0, 10_000) });
const ban = JSON.stringify(own);
await measure('the owner bans 10,000 accounts, once', () =>
  relay.call('group.member.ban', ban, asAnn),
);
