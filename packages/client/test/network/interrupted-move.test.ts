/** A move to another relay that is interrupted at every point, and goes on (03 §12, 07 §B11, §B12). */
import type { AccountRoute } from '@posthouse/protocol';
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import { expect, test } from 'vitest';
import { type Account, MemoryStore, type Store } from '../../src/index.ts';
import { MortalProgram, ProgramDied } from '../support/mortal-program.ts';
import { texts } from '../support/relay-with-clients.ts';
import { impatient } from '../support/restartable-client.ts';
import { type RelayName, relaysWithClients } from './relays-with-clients.ts';

const world = relaysWithClients();

/** The relays, in turn: each move leaves the one before. */
const homeOf = (turn: number) => (['a', 'b', 'c'] as const)[turn % 3] as RelayName;

/** What a relay answers for an account's route. */
async function homeAt(name: RelayName, account: string): Promise<string> {
  const query = `account=${encodeURIComponent(account)}`;
  const answer = await world.transport().request({
    verb: 'GET',
    url: `${world.endpoint(name)}/account/route/resolve?${query}`,
    headers: {},
    signal: AbortSignal.timeout(20_000),
    maxBytes: 65_536,
  });
  return JSON.parse(Buffer.from(answer.body).toString()).relay_id;
}

/** The account in a program that has just started. */
async function started(store: Store): Promise<Account> {
  return await (await world.client({ store, ...impatient })).account();
}

test('03 §12.1: a program that dies at any point of a move finishes it after a restart', async () => {
  const store = new MemoryStore();
  const first = await world.person('a', { store, ...impatient });
  await first.profiles.publish({ nickname: 'Ann', public_discovery: true });
  const expected: string[] = [];
  const contents = new Map<number, string>();
  const note = (bodies: readonly string[]) => {
    for (const body of bodies) {
      const route = parseJson(body) as unknown as AccountRoute;
      const text = canonicalJson(route);
      const before = contents.get(route.revision) ?? text;
      expect(text, '07 §B11: one revision, one content').toBe(before);
      contents.set(route.revision, text);
    }
  };
  const stepsOfDeath = new Set<string>();
  let point = 0;
  for (let isOver = false; !isOver; ) {
    point += 1;
    const target = world.relayId(homeOf(point));
    const program = new MortalProgram(store, world.transport(), point);
    const { transport } = program;
    const dying = await world.client({ store: program.store, transport, ...impatient }).then(
      (client) => client.account(),
      (error: unknown) => error,
    );
    const outcome =
      dying instanceof Error
        ? dying
        : await (dying as Account).home.move(target).catch((error: unknown) => error);
    isOver = !program.isDead;
    if (!isOver) expect(outcome).toBeInstanceOf(ProgramDied);
    else expect(outcome).toBeUndefined();
    note(program.sentRoutes);
    const revived = new MortalProgram(store, world.transport(), Number.POSITIVE_INFINITY);
    const account = await started(revived.store);
    const unfinished = await account.home.unfinishedMove();
    stepsOfDeath.add(unfinished?.step ?? 'none');
    if ((await account.home.relayId()) !== target || unfinished !== undefined) {
      const { transport } = revived;
      const again = await world.client({ store, transport, ...impatient });
      await (await again.account()).home.move(target);
    }
    note(revived.sentRoutes);

    const moved = await started(store);
    expect(await moved.home.unfinishedMove()).toBeUndefined();
    expect(await moved.home.relayId()).toBe(target);
    expect(await homeAt(homeOf(point), moved.id)).toBe(target);
    expect(await moved.profiles.resolve(moved.id)).toMatchObject({ nickname: 'Ann' });
    const text = `after point ${point}`;
    await moved.messages.send(moved.id, { text });
    expected.push(text);
    expect(await moved.devices.list()).toMatchObject([{ isThisDevice: true, isValidNow: true }]);
  }
  const last = await started(store);
  await last.sync();
  expect(await texts(last)).toEqual(expected);
  expect(point).toBeGreaterThan(60);
  expect([...stepsOfDeath].sort()).toEqual(
    [
      'none',
      'last-sync',
      'stage',
      'sign-route',
      'publish',
      'profile',
      'first-sync',
      'replicate',
    ].sort(),
  );
  // No interruption made a device sign a second route.
  expect(contents.size).toBe(point);
}, 300_000);
