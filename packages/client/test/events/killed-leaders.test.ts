/** Programs of one store that are killed again and again while they are connected (decision 0034). */
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { upTo } from '../../../relay/test/support/chance.ts';
import { patience } from '../../../relay/test/support/patience.ts';
import { SqliteStore } from '../../src/node.ts';
import { KillableProgram } from '../support/killable-program.ts';
import { befriend, relayWithClients, texts } from '../support/relay-with-clients.ts';

const world = relayWithClients();
/** `KILLS` asks for more, by hand. */
const kills = Number(process.env.KILLS ?? 5);
const programs = new Set<KillableProgram>();
afterEach(async () => {
  for (const program of programs) await program.kill();
  programs.clear();
});

/** Bob's store, and Ann, his contact. */
async function setScene() {
  const storePath = join(world.folder, 'bob.sqlite');
  const ann = await world.person();
  const client = await world.client({ store: SqliteStore.open(storePath) });
  const bob = await client.setUp();
  await befriend(ann, bob);
  await bob.sync();
  await client.close();
  const start = async () => {
    const program = KillableProgram.start({ relayFolder: join(world.folder, 'relay'), storePath });
    programs.add(program);
    await vi.waitFor(() => expect(program.isReady).toBe(true), patience);
    return program;
  };
  // A third program, which only posts.
  const posting = await world.client({ store: SqliteStore.open(storePath), prefer: 'http' });
  return { ann, bob: await posting.account(), start };
}

const numbers = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(from + index));

test('each event reaches each reader once, whenever the connected program is killed', async () => {
  const { ann, bob, start } = await setScene();
  const all: KillableProgram[] = [];
  // The older one is connected; the other waits for its death.
  let [leader, next] = [await start(), await start()];
  all.push(leader, next);
  let written = 0;
  const posted: string[] = [];
  for (let round = 0; round < kills; round += 1) {
    const before = written;
    const writing = (async () => {
      for (let count = 0; count < 8; count += 1, written += 1) {
        await ann.messages.send(bob.id, { text: String(written) });
      }
    })();
    const posting = bob.messages.post(ann.id, { text: `answer ${round}` });
    posted.push((await posting).messageId);
    // At some moment: before, during or after these messages arrive.
    const moment = before + upTo(8) - 1;
    await vi.waitFor(() => expect(leader.texts).toContain(String(moment)), {
      ...patience,
      interval: 1,
    });
    for (let turns = upTo(20); turns > 0; turns -= 1) await setImmediate();
    const connections = next.connections;
    await leader.kill();
    programs.delete(leader);
    await writing;
    // The other one has taken over, and reads what was written meanwhile.
    const last = String(written - 1);
    await vi.waitFor(() => expect(next.connections).toBeGreaterThan(connections), patience);
    await vi.waitFor(() => expect(next.texts).toContain(last), patience);
    [leader, next] = [next, await start()];
    all.push(next);
  }
  // What the third program posted is sent, and everything about it is read.
  for (const messageId of posted) {
    expect(await bob.messages.settled({ from: bob.id, messageId })).toMatchObject({
      status: 'target_accepted',
    });
  }
  await ann.messages.send(bob.id, { text: String(written) });
  for (const reader of [leader, next]) {
    await vi.waitFor(() => expect(reader.texts.at(-1)).toBe(String(written)), patience);
  }
  for (const { texts: read } of all) {
    // Each reader: from where it began, without a gap, nothing twice.
    expect(read).toEqual(numbers(Number(read[0] ?? 0), read.length));
  }
  expect([...new Set(all.flatMap((program) => program.texts))]).toEqual(numbers(0, written + 1));
  for (const { statuses } of all) expect(statuses).toEqual([...new Set(statuses)]);
  const told = new Set(all.flatMap(({ statuses }) => statuses));
  const wanted = ['waiting', 'sending', 'target_accepted'];
  expect([...told].sort()).toEqual(
    posted.flatMap((id) => wanted.map((status) => `${id} ${status}`)).sort(),
  );
  await ann.sync();
  const answers = (await texts(ann)).filter((text) => text.startsWith('answer'));
  expect(answers).toEqual(numbers(0, kills).map((number) => `answer ${number}`));
}, 900_000);
