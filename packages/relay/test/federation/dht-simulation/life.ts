/** What happens in a simulation of the DHT, and what is checked meanwhile. */
import {
  checkFound,
  checkMemory,
  checkServed,
  checkSpread,
  checkTables,
  republished,
  resolve,
} from './checks.ts';
import { type DhtRelay, valueLife } from './dht-relay.ts';
import { type Account, type DhtWorld, hour, shuffled } from './dht-world.ts';

export interface LifeOptions {
  /** Relays that look up each account at each check. */
  readonly finders: number;
  /** Milliseconds between two refreshes of a routing table. */
  readonly refreshInterval: number;
}

const minute = 60_000;
/** Share of honest relays that go at once. */
const gone = 0.2;
/** Seconds after which the route of the first account expires. */
const shortLife = 20 * 3_600;

/**
 * Lets everything happen: a start, routes of many accounts, a fifth of the relays gone and back,
 * restarts, a partition in which accounts move, and three days of republication.
 *
 * @throws the first rule that was broken
 */
export async function live(world: DhtWorld, options: LifeOptions): Promise<void> {
  const { scheduler, journal } = world;
  let isOver = false;
  const told = story(world, options).then(
    () => {
      isOver = true;
    },
    (error: unknown) => journal.failed(error),
  );
  await scheduler.run(() => isOver || journal.failure !== undefined, 200 * hour);
  world.stop.abort();
  if (journal.failure !== undefined) throw journal.failure;
  await told;
}

async function story(world: DhtWorld, options: LifeOptions): Promise<void> {
  const { finders } = options;
  const until = (hours: number) => pauseUntil(world, hours * hour);
  for (const relay of world.relays) boot(world, relay, options, world.relays.length);
  await openAccounts(world);
  await until(1.5);
  await checkFound(world, finders, 'after publication');
  checkTables(world);
  await until(2);
  const away = stopSome(world);
  await checkFound(world, finders, 'a fifth is gone');
  await restartSome(world, options);
  await until(14);
  await startAll(world, away, options);
  await until(16);
  await partition(world);
  await until(20.5);
  world.network.heal();
  journalTime(world, 'healed');
  await until(21);
  await restartSome(world, options);
  await pauseUntil(world, 20.5 * hour + republished);
  await checkFound(world, finders, 'after moves in a partition');
  checkServed(world);
  const awayAgain = stopSome(world);
  await checkFound(world, finders, 'another fifth is gone');
  await until(40);
  await startAll(world, awayAgain, options);
  await pauseUntil(world, 21 * hour + republished + valueLife * 1_000 + hour);
  await checkFound(world, finders, 'at the end');
  checkServed(world);
  checkTables(world);
  checkSpread(world);
}

/** Starts a relay with its work: refreshing its table, republishing the routes of its accounts. */
function boot(world: DhtWorld, relay: DhtRelay, options: LifeOptions, knows?: number): void {
  world.boot(relay, knows);
  checkMemory(world, relay);
  if (relay.lie !== undefined) return;
  world.within(relay, () =>
    refreshAlways(world, relay, { ...options, isEmpty: knows === undefined }),
  );
  for (const account of world.accounts) {
    if (relay.due.has(account.signer.account)) republishAlways(world, relay, account);
  }
}

async function refreshAlways(
  { scheduler, chance, stop }: DhtWorld,
  relay: DhtRelay,
  { refreshInterval, isEmpty }: { readonly refreshInterval: number; readonly isEmpty: boolean },
): Promise<void> {
  if (!isEmpty) await scheduler.pause(refreshInterval * chance.number());
  for (;;) {
    await relay.refreshTable(chance, stop.signal);
    await scheduler.pause(refreshInterval * chance.between(0.9, 1.1));
  }
}

/** Publishes the route of an account when it is due, until the account leaves. */
function republishAlways(
  world: DhtWorld,
  relay: DhtRelay,
  account: Account,
  leaving?: DhtRelay,
): void {
  const { scheduler, chance, options, stop, journal } = world;
  const id = account.signer.account;
  world.within(relay, async () => {
    for (let left = leaving; ; left = undefined) {
      await scheduler.pause(Math.max(0, (relay.due.get(id) ?? 0) - scheduler.milliseconds));
      const published = await relay.publish(id, stop.signal, left?.peer);
      journal.record(`${relay.name} published ${account.name}: ${published?.stored.length}`);
      if (published === undefined) return void relay.due.delete(id);
      checkStored(world, relay, { account, stored: published.stored.map(({ peerId }) => peerId) });
      if (options.defect?.flags?.has('no-republication')) return;
      const isAtOnce = options.defect?.flags?.has('at-once');
      const next = 12 * hour * chance.between(0.9, 1.1);
      const rounded = 12 * hour - (scheduler.milliseconds % (12 * hour));
      // A policy that was missed makes the next publication due soon.
      const wait = published.isEnough ? (isAtOnce ? rounded : next) : 5 * minute;
      relay.due.set(id, scheduler.milliseconds + wait);
    }
  });
}

/** A relay that counts as a replica has the record, unless it lies or has ended (07 §B7). */
function checkStored(
  world: DhtWorld,
  relay: DhtRelay,
  { account, stored }: { readonly account: Account; readonly stored: readonly Uint8Array[] },
): void {
  for (const peerId of stored) {
    const other = world.relayOf(peerId);
    if (other === undefined || other.lie !== undefined) continue;
    const known = other.memory.get(account.signer.account);
    const isStored = known !== undefined && known.revision >= account.route.revision - 1;
    world.journal.must(isStored, () => `${other.name} counts as a replica for ${relay.name}`);
  }
}

async function openAccounts(world: DhtWorld): Promise<void> {
  const { accounts: count } = world.options;
  for (let index = 0; index < count; index += 1) {
    const home = world.chance.pick(world.honest);
    const account = await world.addAccount(index, home, index === 0 ? shortLife : undefined);
    republishAlways(world, home, account);
    await world.scheduler.pause(hour / count);
  }
}

function stopSome(world: DhtWorld): DhtRelay[] {
  const honest = shuffled(world.honest, world.chance);
  const stopped = honest.slice(0, Math.floor(honest.length * gone));
  for (const relay of stopped) relay.stop();
  journalTime(world, `${stopped.length} relays stopped`);
  return stopped;
}

/** Starts relays again over half an hour. */
async function startAll(
  world: DhtWorld,
  relays: readonly DhtRelay[],
  options: LifeOptions,
): Promise<void> {
  for (const relay of relays) {
    boot(world, relay, options);
    await world.scheduler.pause(hour / 2 / relays.length);
  }
}

/** Restarts some relays, one after another, each with an empty table. */
async function restartSome(world: DhtWorld, options: LifeOptions): Promise<void> {
  const honest = shuffled(world.honest, world.chance);
  for (const relay of honest.slice(0, Math.ceil(honest.length / 20))) {
    relay.stop();
    await world.scheduler.pause(minute);
    boot(world, relay, options);
    journalTime(world, `${relay.name} restarted`);
    await world.scheduler.pause(minute);
  }
}

/** Cuts the network in two halves; a third of the accounts move meanwhile, and some are looked up. */
async function partition(world: DhtWorld): Promise<void> {
  const { relays, network, chance, accounts } = world;
  const mixed = shuffled(relays, chance);
  const half = mixed.slice(0, mixed.length / 2);
  const rest = mixed.slice(mixed.length / 2);
  for (const one of half) {
    for (const other of rest) {
      network.cut(one, other);
      network.cut(other, one);
    }
  }
  journalTime(world, 'cut in two');
  for (const account of accounts.filter((_, index) => index % 3 === 1)) {
    const left = account.home;
    const home = chance.pick(world.honest.filter((relay) => relay !== left));
    await world.adopt(account, home);
    journalTime(world, `${account.name} moves to ${home.name}`);
    republishAlways(world, home, account, left);
    await world.scheduler.pause(minute);
    const [finder] = shuffled(world.honest, chance);
    if (finder !== undefined) await resolve(world, finder, account);
  }
}

async function pauseUntil({ scheduler }: DhtWorld, milliseconds: number): Promise<void> {
  await scheduler.pause(Math.max(0, milliseconds - scheduler.milliseconds));
}

function journalTime({ journal }: DhtWorld, text: string): void {
  journal.record(text);
}
