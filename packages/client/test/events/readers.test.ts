/** Any number of readers of one store, each of which gets every event once (decision 0034). */
import { describe, expect, test, vi } from 'vitest';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import { patience } from '../../../relay/test/support/patience.ts';
import { recordPassing } from '../../src/events/event-log.ts';
import {
  type Account,
  type AccountEvent,
  type Client,
  MemoryStore,
  type Store,
} from '../../src/index.ts';
import { NodeTransport, SqliteStore } from '../../src/node.ts';
import { MortalProgram, ProgramDied } from '../support/mortal-program.ts';
import { befriend, relayWithClients, withoutStatus } from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { channels: true } });
const folder = temporaryFolder();
let files = 0;

/** Opens a store as often as there are programs on it. */
const kinds: Record<string, () => () => Store> = {
  memory: () => {
    const store = new MemoryStore();
    return () => store;
  },
  'a SQLite file': () => {
    files += 1;
    const path = `${folder.path}/${files}.sqlite`;
    return () => SqliteStore.open(path);
  },
};

function textOf(event: AccountEvent): string[] {
  if (event.kind === 'message') return [event.message.body?.text ?? ''];
  return event.kind === 'channel-post' ? [event.post.body?.text ?? ''] : [];
}

/** A reader that follows until it is stopped. */
class Reader {
  readonly events: AccountEvent[] = [];
  readonly #stop = new AbortController();
  readonly ended: Promise<void>;

  constructor(account: Account) {
    this.ended = this.#run(account);
  }

  async #run(account: Account): Promise<void> {
    for await (const event of account.follow({ signal: this.#stop.signal })) {
      this.events.push(event);
    }
  }

  get texts(): string[] {
    return this.events.flatMap(textOf);
  }

  /** How often it was told that a program of the store is connected. */
  get connections(): number {
    return this.events.filter((e) => e.kind === 'connection' && e.state === 'connected').length;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.ended;
  }
}

/** Bob with programs on one store, and Ann who writes to him. */
async function pair(open: () => Store, programs: number) {
  const ann = await world.person();
  const clients: Client[] = [await world.client({ store: open() })];
  const bobs = [await (clients[0] as Client).setUp()];
  await befriend(ann, bobs[0] as Account);
  for (let index = 1; index < programs; index += 1) {
    const client = await world.client({ store: open() });
    clients.push(client);
    bobs.push(await client.account());
  }
  return { ann, bobs, clients };
}

async function write(ann: Account, to: Account, texts: readonly string[]): Promise<void> {
  for (const text of texts) await ann.messages.send(to.id, { text });
}

const numbers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => String(from + index));

describe.each(Object.entries(kinds))('%s', (_, kind) => {
  test('two readers of one account get each of 20 events once, in order', async () => {
    const { ann, bobs } = await pair(kind(), 1);
    const [bob] = bobs as [Account];
    const readers = [new Reader(bob), new Reader(bob)];
    await write(ann, bob, numbers(20));
    for (const reader of readers) {
      await vi.waitFor(() => expect(reader.texts).toHaveLength(20), patience);
      expect(reader.texts).toEqual(numbers(20));
    }
    await Promise.all(readers.map((reader) => reader.stop()));
  });

  test('two programs on one store get each of 20 events once; when one ends, the other goes on', async () => {
    const { ann, bobs, clients } = await pair(kind(), 2);
    const [one, other] = bobs as [Account, Account];
    const readers = [new Reader(one), new Reader(other)] as const;
    await write(ann, one, numbers(20));
    for (const reader of readers) {
      await vi.waitFor(() => expect(reader.texts).toEqual(numbers(20)), patience);
    }
    for (const reader of readers) expect(reader.connections).toBe(1);
    // The one that is connected ends; the other takes over.
    await clients[0]?.close();
    await readers[0].ended;
    await write(ann, other, numbers(5, 20));
    await vi.waitFor(() => expect(readers[1].texts).toEqual(numbers(25)), patience);
    await readers[1].stop();
  });

  test('what one program reads, the other returns from its next sync, once', async () => {
    const { ann, bobs } = await pair(kind(), 2);
    const [one, other] = bobs as [Account, Account];
    await other.sync();
    const reader = new Reader(one);
    await write(ann, one, numbers(3));
    await vi.waitFor(() => expect(reader.texts).toEqual(numbers(3)), patience);
    expect((await other.sync()).flatMap(textOf)).toEqual(numbers(3));
    expect((await other.sync()).flatMap(textOf)).toEqual([]);
    await reader.stop();
  });

  test('a program that follows later knows of the connection; what it follows, the connected one reads', async () => {
    const { ann, bobs } = await pair(kind(), 2);
    const [one, other] = bobs as [Account, Account];
    const first = new Reader(one);
    await vi.waitFor(() => expect(first.connections).toBe(1), patience);
    // Its mark is stored, so that the other begins after the event.
    await write(ann, one, ['hello']);
    await vi.waitFor(() => expect(first.texts).toEqual(['hello']), patience);
    const later = new Reader(other);
    await vi.waitFor(() => expect(later.connections).toBe(1), patience);
    const { id, link } = await ann.channels.create({ name: 'News' });
    await other.channels.follow(link);
    await ann.channels.post(id, { text: 'news' });
    for (const reader of [first, later]) {
      await vi.waitFor(() => expect(reader.texts).toContain('news'), patience);
      expect(reader.connections).toBe(1);
    }
    await Promise.all([first.stop(), later.stop()]);
  });

  test('an event during which the loop ends is the first of the next reader', async () => {
    const open = kind();
    const { ann, bobs, clients } = await pair(open, 1);
    const [bob] = bobs as [Account];
    await write(ann, bob, numbers(4));
    const { signal } = new AbortController();
    for await (const event of bob.follow({ signal })) {
      if (textOf(event)[0] === '2') break;
    }
    await clients[0]?.close();
    const again = await (await world.client({ store: open() })).account();
    expect((await again.sync()).flatMap(textOf)).toEqual(['2', '3']);
    expect((await again.sync()).flatMap(textOf)).toEqual([]);
  });

  test('decision 0034: a named reader misses nothing over restarts, whatever else reads meanwhile', async () => {
    const open = kind();
    const { ann, bobs, clients } = await pair(open, 1);
    const [bob] = bobs as [Account];
    const again = async () => {
      await clients.pop()?.close();
      clients.push(await world.client({ store: open() }));
      return await (clients[0] as Client).account();
    };
    const seen: string[] = [];
    const states: unknown[] = [];
    /** Follows until a text was finished with, and leaves while the next one is being handled. */
    const bot = async (account: Account, last: string) => {
      for await (const event of account.follow({ reader: 'bot' })) {
        if (event.kind === 'connection') states.push(event.state);
        const [text] = textOf(event);
        if (text === undefined) continue;
        if (seen.at(-1) === last) break;
        seen.push(text);
        if (text === last) await ann.messages.send(account.id, { text: 'stop' });
      }
    };
    await write(ann, bob, ['0']);
    await bot(bob, '0');
    // Others read what comes while it is away. It left while it handled 'stop'.
    const reader = await again();
    await write(ann, bob, ['1', '2']);
    for await (const event of reader.follow()) if (textOf(event)[0] === '2') break;
    states.splice(0);
    const late = await again();
    await late.sync();
    await bot(late, '2');
    expect(seen).toEqual(['0', 'stop', '1', '2']);
    // Not what the connection was while it was away.
    expect(states).toEqual(['connecting', 'connected']);
    await write(ann, bob, ['3']);
    await bot(await again(), '3');
    expect(seen).toEqual(['0', 'stop', '1', '2', 'stop', '3']);
    const last = await again();
    await last.forgetReader('bot');
    await last.sync();
    await write(ann, bob, ['4']);
    await bot(last, '4');
    expect(seen).toEqual(['0', 'stop', '1', '2', 'stop', '3', '4']);
  });

  test('what a sync of one channel returned does not come again after a restart; the rest does', async () => {
    const open = kind();
    const { ann, bobs, clients } = await pair(open, 1);
    const [bob] = bobs as [Account];
    const { id, link } = await ann.channels.create({ name: 'News' });
    const other = await ann.channels.create({ name: 'Other' });
    for (const each of [link, other.link]) await bob.channels.follow(each);
    await bob.sync();
    const again = async () => {
      await clients.pop()?.close();
      clients.push(await world.client({ store: open() }));
      return await (clients[0] as Client).account();
    };
    await ann.channels.send(id, { text: 'news' });
    expect((await bob.channels.sync(id)).flatMap(textOf)).toEqual(['news']);
    expect((await (await again()).sync()).flatMap(textOf)).toEqual([]);
    // Taken before an earlier event of another one, which no reader has finished with.
    const program = await again();
    await ann.channels.send(other.id, { text: 'other' });
    await program.channels.sync(id);
    await recordPassing({ store: open() }, [{ kind: 'group-joined', groupId: 'before' }]);
    await ann.channels.send(id, { text: 'more' });
    expect((await program.channels.sync(id)).flatMap(textOf)).toEqual(['more']);
    const events = await (await again()).sync();
    expect(events.filter(({ kind }) => kind === 'group-joined')).toHaveLength(1);
    expect(events.flatMap(textOf)).toEqual(['other']);
    expect(withoutStatus(await (await again()).sync())).toEqual([]);
  });

  test('a reader that falls more events back than the log holds gets one event about it, and the rest', async () => {
    const open = kind();
    const { bobs } = await pair(open, 1);
    const [bob] = bobs as [Account];
    await bob.sync();
    const { signal } = new AbortController();
    const events = bob.follow({ signal });
    await events.next();
    const many: AccountEvent[] = numbers(10_050).map((groupId) => ({
      kind: 'group-ended',
      groupId,
    }));
    await recordPassing({ store: open() }, many);
    const found: AccountEvent[] = [];
    for await (const event of events) {
      if (event.kind === 'events-missed' || event.kind === 'group-ended') found.push(event);
      if (event.kind === 'group-ended' && event.groupId === '10049') break;
    }
    expect(found.filter(({ kind }) => kind === 'events-missed')).toHaveLength(1);
    expect(found[0]).toEqual({ kind: 'events-missed' });
    expect(found.length).toBeGreaterThan(9_000);
  });

  test('a subscriber gets every event until it is disposed; the state changes only when it does', async () => {
    const { ann, bobs } = await pair(kind(), 1);
    const [bob] = bobs as [Account];
    const texts: string[] = [];
    const states: unknown[] = [];
    expect(bob.state.getSnapshot()).toBeUndefined();
    const end = bob.state.subscribe(() => states.push(bob.state.getSnapshot()));
    const subscription = bob.subscribe((event) => texts.push(...textOf(event)));
    await write(ann, bob, numbers(3));
    await vi.waitFor(() => expect(texts).toEqual(numbers(3)), patience);
    await vi.waitFor(
      () => expect(bob.state.getSnapshot()?.connection).toMatchObject({ state: 'connected' }),
      patience,
    );
    expect(bob.state.getSnapshot()).toBe(bob.state.getSnapshot());
    expect(new Set(states.map((state) => JSON.stringify(state))).size).toBe(states.length);
    subscription[Symbol.dispose]();
    await vi.waitFor(() => expect(bob.state.getSnapshot()?.connection).toBeUndefined(), patience);
    end();
  });
});

test('a program that dies anywhere between the store and the event leaves the event to the next', async () => {
  const ann = await world.person();
  let isThrough = false;
  for (let dieAt = 1; !isThrough; dieAt += 2) {
    const store = new MemoryStore();
    const first = await world.client({ store });
    const bob = await first.setUp();
    await befriend(ann, bob);
    await first.close();
    await write(ann, bob, ['hello']);
    using transport = new NodeTransport({ ca: world.ca });
    const program = new MortalProgram(store, transport, dieAt);
    const told: string[] = [];
    const live = async () => {
      const client = await world.client({ ...program, prefer: 'http' });
      const stop = new AbortController();
      for await (const event of (await client.account()).follow({ signal: stop.signal })) {
        told.push(...textOf(event));
        if (told.length > 0) stop.abort();
      }
    };
    await live().catch((error: unknown) => expect(error).toBeInstanceOf(ProgramDied));
    isThrough = !program.isDead;
    const next = await (await world.client({ store })).account();
    told.push(...(await next.sync()).flatMap(textOf));
    expect({ dieAt, texts: [...new Set(told)] }).toEqual({ dieAt, texts: ['hello'] });
    // It comes again only if the program died while it handled the event.
    if (isThrough) expect(told).toEqual(['hello']);
  }
});

test('follow without a signal runs until its loop is left or the client is closed', async () => {
  const client = await world.client({ store: new MemoryStore() });
  const account = await client.setUp();
  const kinds: string[] = [];
  for await (const event of account.follow()) {
    kinds.push(event.kind);
    break;
  }
  const following = (async () => {
    for await (const event of account.follow()) kinds.push(event.kind);
  })();
  await vi.waitFor(() => expect(kinds.length).toBeGreaterThan(1), patience);
  await client.close();
  await following;
});
