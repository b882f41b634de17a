/**
 * A program that dies at any point between writing a message and its last status: the message arrives
 * once, or was never written, and each of its statuses is one event (decision 0029).
 */
import { expect, test } from 'vitest';
import { share } from '../../../relay/test/support/chance.ts';
import { type Account, MemoryStore } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { postTexts } from '../channels/support.ts';
import { club, groupTexts } from '../groups/support.ts';
import { MortalProgram, ProgramDied } from '../support/mortal-program.ts';
import { befriend, relayWithClients, texts } from '../support/relay-with-clients.ts';
import { impatient } from '../support/restartable-client.ts';
import { statusLog } from '../support/status-log.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

interface Conversation {
  /** Writes a message and waits for its answer. */
  readonly write: (ann: Account, text: string) => Promise<unknown>;
  /** What has arrived, in order. */
  readonly arrived: (ann: Account) => Promise<string[]>;
}

const kinds: Record<string, (ann: Account) => Promise<Conversation>> = {
  'direct message': async (ann) => {
    const bob = await world.person();
    await befriend(ann, bob);
    return {
      write: async (of, text) => of.messages.settled(await of.messages.post(bob.id, { text })),
      arrived: async () => {
        await bob.sync();
        return await texts(bob);
      },
    };
  },
  'group message': async (ann) => {
    const id = await club(ann);
    return {
      write: async (of, text) => of.groups.settled(await of.groups.post(id, { text })),
      arrived: async (of) => await groupTexts(of, id),
    };
  },
  'channel post': async (ann) => {
    const { id } = await ann.channels.create({ name: 'News' });
    return {
      write: async (of, text) => of.channels.settled(await of.channels.post(id, { text })),
      arrived: async (of) => await postTexts(of, id),
    };
  },
};

/** `npm test` tries each seventh point, `npm run test:long` the others. */
const isTried = (point: number) => share === 'all' || (point % 7 === 3) === (share === 'part');

test.each(Object.entries(kinds))(
  '04 §15.1: a %s whose program dies at any point is told and arrives once, or was never written',
  async (_, begin) => {
    const store = new MemoryStore();
    const client = await world.client({ store, ...impatient });
    const ann = await client.setUp();
    const { write, arrived } = await begin(ann);
    await ann.sync();
    await client.close();
    const written: string[] = [];
    const known = new Set<string | undefined>();
    let isThrough = false;
    for (let dieAt = 1; !isThrough; dieAt += 1) {
      if (!isTried(dieAt) && dieAt < 200) continue;
      using transport = new NodeTransport({ ca: world.ca });
      const program = new MortalProgram(store, transport, dieAt);
      const live = async () => {
        const mortal = await world.client({ ...program, ...impatient });
        await write(await mortal.account(), String(dieAt));
      };
      await live().catch((error: unknown) => expect(error).toBeInstanceOf(ProgramDied));
      isThrough = !program.isDead;
      await using next = await world.client({ store, ...impatient });
      await (await next.account()).sync();
      const events = (await statusLog(store)).filter(({ messageId }) => !known.has(messageId));
      const ids = new Set(events.map(({ messageId }) => messageId));
      for (const id of ids) known.add(id);
      if (ids.size === 0) continue;
      written.push(String(dieAt));
      const statuses = events.map(({ status }) => status);
      expect({ dieAt, ids: ids.size, statuses }).toEqual({
        dieAt,
        ids: 1,
        statuses: ['waiting', 'sending', 'target_accepted'],
      });
    }
    const last = await (await world.client({ store, ...impatient })).account();
    await last.sync();
    expect(await arrived(last)).toEqual(written);
    expect((await last.status()).outbox).toBe(0);
    // Some died before the message was stored, most after that.
    expect(written.length).toBeGreaterThan(1);
  },
  120_000,
);
