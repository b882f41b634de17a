/**
 * Two relays with a DHT between them, a third relay whose messages the test makes up, and one account
 * that moves: in any order of events each relay's memory follows a plain model.
 */
import type { FinalRoute } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { locate, observeRoute, readUsableRoute } from '../../src/accounts/index.ts';
import { seed } from '../support/chance.ts';
import { engine } from '../support/engine.ts';
import { withFailingWrite } from '../support/faults.ts';
import { NoReply } from './dht-link.ts';
import type { RouteMemory } from './route-memory.ts';
import { type RouteFacts, type Step, start, steps } from './route-memory-steps.ts';
import { finalRoute, foreignId, type Member, World } from './route-memory-world.ts';

/** Rules do not depend on the engine, transactions do: a relay on PostgreSQL takes ten times as long. */
const runs = engine === 'postgres' ? 25 : 150;

async function take(world: World, step: Step): Promise<void> {
  if (step.kind === 'partition') {
    world.isCut = step.isCut;
    return;
  }
  const member = world.members[step.at];
  switch (step.kind) {
    case 'put':
      return await put(world, member, { facts: step.route });
    case 'replay': {
      const route = world.sent.at(-1 - (step.index % Math.max(1, world.sent.length)));
      return route && (await put(world, member, { route }));
    }
    case 'faultyPut':
      return await faultyPut(world, member, step);
    case 'observe': {
      const { forged, ...valid } = step.route;
      const route = await finalRoute(world.ann, valid);
      if (step.route.relay === 2 || !member.isTimely(route)) return;
      await observeRoute(member.relay.context, route);
      member.memory.accept(route);
      return;
    }
    case 'lookUp':
      await locate(member.relay.context, world.ann.account, { now: member.now, refresh: true });
      return;
    case 'resolve':
      return await resolve(world, member);
    case 'publish':
      return await publish(world, member, step);
    case 'clock':
      member.relay.clock.advance(step.seconds);
      return;
    case 'restart':
      await member.restart();
      if (member.memory.route !== undefined) member.memory.isServed = true;
  }
}

/** Sends PUT_VALUE; it is echoed if the route is valid and current, and changes nothing else. */
async function put(
  world: World,
  member: Member,
  { facts, route: replayed }: { readonly facts?: RouteFacts; readonly route?: FinalRoute },
): Promise<void> {
  const route = replayed ?? (await finalRoute(world.ann, facts as RouteFacts));
  const isSigned = facts?.forged === undefined && facts?.relay !== 2;
  if (isSigned && replayed === undefined) world.sent.push(route);
  const isValid = isSigned && member.isTimely(route);
  const expected = isValid && world.put(member, route);
  const isEchoed = await member.link.put(route as never, foreignId).catch((error: unknown) => {
    if (error instanceof NoReply) return false;
    throw error;
  });
  expect(isEchoed).toBe(expected);
}

/**
 * Sends PUT_VALUE while a write or the commit fails, and restarts: an echo means that it is stored,
 * and the memory is that of before or of after (07 §B7).
 */
async function faultyPut(
  world: World,
  member: Member,
  { route: facts, writes }: Extract<Step, { kind: 'faultyPut' }>,
): Promise<void> {
  const { forged, ...valid } = facts;
  const route = await finalRoute(world.ann, valid);
  if (valid.relay === 2 || !member.isTimely(route)) return;
  const { faults } = member.relay;
  if (writes === undefined) {
    faults.beforeCommit = () => {
      throw new Error('fault of the test');
    };
  }
  const send = () => member.link.put(route as never, foreignId).catch(() => false);
  const isEchoed = await (writes === undefined
    ? send()
    : withFailingWrite(member.relay, writes, send));
  delete faults.beforeCommit;
  await member.restart();
  const after = member.memory.copy();
  const isCurrent = after.accept(route);
  const [row] = await member.relay.rows('account_routes');
  const stored = [row?.revision ?? -1, row?.conflict ?? 0];
  const isAfter = canonicalJson(stored as number[]) === canonicalJson(rowOf(after));
  if (isEchoed) expect([isCurrent, isAfter]).toEqual([true, true]);
  if (isAfter) member.memory = after;
  if (isEchoed) member.memory.isServed = true;
}

/** What is resolved is the highest known route; if there is none, the codes are those of 07 §B13. */
async function resolve(world: World, member: Member): Promise<void> {
  const { account } = world.ann;
  const answer = await member.relay.call('account.route.resolve', { account }).then(
    (route) => canonicalJson(route),
    (error: { code: string }) => error.code,
  );
  const { memory, now } = member;
  expect(answer).toBe(memory.text(now) ?? (memory.conflict ? 'invalid_state' : 'not_found'));
}

/** Publishes a route that names the relay; it is refused unless it may come into force. */
async function publish(
  world: World,
  member: Member,
  { revision, lives }: Extract<Step, { kind: 'publish' }>,
): Promise<void> {
  const { ann } = world;
  const { relay } = member;
  const session = { session: ann.accountSession() };
  await relay.codeOf('device.state.publish', await ann.state(), session);
  const draft = await ann.route({
    ...{ revision, relay_id: relay.relayId },
    ...{ updated_at: member.now, expires_at: member.now + lives },
  });
  const before = world.published.length;
  const highest = member.memory.highest;
  const code = await relay.codeOf('account.route.publish', draft, session);
  const route = world.published[before];
  if (code !== 'ok') {
    // Every refusal is one of a revision: looked up meanwhile, or known before.
    expect(['stale_state', 'state_conflict', 'invalid_state']).toContain(code);
    expect(revision > member.memory.highest).toBe(false);
    expect(route).toBeUndefined();
    return;
  }
  expect(route?.revision).toBe(revision);
  expect(revision).toBeGreaterThanOrEqual(highest);
}

const rowOf = ({ highest, conflict }: RouteMemory) => [highest, conflict ? 1 : 0];

/** Compares a relay with its model. */
async function compare(world: World, member: Member): Promise<void> {
  const { relay, memory, now } = member;
  const { account } = world.ann;
  const expected = memory.text(now);
  const { storage } = relay.context;
  expect(await storage.read((tx) => readUsableRoute(tx, account, now))).toBe(expected);
  const served = await member.link.get(account, foreignId);
  if (served !== undefined || memory.isServed) expect(served).toBe(expected);
  const [row] = await relay.rows('account_routes');
  expect([row?.revision ?? -1, row?.conflict ?? 0]).toEqual(rowOf(memory));
  // Only an account whose highest route names this relay has devices here.
  if (row?.relay_id !== relay.relayId) expect(await relay.rows('devices')).toEqual([]);
  else expect(await relay.rows('remote_devices')).toEqual([]);
}

interface Seen {
  readonly revision: number;
  readonly conflict: boolean;
}

async function readSeen({ relay }: Member): Promise<Seen> {
  const [row] = await relay.rows('account_routes');
  return { revision: Number(row?.revision ?? -1), conflict: row?.conflict === 1 };
}

/** What holds whatever the model says (07 §B11). */
function checkGrowth(before: Seen, after: Seen): void {
  expect(after.revision).toBeGreaterThanOrEqual(before.revision);
  if (before.conflict && !after.conflict) expect(after.revision).toBeGreaterThan(before.revision);
}

test('07 §B11: the memory of two relays follows the rules in any order of events', async () => {
  const property = fc.asyncProperty(steps, async (sequence) => {
    await using world = await World.start();
    for (const step of sequence) {
      const before = await Promise.all(world.members.map(readSeen));
      await take(world, step);
      for (const [index, member] of world.members.entries()) {
        await compare(world, member);
        checkGrowth(before[index] as Seen, await readSeen(member));
      }
    }
    await heal(world);
  });
  await fc.assert(property, { seed, numRuns: Number(process.env.TEST_RUNS ?? runs) });
});

/** Once they reach each other again, both know the highest route that either of them may use. */
async function heal(world: World): Promise<void> {
  world.isCut = false;
  for (const member of world.members) {
    member.relay.clock.advance(Math.max(0, 100 - (member.now - start)));
    await member.restart();
    if (member.memory.route !== undefined) member.memory.isServed = true;
  }
  for (const member of world.members) {
    await locate(member.relay.context, world.ann.account, { now: member.now, refresh: true });
    await compare(world, member);
  }
  for (const member of world.members) {
    const other = world.other(member);
    const shared = other.memory.usable(other.now);
    if (shared === undefined || !member.isTimely(shared)) continue;
    expect(member.memory.highest).toBeGreaterThanOrEqual(shared.revision);
  }
}
