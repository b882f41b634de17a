/**
 * Faults of processes, NATS and PostgreSQL on a cluster under load, in random order, for as long as
 * is asked: `npm run test:crash -- --cluster --faults 100 [--seed 7]`. In between, and in the end,
 * `checker.ts` decides by what the clients saw whether anything was lost or doubled.
 */
import { parseArgs } from 'node:util';
import { TestContext } from '@posthouse/conformance';
import { chanceOf } from '../support/chance.ts';
import { check } from './checker.ts';
import { Cluster } from './cluster.ts';
import { describeFigures, figuresOf } from './figures.ts';
import { Debts, Load } from './load.ts';
import { Log } from './log.ts';
import { type Ground, Member } from './member.ts';
import { type Person, settlePerson } from './people.ts';
import { RemovedDevice } from './removals.ts';

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '100' },
    seed: { type: 'string', default: '4711' },
  },
});
const faults = Number(values.faults);
const seed = Number(values.seed);
const chance = chanceOf(seed);
/** A whole number from 0, below `end`. */
const below = (end: number) => Math.floor(chance() * end);
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const processes = 3;
/** One fault in so many is a removal, and after so many everything is read and checked. */
const removalEvery = 8;
const checkEvery = 10;
/** Attempts of 30 seconds each to see what must come. */
const maxAttempts = 6;

await using parts = new AsyncDisposableStack();
const log = new Log();
const debts = new Debts(log);
const cluster = parts.use(await Cluster.start({ processes, hasWays: true }));
const stage = parts.use(await TestContext.open(cluster.target, 'wss'));
const ground: Ground = { stage, log, chance };
const writers: Person[] = [];
for (const name of ['ann', 'bob', 'cat', 'dan']) {
  writers.push(await settlePerson(stage, name, ['wss', 'https']));
}
/** Their second devices are removed, one after another. */
const owners: Person[] = [];
for (let count = 0; count < Math.ceil(faults / removalEvery); count += 1) {
  owners.push(await settlePerson(stage, `own${count}`, ['wss', undefined]));
}
const members = [...writers, ...owners]
  .flatMap(({ phones }) => phones)
  .filter(({ transport }) => transport !== undefined)
  .map((phone) => parts.use(new Member(phone, ground)));
const load = parts.use(new Load(members, [...writers, ...owners], { chance }));

interface Fault {
  readonly name: string;
  readonly begin: () => Promise<void> | void;
  readonly end: () => Promise<void> | void;
}

/** A fault of each kind, at a process by chance. */
function kinds(): readonly Fault[] {
  const index = below(processes);
  const way = cluster.ways[index];
  if (way === undefined) throw new Error('the cluster has no proxies');
  return [
    {
      name: `SIGKILL of process ${index}`,
      begin: () => cluster.kill(index),
      end: () => cluster.revive(index),
    },
    {
      name: `process ${index} stopped for a while`,
      begin: async () => {
        cluster.pause(index);
        await pause(500 + below(6_000));
      },
      end: () => cluster.resume(index),
    },
    {
      name: `process ${index} cut off from PostgreSQL, silently`,
      begin: async () => {
        way.storage.fallSilent();
        await pause(below(8_000));
      },
      end: () => way.storage.speak(),
    },
    {
      name: `process ${index} cut off from PostgreSQL, refused`,
      begin: async () => {
        way.storage.refuse(true);
        way.storage.cutAll();
        await pause(below(8_000));
      },
      end: () => way.storage.refuse(false),
    },
    {
      name: `COMMITs of process ${index} cut`,
      begin: async () => {
        for (let cut = 0; cut < 10; cut += 1) {
          await way.storage.cut(/^COMMIT$/, { when: below(2) === 0 ? 'before' : 'after' });
        }
      },
      end: () => {},
    },
    {
      name: `process ${index} cut off from NATS`,
      begin: async () => {
        way.bus.cut();
        await pause(below(4_000));
      },
      end: () => way.bus.restore(),
    },
    { name: 'NATS stopped', begin: () => cluster.nats.stop(), end: () => cluster.nats.start() },
    {
      name: 'NATS hangs',
      begin: async () => {
        cluster.nats.pause();
        await pause(below(7_000));
      },
      end: () => cluster.nats.resume(),
    },
    { name: 'PostgreSQL restarted', begin: () => cluster.postgres.restart(), end: () => {} },
    {
      name: 'PostgreSQL crashed',
      begin: () => cluster.postgres.crash(),
      end: () => cluster.postgres.start(),
    },
    { name: 'connections of clients cut', begin: () => cluster.balancer.cut(), end: () => {} },
  ];
}

/** Removes the second device of a person under a fault, and prints for how long it was served. */
async function remove(owner: Person): Promise<void> {
  const index = below(processes);
  const way = cluster.ways[index];
  const lost = ['none', 'NATS stopped', 'a process without NATS', 'a process stopped'] as const;
  const fault = lost[removals % lost.length];
  removals += 1;
  log.add({ kind: 'fault', name: `removal ${removals}` });
  using device = await RemovedDevice.connect(owner, cluster, ground);
  if (fault === 'NATS stopped') await cluster.nats.stop();
  if (fault === 'a process without NATS') way?.bus.cut();
  if (fault === 'a process stopped') {
    cluster.pause(index);
    // The owner may be connected with this very process.
    setTimeout(() => cluster.resume(index), 3_000);
  }
  const member = members.find(({ phone }) => phone.owner === owner) as Member;
  await device.remove(member, log);
  const served = await device.servedFor();
  console.log(`removal (${fault}): read channels for ${served} ms after it was confirmed`);
  await cluster.nats.start();
  way?.bus.restore();
  log.add({ kind: 'recovered', name: `removal ${removals}` });
}

/** Waits longer than a test would: the machine may have much else to do. Says what it waits for. */
async function patiently(wait: () => Promise<void>): Promise<void> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      await wait();
      return;
    } catch (error) {
      console.log(`${(error as Error).message}\n${cluster.warnings.slice(-10).join('\n')}`);
      if (attempts === maxAttempts) throw error;
    }
  }
}

let removals = 0;
let problems = 0;

/** Waits until everything that was confirmed was read by all, and checks it. */
async function settle(done: number): Promise<void> {
  await patiently(() => debts.settled(load));
  const found = check(log.entries);
  problems = found.length;
  console.log(`${done} faults: ${debts.accepted} messages accepted, ${problems} findings`);
  for (const { rule, text } of found.slice(0, 10)) console.log(`  ${rule}: ${text}`);
  load.resume();
}

console.log(`seed ${seed}`);
const began = performance.now();
for (let done = 1; done <= faults && problems === 0; done += 1) {
  const owner = done % removalEvery === 0 ? owners[done / removalEvery - 1] : undefined;
  if (owner !== undefined) await remove(owner);
  else {
    const all = kinds();
    const fault = all[below(all.length)] as Fault;
    log.add({ kind: 'fault', name: `${done} ${fault.name}` });
    console.log(`${done} ${fault.name}`);
    await fault.begin();
    await fault.end();
    await patiently(() => debts.progress(20));
    log.add({ kind: 'recovered', name: `${done} ${fault.name}` });
  }
  for (const { storage } of cluster.ways) storage.statements.length = 0;
  if (done % checkEvery === 0) await settle(done);
}
await patiently(() => debts.settled(load));
await Promise.all(members.map((member) => member.readAgain()));
const found = check(log.entries);
const lines = describeFigures(figuresOf(log.entries, found));
console.log(
  [`seed ${seed}, ${Math.round((performance.now() - began) / 1_000)} s`, ...lines].join('\n'),
);
for (const { rule, text } of found.slice(0, 20)) console.log(`${rule}: ${text}`);
process.exitCode = found.length === 0 ? 0 : 1;
