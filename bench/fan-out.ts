/**
 * One post to many: how long until the last of a channel's connected followers has its hint, what
 * another account's calls take meanwhile, and what a follower costs the relay in memory.
 *
 *   npm run bench:fanout [-- --followers 1000,5000 --rounds 30 --silent 0.1 --engine sqlite]
 *
 * The relay is a process of its own with TLS; followers are real connections of a few processes.
 * Rounds take turns: a post to the channel they follow, and a post to one that nobody follows, with
 * the same calls of another account in as long a time. That is what latencies are compared with.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
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
import { writeConfig } from './support.ts';

const { values } = parseArgs({
  options: {
    followers: { type: 'string', default: '1000,5000' },
    rounds: { type: 'string', default: '30' },
    silent: { type: 'string', default: '0.1' },
    engine: { type: 'string', default: 'sqlite' },
  },
});
const sizes = values.followers
  .split(',')
  .map(Number)
  .toSorted((a, b) => a - b);
const rounds = Number(values.rounds);
/** Share of the followers that never read. */
const silent = Number(values.silent);

/** Followers of one process. */
const perProcess = 1_250;
/** Milliseconds for the connections of one process, and for a round, before all is given up. */
const patience = { opening: 180_000, round: 60_000 } as const;
/** Milliseconds of rest before memory is looked at. */
const rest = 3_000;
/** More than all of it takes: those that never read do not answer pings either. */
const pingInterval = 2_147_483_647;
/** Open files a process needs beside its connections. */
const otherFiles = 200;

/** A crowd of followers in a process of its own. */
class Crowd implements Disposable {
  readonly #child: ChildProcess;
  readonly #heard = new Map<number, PromiseWithResolvers<number>>();

  private constructor(child: ChildProcess) {
    this.#child = child;
    const end = () => void child.kill('SIGKILL');
    process.once('exit', end);
    child.once('exit', () => process.off('exit', end));
    child.on('message', (report: FollowersReport) => {
      if (report.kind === 'heard') this.#of(report.head).resolve(report.at);
    });
  }

  static async gather(order: FollowersOrder): Promise<Crowd> {
    const child = fork(new URL('./followers.ts', import.meta.url));
    const crowd = new Crowd(child);
    const failed = once(child, 'exit').then(([code]) => {
      throw new Error(`followers ended with ${code}`);
    });
    failed.catch(() => {});
    child.send(order);
    const ready = once(child, 'message', { signal: AbortSignal.timeout(patience.opening) });
    await Promise.race([ready, failed]);
    return crowd;
  }

  /** When the last that reads heard of a head. */
  heard(head: number): Promise<number> {
    return this.#of(head).promise;
  }

  [Symbol.dispose](): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  #of(head: number): PromiseWithResolvers<number> {
    const known = this.#heard.get(head) ?? Promise.withResolvers<number>();
    this.#heard.set(head, known);
    return known;
  }
}

/** A channel of an account, which posts to it. */
class Channel {
  readonly id: string;
  readonly #context: TestContext;
  readonly #owner: TestAccount;

  private constructor(context: TestContext, owner: TestAccount, id: string) {
    this.#context = context;
    this.#owner = owner;
    this.id = id;
  }

  static async found(context: TestContext, owner: TestAccount): Promise<Channel> {
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

function requireFiles(connections: number): void {
  const [, most] =
    /Max open files\s+\S+\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  if (connections + otherFiles <= Number(most)) return;
  throw new Error(`${connections} connections need more open files than ${most}`);
}

/** Milliseconds of a call of another account, one after the other while something lasts. */
async function callsWhile(context: TestContext, other: TestAccount, lasts: Promise<unknown>) {
  const latencies: number[] = [];
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  lasts.then(end, end);
  while (!isOver) {
    const started = machineTime();
    await context.expectOk(other.caller, 'message.timeline.sync', {});
    latencies.push(machineTime() - started);
  }
  return latencies;
}

interface Rounds {
  /** Milliseconds of each post until its answer, and from there until the last hint. */
  readonly answers: number[];
  readonly hints: number[];
  /** Milliseconds of each call of the other account. */
  readonly calls: number[];
}

async function measure(
  context: TestContext,
  { news, quiet, other, crowds }: Cast,
): Promise<{ readonly with: Rounds; readonly without: Rounds }> {
  const found = { with: newRounds(), without: newRounds() };
  // The first round warms up.
  for (let round = 0; round <= rounds; round += 1) {
    const kept = round === 0 ? { with: newRounds(), without: newRounds() } : found;
    const started = machineTime();
    const posted = news.post().then((head) => ({ head, at: machineTime() }));
    const last = posted.then(async ({ head }) => {
      const all = Promise.all(crowds.map((crowd) => crowd.heard(head)));
      const late = AbortSignal.timeout(patience.round);
      const tooLate = once(late, 'abort').then(() => {
        throw new Error('not every follower heard of a post');
      });
      return Math.max(...(await Promise.race([all, tooLate])));
    });
    kept.with.calls.push(...(await callsWhile(context, other, last)));
    const [{ at: answered }, end] = await Promise.all([posted, last]);
    kept.with.answers.push(answered - started);
    kept.with.hints.push(end - answered);
    const begun = machineTime();
    const quietly = quiet.post().then(() => void kept.without.answers.push(machineTime() - begun));
    const asLong = Promise.all([quietly, sleep(end - started)]);
    kept.without.calls.push(...(await callsWhile(context, other, asLong)));
    await asLong;
  }
  return found;
}

interface Cast {
  readonly news: Channel;
  readonly quiet: Channel;
  readonly other: TestAccount;
  readonly crowds: readonly Crowd[];
}

function newRounds(): Rounds {
  return { answers: [], hints: [], calls: [] };
}

function at(share: number, numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const ms = (milliseconds: number) => `${milliseconds.toFixed(1)} ms`;

requireFiles(Math.max(...sizes));
await using parts = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
parts.defer(() => rmSync(folder, { recursive: true, force: true }));
const most = Math.max(...sizes) + otherFiles;
const postgres =
  values.engine === 'postgres' ? parts.use(await TestPostgres.start({ durable: true })) : undefined;
const config = writeConfig(folder, {
  host: { channels: true },
  limits: { connections: most, connectionsPerAddress: most, pingInterval },
  ...(postgres && { storage: { engine: 'postgres', url: await postgres.createDatabase() } }),
});
const relay = parts.use(await RelayProcess.start({ config, port: 0 }, console.error));
const facts = {
  relay: relay.base,
  registry: join(folder, 'registry.json'),
  ca: join(folder, 'tls', 'ca.pem'),
};
const context = parts.use(await TestContext.open(await loadTarget(facts), 'wss'));
const owner = await context.testAccount();
const other = await context.testAccount();
const news = await Channel.found(context, owner);
const quiet = await Channel.found(context, owner);
const crowds: Crowd[] = [];
parts.defer(() => {
  for (const crowd of crowds) crowd[Symbol.dispose]();
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
    const order = { target: facts, channel: news.id, count, silent: Math.round(count * silent) };
    crowds.push(await Crowd.gather(order));
  }
  connected = size;
  const seconds = (performance.now() - started) / 1_000;
  await sleep(rest);
  const before = memory;
  memory = memoryOf(relay.pid);
  const { with: told, without } = await measure(context, { news, quiet, other, crowds });
  const after = memoryOf(relay.pid);
  const ratio = (share: number) => (at(share, told.calls) / at(share, without.calls)).toFixed(2);
  const line = (name: string, text: string) => console.log(`  ${name.padEnd(34)}${text}`);
  console.log(`\n${size} followers, the last ${added} connected in ${seconds.toFixed(0)} s`);
  line(
    'last hint after the answer',
    `${ms(at(0.5, told.hints))} median, ${ms(at(1, told.hints))} worst`,
  );
  line(
    'answer of channel.post',
    `${ms(at(0.5, told.answers))}, ${ms(at(0.5, without.answers))} where nobody follows`,
  );
  for (const [name, share] of [
    ['median', 0.5],
    ['99 %', 0.99],
    ['worst', 1],
  ] as const) {
    line(
      `call of another account, ${name}`,
      `${ms(at(share, told.calls))} against ${ms(at(share, without.calls))}, x ${ratio(share)}`,
    );
  }
  line('such calls', `${told.calls.length} against ${without.calls.length}`);
  line(
    'memory of the relay',
    `${((memory - before) / added).toFixed(1)} KiB for each new follower, ${(memory / 1_024).toFixed(0)} MiB in all, ${(after / 1_024).toFixed(0)} MiB after the posts`,
  );
}
