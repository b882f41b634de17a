/**
 * Measures the relay DHT: requests, rounds and simulated time of lookups in networks of several
 * sizes, well, with a fifth of the relays gone, with a fifth lying, and after restarts; lookups and
 * publication over real TCP; what republication costs a relay with many accounts, computed and tried.
 *
 *   npm run bench:dht [-- --sizes 50,200,1000 --lookups 60 --tcp 100 --accounts 200
 *                      --republish 10000 --seconds 60]
 *
 * Simulated messages take 5 to 80 ms, a few of them fifty times as long.
 */
import { utf8 } from '@posthouse/protocol';
import { kadTypes } from '@posthouse/protocol/federation';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import { defaultLimits } from '../packages/relay/src/limits.ts';
import { resolve } from '../packages/relay/test/federation/dht-simulation/checks.ts';
import type { Found } from '../packages/relay/test/federation/dht-simulation/dht-relay.ts';
import { DhtWorld, shuffled } from '../packages/relay/test/federation/dht-simulation/dht-world.ts';
import { measureRepublication } from './dht-republication.ts';
import { TcpRelay } from './dht-tcp.ts';
import { count, counts, number, readOptions } from './options.ts';

const values = readOptions('npm run bench:dht', {
  sizes: counts([50, 200, 1_000]),
  lookups: count(60),
  tcp: number(100),
  accounts: number(200),
  republish: number(10_000),
  seconds: number(60),
});
const { lookups } = values;

/** A state of the network in which lookups are measured. */
type State = 'well' | 'fifth gone' | 'fifth lying' | 'restarts';
const states: readonly State[] = ['well', 'fifth gone', 'fifth lying', 'restarts'];

/** Routes that are looked up. */
const routes = 12;
/** Share of relays that restart with an empty routing table. */
const restartedShare = 0.3;

await measureSimulated();
await measureTcp(values.tcp);
computeRepublication();
await measureRepublication(values.republish, values.seconds);

async function measureSimulated(): Promise<void> {
  const table: Record<string, object> = {};
  for (const size of values.sizes) {
    for (const state of states) table[`${size} relays, ${state}`] = await simulated(size, state);
  }
  console.log('lookups in simulated time: median (95th of 100)');
  console.table(table);
}

async function simulated(size: number, state: State): Promise<object> {
  const lying = state === 'fifth lying' ? 0.2 : 0;
  const world = new DhtWorld({ seed: 1, relays: size, accounts: routes, lying });
  const found: Found[] = [];
  let isOver = false;
  const told = tell(world, state, found).finally(() => {
    isOver = true;
  });
  await world.scheduler.run(() => isOver, 1e9);
  await told;
  const of = (pick: (one: Found) => number) => spread(found.map(pick));
  return {
    requests: of(({ requests }) => requests),
    rounds: of(({ rounds }) => rounds),
    milliseconds: of(({ milliseconds }) => milliseconds),
    found: `${found.filter(({ route }) => route !== undefined).length} of ${lookups}`,
    complete: found.filter(({ isComplete }) => isComplete).length,
  };
}

/** Publishes routes, changes the network, and looks the routes up at relays that never saw them. */
async function tell(world: DhtWorld, state: State, found: Found[]): Promise<void> {
  const { relays, chance, stop } = world;
  for (const relay of relays) world.boot(relay, relays.length);
  for (let index = 0; index < routes; index += 1) {
    const home = chance.pick(world.honest);
    const account = await world.addAccount(index, home);
    world.within(home, async () => void (await home.publish(account.signer.account, stop.signal)));
    await world.scheduler.pause(60_000);
  }
  const some = shuffled(world.honest, chance);
  if (state === 'fifth gone') for (const relay of part(some, 0.2)) relay.stop();
  if (state === 'restarts') {
    for (const relay of part(some, restartedShare)) {
      relay.stop();
      world.boot(relay);
    }
  }
  for (let index = 0; index < lookups; index += 1) {
    const account = world.accounts[index % routes];
    const strangers = world.honest.filter(
      ({ memory }) => !memory.has(account?.signer.account ?? ''),
    );
    const finder = chance.pick(strangers.length > 0 ? strangers : world.honest);
    const one = account && (await resolve(world, finder, account));
    if (one !== undefined) found.push(one);
  }
}

function part<T>(items: readonly T[], share: number): readonly T[] {
  return items.slice(0, Math.floor(items.length * share));
}

/** Lookups and publication over loopback; all relays share this process and its CPU. */
async function measureTcp(count: number): Promise<void> {
  const relays = await TcpRelay.startAll(count);
  await using stack = new AsyncDisposableStack();
  for (const relay of relays) stack.use(relay);
  const signal = new AbortController().signal;
  const { accounts } = values;
  const record = (index: number) => {
    const key = primitives.sha256(utf8(`account ${index}`));
    return { key, value: utf8(JSON.stringify({ index, filled: 'x'.repeat(500) })) };
  };
  const publish = async (relay: TcpRelay, index: number) => {
    const { key, value } = record(index);
    const request = { type: kadTypes.getValue, key };
    const { nearest } = await relay.lookups.run({ request, signal });
    const task = { record: { key, value }, targets: nearest, enough: 3, within: 15_000, signal };
    const { stored } = await relay.publications.publish(task);
    return (await stored).length;
  };
  const lookUp = async (relay: TcpRelay, index: number) => {
    const before = relay.requests;
    const started = performance.now();
    let isFound = false;
    const request = { type: kadTypes.getValue, key: record(index).key };
    const onRecord = async () => {
      isFound = true;
    };
    await relay.lookups.run({ request, onRecord, signal });
    const milliseconds = performance.now() - started;
    return { milliseconds, requests: relay.requests - before, isFound };
  };
  const [home] = relays as [TcpRelay];
  for (let index = 0; index < 20; index += 1) await publish(home, index);
  const found: Awaited<ReturnType<typeof lookUp>>[] = [];
  for (let index = 0; index < lookups; index += 1) {
    const relay = relays[1 + ((index * 7) % (count - 1))] as TcpRelay;
    found.push(await lookUp(relay, index % 20));
  }
  console.log(`lookups over TCP, ${count} relays in this process; the first of a relay dial`);
  console.table({
    requests: spread(found.map(({ requests }) => requests)),
    milliseconds: spread(found.map(({ milliseconds }) => milliseconds)),
    found: `${found.filter(({ isFound }) => isFound).length} of ${lookups}`,
  });
  const sent = home.requests;
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (let index = 0; index < accounts; index += 1) await publish(home, index);
  const seconds = (performance.now() - started) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  const requests = (home.requests - sent) / accounts;
  const milliseconds = (user + system) / 1_000 / accounts;
  console.log(
    `republication of ${accounts} accounts over TCP, one after another, both ends in this process`,
  );
  console.table({
    'requests of an account': requests.toFixed(1),
    'CPU of an account, both ends': `${milliseconds.toFixed(1)} ms`,
    'CPU of a request, both ends': `${((milliseconds * 1_000) / requests).toFixed(0)} us`,
    'requests in a second': ((requests * accounts) / seconds).toFixed(0),
    'CPU of a million accounts in 12 h': `${((milliseconds * 1e6) / 1_000 / 43_200).toFixed(2)} cores`,
  });
}

/** What a relay with many accounts sends when it republishes each route every 12 hours. */
function computeRepublication(): void {
  const { dhtBucket } = defaultLimits;
  const interval = 43_200;
  const table: Record<string, object> = {};
  for (const accounts of [10_000, 100_000, 1_000_000]) {
    for (const others of [20, 49, 199, 999]) {
      const copies = Math.min(dhtBucket, others);
      // In a network of a bucket all are asked; in a larger one about the nearest and a few before.
      const asked = others <= dhtBucket ? others : copies + 6;
      const puts = (accounts * copies) / interval;
      table[`${accounts} accounts, ${others} others`] = {
        'PUT in a second': puts.toFixed(1),
        'GET in a second': ((accounts * asked) / interval).toFixed(1),
        'PUT to each relay': (puts / others).toFixed(2),
        // A route of 503 bytes, its key twice, and the echo.
        'KiB in a second': ((puts * 2 * 580) / 1_024).toFixed(0),
      };
    }
  }
  console.log('republication every 12 hours, computed');
  console.table(table);
}

function spread(items: readonly number[]): string {
  const sorted = items.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return `${at(0.5)} (${at(0.95)})`;
}
