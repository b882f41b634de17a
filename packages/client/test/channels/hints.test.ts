/** Following live: a hint causes a read and moves no position (06 §9.2, 02 §12, §13). */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Account, AccountEvent } from '../../src/index.ts';
import { isConnected } from '../support/connection-events.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { postTexts, textOf } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({
    host: { channels: true },
    limits: { channelSubscriptions: 2 },
  });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Follows an account until the test disposes of it. */
class Listener implements AsyncDisposable {
  readonly events: AccountEvent[] = [];
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;
  #waiting: { readonly is: (event: AccountEvent) => boolean; readonly resolve: () => void }[] = [];

  constructor(account: Account, options: { readonly pollInterval?: number } = {}) {
    this.#following = (async () => {
      for await (const event of account.follow({ signal: this.#stop.signal, ...options })) {
        this.events.push(event);
        for (const { is, resolve } of this.#waiting) if (is(event)) resolve();
      }
    })();
  }

  /** Resolves with the first event of a kind, or that a test describes. */
  async until(is: (event: AccountEvent) => boolean): Promise<void> {
    if (this.events.some(is)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ is, resolve });
    await promise;
  }

  async connected(): Promise<void> {
    await this.until(isConnected);
  }

  async heard(text: string): Promise<void> {
    await this.until((event) => event.kind === 'channel-post' && textOf(event.post) === text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }
}

async function scene(): Promise<{ ann: Account; bob: Account; id: string }> {
  const [ann, bob] = [await relay.world.person(), await relay.world.person()];
  const { id, link } = await ann.channels.create({ name: 'Live' });
  await bob.channels.follow(link);
  await bob.sync();
  return { ann, bob, id };
}

function hint(channel_id: string, head: number): void {
  const params = { channel_id, head };
  relay.push(JSON.stringify({ jsonrpc: '2.0', method: 'channel.timeline.changed', params }));
}

const asked = () => relay.asked.get('channel.read') ?? 0;

test('posts, edits, deletions and revisions give events as they happen', async () => {
  const { ann, bob, id } = await scene();
  await using live = new Listener(bob);
  await live.connected();
  const { sequence } = await ann.channels.send(id, { text: 'hello' });
  await live.heard('hello');
  await ann.channels.edit(id, sequence, { text: 'hello, all' });
  await live.until((event) => event.kind === 'channel-edited');
  await ann.channels.delete(id, sequence);
  await live.until((event) => event.kind === 'channel-deleted');
  await ann.channels.close(id);
  await live.until(
    (event) => event.kind === 'channel-changed' && event.descriptor.status === 'closed',
  );
});

test('a channel followed while the account is followed is subscribed', async () => {
  const { ann, bob } = await scene();
  await using live = new Listener(bob);
  await live.connected();
  const { id, link } = await ann.channels.create({ name: 'Second' });
  relay.asked.clear();
  await bob.channels.follow(link);
  await expect.poll(() => relay.asked.get('channel.subscribe')).toBe(1);
  await ann.channels.send(id, { text: 'to the second' });
  await live.heard('to the second');
});

describe('false hints', () => {
  test('move no position and cost at most one read each', async () => {
    const { ann, bob, id } = await scene();
    await using live = new Listener(bob);
    await live.connected();
    await ann.channels.send(id, { text: 'all is read' });
    await live.heard('all is read');
    const { span } = await bob.channels.get(id);
    relay.asked.clear();
    hint(id, span?.position as number);
    hint(`chan_${'A'.repeat(22)}`, 9);
    hint(id, Number.MAX_SAFE_INTEGER);
    await expect.poll(asked).toBe(1);
    await ann.channels.send(id, { text: 'truth' });
    await live.heard('truth');
    expect((await bob.channels.get(id)).span?.position).toBe(2);
    expect(asked()).toBe(2);
  });

  test('a hint of a head that does not exist is not waited for', async () => {
    const { bob, id } = await scene();
    hint(id, 7);
    expect(await bob.sync()).toEqual([]);
    expect(await bob.sync()).toEqual([]);
  });
});

test('hints during a read cause one more read, and no event is lost', async () => {
  const { ann, bob, id } = await scene();
  await using live = new Listener(bob);
  await live.connected();
  let during: Promise<unknown> = Promise.resolve();
  relay.asked.clear();
  relay.when.set('channel.read', () => {
    relay.when.clear();
    during = (async () => {
      for (const text of ['two', 'three', 'four']) await ann.channels.send(id, { text });
    })();
  });
  await ann.channels.send(id, { text: 'one' });
  await live.heard('four');
  await during;
  expect(await postTexts(bob, id)).toEqual(['one', 'two', 'three', 'four']);
  expect(asked()).toBeLessThanOrEqual(5);
});

test('after a failed read the channel is read until it succeeds', async () => {
  const { ann, bob, id } = await scene();
  const { id: other, link } = await ann.channels.create({ name: 'Other' });
  await bob.channels.follow(link);
  await using live = new Listener(bob);
  await live.connected();
  await ann.channels.send(id, { text: 'all is read' });
  await live.heard('all is read');
  relay.lie('channel.read', (page) => ({ ...page, certificates: [] }));
  await ann.channels.send(id, { text: 'needed' });
  await live.until(({ kind }) => kind === 'channel-failed');
  relay.behave();
  // A hint of another channel causes the next read, which includes the failed one.
  await ann.channels.send(other, { text: 'elsewhere' });
  await live.heard('needed');
});

test('after a lost connection, missed events are read', async () => {
  const { ann, bob, id } = await scene();
  await using live = new Listener(bob);
  await live.connected();
  relay.when.set('channel.subscribe', () => relay.when.clear());
  relay.cut();
  await ann.channels.send(id, { text: 'in the dark' });
  await live.heard('in the dark');
  await ann.channels.send(id, { text: 'with a new subscription' });
  await live.heard('with a new subscription');
});

test('without WebSockets the channel is polled', async () => {
  const { ann, id } = await scene();
  const bob = await relay.world.person({ prefer: 'http' });
  await bob.channels.follow((await ann.channels.get(id)).link);
  await using live = new Listener(bob, { pollInterval: 5 });
  await live.connected();
  await ann.channels.send(id, { text: 'polled' });
  await live.heard('polled');
});

test('02 §13: channels over the host’s limit are polled, however many hints come', async () => {
  const [ann, bob] = [await relay.world.person(), await relay.world.person()];
  const ids: string[] = [];
  for (const name of ['first', 'second', 'third']) {
    const { id, link } = await ann.channels.create({ name });
    await bob.channels.follow(link);
    ids.push(id);
  }
  await using live = new Listener(bob, { pollInterval: 200 });
  await live.connected();
  for (const id of ids) await ann.channels.send(id, { text: `in ${id}` });
  for (const id of ids) await live.heard(`in ${id}`);
});
