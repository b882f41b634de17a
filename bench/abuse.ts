/**
 * Measures what attacks do to another account, and to memory, with the limits of production.
 *
 *   npm run bench:abuse [-- --rows pings,pipelining --calls 1000 --seconds 15 --runs 3 --settle 15]
 *                       [--pause 10] [--bare] [--flags=--trace-gc] [--env LD_PRELOAD=libjemalloc.so.2]
 *
 * For each row: the milliseconds of another account's calls, quiet and under attack, in alternation
 * (`served`: p99 without the time in which the caller itself waited for its core); the share of a core
 * that the relay's processes use; their resident memory before, at its peak and `--settle` seconds
 * after the attack. Then the medians of all runs. Attackers run in a process of their own, on loopback,
 * for a bounded time; if allowed, on the second core. `--bare` also measures a server that does nothing
 * under the same attack; `--flags` and `--env` are for the relay's Node.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  type Caller,
  grantedMessage,
  loadTarget,
  type Target,
  type TestAccount,
  TestContext,
  WssCaller,
} from '@posthouse/conformance';
import type { AttackTarget } from './abuse/attack.ts';
import {
  type AttackedRelay,
  type NodeOptions,
  NotHere,
  oneProcess,
  startBareServer,
} from './abuse/relays.ts';
import { attacks } from './abuse/rows.ts';
import { count, flag, number, readOptions, text, words } from './options.ts';
import { waitedForCore } from './process-cpu.ts';

const values = readOptions('npm run bench:abuse', {
  rows: words(Object.keys(attacks)),
  calls: count(1_000),
  seconds: number(15),
  runs: count(3),
  settle: number(15),
  pause: number(10),
  bare: flag,
  flags: text('FLAGS'),
  env: text('NAME=VALUE,NAME=VALUE'),
});
const { calls } = values;

interface Latency {
  readonly p50: number;
  readonly p99: number;
  /** The same without the time in which the caller was ready and waited for its own core. */
  readonly served: number;
  /** Calls that failed: refused, or the connection was lost. */
  readonly failed: number;
}

/** A measurement, with the share of one core that the relay used meanwhile. */
interface Measured extends Latency {
  readonly share: number;
}

async function withShare(pids: Pids, work: () => Promise<Latency>): Promise<Measured> {
  const [started, used] = [performance.now(), sum(pids, cpuTime)];
  const latency = await work();
  const seconds = (performance.now() - started) / 1_000;
  return { ...latency, share: (sum(pids, cpuTime) - used) / seconds };
}

/** Calls at most once in `--pause` milliseconds, as a busy client does; at least for `seconds`. */
async function measure(caller: Caller, seconds: number): Promise<Latency> {
  const latencies: number[] = [];
  const served: number[] = [];
  let failed = 0;
  const until = performance.now() + seconds * 1_000;
  while (latencies.length + failed < calls || performance.now() < until) {
    const waited = waitedForCore();
    const started = performance.now();
    try {
      const answer = await caller.call('message.timeline.sync', { limit: 1 });
      const latency = performance.now() - started;
      if (answer.ok) {
        latencies.push(latency);
        served.push(Math.max(0, latency - (waitedForCore() - waited)));
      } else failed += 1;
    } catch {
      return { ...quantiles(latencies, served), failed: failed + 1 };
    }
    await setTimeout(Math.max(0, values.pause - (performance.now() - started)));
  }
  return { ...quantiles(latencies, served), failed };
}

function quantiles(latencies: number[], served: number[]): Omit<Latency, 'failed'> {
  const at = (values: number[], share: number) => {
    const sorted = values.toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  };
  return { p50: at(latencies, 0.5), p99: at(latencies, 0.99), served: at(served, 0.99) };
}

type Pids = AttackedRelay['pids'];

function sum(pids: Pids, figure: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + figure(pid), 0);
}

/** Resident memory of a process, MiB; NaN if it is gone. */
function memory(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/VmRSS:\s+([0-9]+)/.exec(status)?.[1]) / 1_024;
  } catch {
    return Number.NaN;
  }
}

/** CPU time of a process so far, seconds; NaN if it is gone. */
function cpuTime(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    // Hundredths of a second, in user mode and in the kernel.
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return Number.NaN;
  }
}

/** Follows the highest memory until it is disposed of. */
class Peak implements Disposable {
  highest = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(pids: Pids) {
    this.#timer = setInterval(() => {
      this.highest = Math.max(this.highest, sum(pids, memory) || 0);
    }, 50);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}

/**
 * Pins a process to one core, if that is allowed; otherwise the figures say less. Its priority stays as
 * it is: the kernel's own work, of which the network is a part, would wait for a higher one.
 */
function pin(pid: number, core: number): void {
  try {
    execFileSync('taskset', ['-a', '-cp', String(core), String(pid)], { stdio: 'ignore' });
  } catch {}
}

/** Runs a row's attacker while `work` runs. */
async function during<T>(name: string, target: AttackTarget, work: () => Promise<T>): Promise<T> {
  const program = new URL('./abuse-attacker.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, name, JSON.stringify(target)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  pin(child.pid as number, 1);
  const begun = attacks[name]?.hasPreparation === true ? once(child.stdout, 'data') : undefined;
  const ended = once(child, 'exit');
  const failed = ended.then(() => {
    throw new Error(`the attacker of ${name} ended by itself`);
  });
  try {
    await Promise.race([begun, failed]);
    return await Promise.race([work(), failed]);
  } finally {
    failed.catch(() => {});
    child.stdin.end();
    const late = AbortSignal.timeout(5_000);
    late.addEventListener('abort', () => child.kill('SIGKILL'));
    await ended;
  }
}

/** Gives an account a timeline with a page of about 900 KB; returns its path and query. */
async function fillTimeline(context: TestContext, of: TestAccount): Promise<string> {
  const sender = await context.testAccount();
  for (let count = 0; count < 10; count += 1) {
    const params = grantedMessage(sender.device, [of.device], {
      senders: [sender.device.certificate],
      text: 'x'.repeat(60_000),
    });
    await context.expectOk(sender.caller, 'message.send', params);
  }
  return '/message/timeline/sync?limit=100';
}

async function measureRow(name: string): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const makeRelay = attacks[name]?.relay ?? oneProcess;
  const { base, folder, pids, befall } = await makeRelay(parts, nodeOptions());
  for (const pid of pids) pin(pid, 0);
  const kit = {
    relay: base,
    registry: join(folder, 'registry.json'),
    ca: join(folder, 'tls', 'ca.pem'),
  };
  const target = await loadTarget(kit);
  const context = parts.use(await TestContext.open(target, 'wss'));
  const { caller: victim } = await context.testAccount();
  const attacker = await context.testAccount();
  const page = await fillTimeline(context, attacker);
  const { token } = await context.authenticateDevice(context.https(), attacker.device);
  const known = { https: base, ca: target.ca ?? '', token, page, kit, folder };
  await measure(victim, 0);
  const results: Result[] = [];
  for (let run = 0; run < values.runs; run += 1) {
    results.push(await measureRun({ name, target: known, victim, pids, befall }));
    print(`${name} ${run + 1}`, results.slice(-1));
    if (Number.isNaN(results.at(-1)?.after)) break;
  }
  if (results.length > 1) print(`${name} median`, results);
  if (values.bare && befall === undefined) await measureBare(name, known, target);
}

/** Returns the flags and the environment of the relay's Node. */
function nodeOptions(): NodeOptions {
  const entries = (values.env?.split(',') ?? []).map((entry) => {
    const [name = '', ...value] = entry.split('=');
    return [name, value.join('=')];
  });
  return { flags: values.flags?.split(' ') ?? [], env: Object.fromEntries(entries) };
}

interface Run {
  /** Of the row. */
  readonly name: string;
  readonly target: AttackTarget;
  readonly victim: Caller;
  readonly pids: Pids;
  readonly befall?: AttackedRelay['befall'];
}

async function measureRun({ name, target, victim, pids, befall }: Run): Promise<Result> {
  const quiet = await withShare(pids, () => measure(victim, 0));
  const before = sum(pids, memory);
  using peak = new Peak(pids);
  const under = await during(name, target, async () => {
    await using _fault = await befall?.();
    return await withShare(pids, () => measure(victim, values.seconds));
  });
  await setTimeout(values.settle * 1_000);
  return { quiet, under, before, peak: peak.highest, after: sum(pids, memory) };
}

/** Measures the same attack on a server that does nothing; the attacker's accounts stay at the relay. */
async function measureBare(name: string, relay: AttackTarget, target: Target): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const { pid, host } = await startBareServer(parts, relay.folder);
  pin(pid, 0);
  const victim = parts.use(await WssCaller.open(target, `wss://${host}/`));
  const bare = `wss://${host}/`;
  const known = { ...relay, https: `https://${host}/svc/v1`, bare };
  const results: Result[] = [];
  await measure(victim, 0);
  for (let run = 0; run < values.runs; run += 1) {
    results.push(await measureRun({ name, target: known, victim, pids: [pid] }));
  }
  print(`${name}, a bare server`, results);
}

interface Result {
  readonly quiet: Measured;
  readonly under: Measured;
  /** MiB. */
  readonly before: number;
  readonly peak: number;
  readonly after: number;
}

/** Prints the medians of several results. */
function print(title: string, results: readonly Result[]): void {
  const of = (value: (result: Result) => number) => {
    const sorted = results.map(value).sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  const pair = (quantile: 'p50' | 'p99' | 'served') =>
    `${ms(of(({ quiet }) => quiet[quantile]))} -> ${ms(of(({ under }) => under[quantile]))} ms`;
  const ratio = (quantile: 'p99' | 'served') =>
    of(({ quiet, under }) => under[quantile] / quiet[quantile]).toFixed(1);
  const memory = [of(({ before }) => before), of(({ peak }) => peak), of(({ after }) => after)];
  const columns = [
    title.padEnd(32),
    `p50 ${pair('p50')}`,
    `p99 ${pair('p99')} (x ${ratio('p99')})`,
    `served ${pair('served')} (x ${ratio('served')})`,
    `cpu ${percent(of(({ quiet }) => quiet.share))} -> ${percent(of(({ under }) => under.share))}`,
    `failed ${of(({ under }) => under.failed)}`,
    `memory ${memory.map((mebibytes) => mebibytes.toFixed(0)).join(' / ')} MiB`,
  ];
  console.log(columns.join('   '));
}

function ms(milliseconds: number): string {
  return milliseconds.toFixed(1).padStart(6);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}

pin(process.pid, 0);
for (const name of values.rows) {
  console.log(`\n${attacks[name]?.title ?? name}`);
  try {
    await measureRow(name);
  } catch (error) {
    if (!(error instanceof NotHere)) throw error;
    console.log(`${name}: not measured: ${error.message}`);
  }
}
