/**
 * Measures one post to many connected followers: the time until the last one has its hint, the time
 * that another account's calls take meanwhile, and the relay's memory for each follower.
 *
 *   npm run bench:fanout [-- --followers 1000,5000 --rounds 30 --silent 0.1 --engine sqlite]
 *
 * The relay is a process of its own with TLS; followers are real connections of a few processes.
 * Two kinds of rounds alternate: a post to the followed channel, and a post to a channel without
 * followers, with the same calls of another account for as long. Latencies of both are compared, in
 * all rounds together; the last line without the time in which the caller itself waited for a core,
 * which it shares with followers and relay.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadTarget, type TestAccount, TestContext } from '@posthouse/conformance';
import {
  encodeBase64url,
  newMessageId,
  signAsDevice,
  signChannelDescriptor,
} from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { RelayProcess } from '../packages/relay/test/cluster/relay-process.ts';
import { TestPostgres } from '../packages/relay/test/support/postgres.ts';
import { type FollowersOrder, type FollowersReport, machineTime } from './followers.ts';
import { count, counts, number, readOptions, word } from './options.ts';
import { waitedForCore } from './process-cpu.ts';
import { writeConfig } from './support.ts';

const values = readOptions('npm run bench:fanout', {
  followers: counts([1_000, 5_000]),
  rounds: count(30),
  silent: number(0.1),
  engine: word(['sqlite', 'postgres']),
});
const sizes = values.followers.toSorted((a, b) => a - b);
const { rounds } = values;
/** Share of the followers that never read. */
const { silent } = values;

/** Followers of one process. */
const perProcess = 1_250;
/** Milliseconds to open the connections of one process, and for a round, before the run fails. */
const timeouts = { opening: 180_000, round: 60_000 } as const;
/** Milliseconds to wait before memory is measured. */
const settleTime = 3_000;
/** Longer than the whole run: followers that never read do not answer pings either. */
const pingInterval = 2_147_483_647;
/** Open files that a process needs in addition to its connections. */
const otherFiles = 200;

/** A process with many followers. */
class FollowerProcess implements Disposable {
  readonly #child: ChildProcess;
  readonly #hints = new Map<number, PromiseWithResolvers<number>>();

  private constructor(child: ChildProcess) {
    this.#child = child;
    const end = () => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    child.on('message', (report: FollowersReport) => {
      if (report.kind === 'hint') this.#of(report.head).resolve(report.at);
    });
  }

  static async start(order: FollowersOrder): Promise<FollowerProcess> {
    const child = fork(new URL('./followers.ts', import.meta.url));
    const followers = new FollowerProcess(child);
    const failed = once(child, 'exit').then(([code]) => {
      throw new Error(`followers ended with ${code}`);
    });
    failed.catch(() => {});
    child.send(order);
    const ready = once(child, 'message', { signal: AbortSignal.timeout(timeouts.opening) });
    await Promise.race([ready, failed]);
    return followers;
  }

  /** Returns the machine time at which the last reading follower got the hint of a head. */
  lastHintAt(head: number): Promise<number> {
    return this.#of(head).promise;
  }

  [Symbol.dispose](): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  #of(head: number): PromiseWithResolvers<number> {
    const known = this.#hints.get(head) ?? Promise.withResolvers<number>();
    this.#hints.set(head, known);
    return known;
  }
}

/** A channel, with the account that posts to it. */
class Channel {
  readonly id: string;
  readonly #context: TestContext;
  readonly #owner: TestAccount;

  private constructor(context: TestContext, owner: TestAccount, id: string) {
    this.#context = context;
    this.#owner = owner;
    this.id = id;
  }

  static async create(context: TestContext, owner: TestAccount): Promise<Channel> {
    const descriptor = signChannelDescriptor(context.network, owner.device.signer, {
      creator: owner.account.id,
      relay_id: context.relayId,
      nonce: encodeBase64url(nodeRandom(16)),
      name: 'News',
      created_at: Math.floor(Date.now() / 1_000),
    });
    await context.expectOk(owner.caller, 'channel.create', descriptor);
    return new Channel(context, owner, descriptor.channel_id);
  }

  /** @returns the sequence of a post */
  async post(): Promise<number> {
    const { network } = this.#context;
    const post = {
      $type: network.type('channel.post'),
      channel_id: this.id,
      message_id: newMessageId(nodeRandom),
      body: { content_type: 'text/plain', text: 'Version 1.0 is out' },
    };
    const signed = signAsDevice(network, post, this.#owner.device.signer);
    const answer = await this.#context.expectOk(this.#owner.caller, 'channel.post', signed);
    return (answer as { readonly sequence: number }).sequence;
  }
}

/** Resident memory of a process, KiB. */
function memoryOf(pid: number): number {
  const [, text] = /VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(text);
}

function requireOpenFiles(connections: number): void {
  const [, allowed] =
    /Max open files\s+\S+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  if (connections + otherFiles <= Number(allowed)) return;
  throw new Error(
    `${connections} connections need more than ${allowed} open files: raise ulimit -n`,
  );
}

/** Calls as another account, one call after the other until `pending` settles. */
async function callsWhile(context: TestContext, other: TestAccount, pending: Promise<unknown>) {
  const calls: Call[] = [];
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  pending.then(end, end);
  while (!isOver) {
    const waited = waitedForCore();
    const started = machineTime();
    await context.expectOk(other.caller, 'message.timeline.sync', {});
    const latency = machineTime() - started;
    calls.push({ latency, served: Math.max(0, latency - (waitedForCore() - waited)) });
  }
  return calls;
}

/** A call of the other account. */
interface Call {
  /** Milliseconds. */
  readonly latency: number;
  /** The same without the time in which the caller was ready and waited for its core. */
  readonly served: number;
}

interface Rounds {
  /** Milliseconds of each post until its answer, and from there until the last hint. */
  readonly answers: number[];
  readonly hints: number[];
  readonly calls: Call[];
}

async function measure(
  context: TestContext,
  { followed, unfollowed, other, processes }: Participants,
): Promise<{ readonly with: Rounds; readonly without: Rounds }> {
  const results = { with: newRounds(), without: newRounds() };
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    const into = round === 0 ? { with: newRounds(), without: newRounds() } : results;
    const started = machineTime();
    const posted = followed.post().then((head) => ({ head, at: machineTime() }));
    const last = posted.then(async ({ head }) => {
      const all = Promise.all(processes.map((followers) => followers.lastHintAt(head)));
      const late = AbortSignal.timeout(timeouts.round);
      const tooLate = once(late, 'abort').then(() => {
        throw new Error('not every follower got the hint of a post in time');
      });
      return Math.max(...(await Promise.race([all, tooLate])));
    });
    into.with.calls.push(...(await callsWhile(context, other, last)));
    const [{ at: answered }, end] = await Promise.all([posted, last]);
    into.with.answers.push(answered - started);
    into.with.hints.push(end - answered);
    const postStarted = machineTime();
    const post = unfollowed.post().then(() => {
      into.without.answers.push(machineTime() - postStarted);
    });
    const sameTime = Promise.all([post, sleep(end - started)]);
    into.without.calls.push(...(await callsWhile(context, other, sameTime)));
    await sameTime;
  }
  return results;
}

interface Participants {
  readonly followed: Channel;
  readonly unfollowed: Channel;
  readonly other: TestAccount;
  readonly processes: readonly FollowerProcess[];
}

function newRounds(): Rounds {
  return { answers: [], hints: [], calls: [] };
}

function quantile(share: number, numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const ms = (milliseconds: number) => `${milliseconds.toFixed(1)} ms`;

requireOpenFiles(Math.max(...sizes));
await using parts = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
parts.defer(() => rmSync(folder, { recursive: true, force: true }));
const most = Math.max(...sizes) + otherFiles;
const postgres =
  values.engine === 'postgres' ? parts.use(await TestPostgres.start({ durable: true })) : undefined;
const config = writeConfig(folder, {
  host: { channels: true },
  limits: {
    connections: most,
    strangerConnections: most,
    connectionsPerAddress: most,
    pingInterval,
  },
  ...(postgres && { storage: { engine: 'postgres', url: await postgres.createDatabase() } }),
});
const relay = parts.use(await RelayProcess.start({ config, port: 0 }, console.error));
const targetOptions = {
  relay: relay.base,
  registry: join(folder, 'registry.json'),
  ca: join(folder, 'tls', 'ca.pem'),
};
const context = parts.use(await TestContext.open(await loadTarget(targetOptions), 'wss'));
const owner = await context.testAccount();
const other = await context.testAccount();
const followed = await Channel.create(context, owner);
const unfollowed = await Channel.create(context, owner);
const processes: FollowerProcess[] = [];
parts.defer(() => {
  for (const followers of processes) followers[Symbol.dispose]();
});

console.log(`cores                      ${availableParallelism()}, shared by relay and followers`);
console.log(`engine                     ${values.engine}`);
console.log(`followers that never read  ${(silent * 100).toFixed(0)} %`);
console.log(`rounds                     ${rounds} of each kind`);
let connected = 0;
let memory = memoryOf(relay.pid);
for (const size of sizes) {
  const started = performance.now();
  const added = size - connected;
  for (let left = added; left > 0; left -= perProcess) {
    const count = Math.min(left, perProcess);
    const order = {
      target: targetOptions,
      channel: followed.id,
      count,
      silent: Math.round(count * silent),
    };
    processes.push(await FollowerProcess.start(order));
  }
  connected = size;
  const seconds = (performance.now() - started) / 1_000;
  await sleep(settleTime);
  const before = memory;
  memory = memoryOf(relay.pid);
  const { with: followedRounds, without: otherRounds } = await measure(context, {
    followed,
    unfollowed,
    other,
    processes,
  });
  const after = memoryOf(relay.pid);
  const line = (name: string, text: string) => console.log(`  ${name.padEnd(38)}${text}`);
  console.log(`\n${size} followers, the last ${added} connected in ${seconds.toFixed(0)} s`);
  line(
    'last hint after the answer',
    `${ms(quantile(0.5, followedRounds.hints))} median, ${ms(quantile(1, followedRounds.hints))} worst`,
  );
  line(
    'answer of channel.post',
    `${ms(quantile(0.5, followedRounds.answers))}, ${ms(quantile(0.5, otherRounds.answers))} without followers`,
  );
  for (const [name, share, of] of [
    ['median', 0.5, 'latency'],
    ['99 %', 0.99, 'latency'],
    ['worst', 1, 'latency'],
    ['99 % served', 0.99, 'served'],
  ] as const) {
    const [during, quiet] = [followedRounds, otherRounds].map(({ calls }) =>
      quantile(
        share,
        calls.map((call) => call[of]),
      ),
    ) as [number, number];
    line(
      `call of another account, ${name}`,
      `${ms(during)} against ${ms(quiet)}, x ${(during / quiet).toFixed(2)}`,
    );
  }
  line('such calls', `${followedRounds.calls.length} against ${otherRounds.calls.length}`);
  line(
    'memory of the relay',
    `${((memory - before) / added).toFixed(1)} KiB for each new follower, ${(memory / 1_024).toFixed(0)} MiB in all, ${(after / 1_024).toFixed(0)} MiB after the posts`,
  );
}
