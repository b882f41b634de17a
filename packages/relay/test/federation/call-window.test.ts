/** Calls to one other relay under way at once: as many as it keeps up with. */
import type { PeerStream } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { CallWindow } from '../../src/federation/rpc/call-window.ts';
import { defaultLimits } from '../../src/limits.ts';
import type { Person } from '../fixtures/person.ts';
import { LyingRelay } from '../network/lying-relay.ts';
import { ManualClock } from '../support/clock.ts';
import { patience, unlimitedHandshakes } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({
  limits: { ...unlimitedHandshakes, federationAddressLookupRate: 1_000 },
});
const ann = relay.person('ann');
let liar: LyingRelay;
afterEach(() => liar[Symbol.asyncDispose]());

const signal = new AbortController().signal;
const window = () => relay.server.context.relayClient.callsAtOnce(liar.relayId);
const resets = () => relay.server.context.metrics.value('relay_call_resets');

/** What the other relay received, and how many requests it has under way. */
function receiver() {
  const seen = {
    /** The parameters of all requests, by message ID. */
    params: new Map<string, string[]>(),
    underWay: 0,
    most: 0,
  };
  const read = async (stream: PeerStream) => {
    const frame = await stream.readFrame();
    if (frame === undefined) return undefined;
    const { id, params } = JSON.parse(Buffer.from(frame).toString());
    const messageId = params.envelope?.message_id ?? '';
    seen.params.set(messageId, [...(seen.params.get(messageId) ?? []), JSON.stringify(params)]);
    const count = [...seen.params.keys()].filter((key) => key !== '').indexOf(messageId) + 1;
    seen.underWay += 1;
    seen.most = Math.max(seen.most, seen.underWay);
    return { id, messageId, count };
  };
  const answer = async (stream: PeerStream, id: unknown) => {
    const result = { status: 'target_accepted', accepted_at: relay.clock.now() };
    seen.underWay -= 1;
    await stream.writeFrame(utf8(JSON.stringify({ jsonrpc: '2.0', id, result })));
  };
  return { seen, read, answer };
}

/** Sends messages to an account at the other relay; returns their IDs. */
async function send(to: Person, count: number): Promise<string[]> {
  const authorization = to.grant(ann);
  const sent = Array.from({ length: count }, async () => {
    const message = ann.message(to, { authorization });
    await relay.call('message.send', message, { session: ann.session() });
    return message.envelope.message_id;
  });
  return await Promise.all(sent);
}

/** Waits until all are accepted: no clock moves, so that none waits for a retry. */
async function untilAccepted(messageIds: readonly string[]): Promise<void> {
  for (const message_id of messageIds) {
    await vi.waitFor(async () => {
      const status = await relay.call(
        'message.delivery.status',
        { message_id },
        { session: ann.session() },
      );
      expect(status).toMatchObject({ status: 'target_accepted' });
    }, patience);
  }
}

describe('07 §C2: a relay that resets streams', () => {
  test('above 16 gets all mail without a retry, and few streams that it resets', async () => {
    liar = await LyingRelay.start(relay, { streams: 16 });
    const liam = await liar.account('liam');
    const { seen, read, answer } = receiver();
    const gate = Promise.withResolvers<void>();
    liar.foreign.serveRpc = async (stream) => {
      const request = await read(stream);
      if (request === undefined) return;
      await gate.promise;
      await answer(stream, request.id);
    };
    const sent = send(liam, 40);
    await vi.waitFor(() => expect(resets()).toBeGreaterThan(0), patience);
    expect(seen.most).toBe(16);
    expect(window()).toBeLessThan(16);
    gate.resolve();
    await untilAccepted(await sent);
    // What was under way when the first was reset, and nothing later.
    const atFirst = resets() ?? 0;
    expect(atFirst).toBeLessThanOrEqual(12);
    await untilAccepted(await send(liam, 40));
    expect(resets()).toBe(atFirst);
    expect(window()).toBeLessThanOrEqual(16);
    expect(seen.params.size).toBe(80);
    expect([...seen.params.values()].every(({ length }) => length === 1)).toBe(true);
    // Later it may allow more: a stream now and then tells.
    relay.clock.advance(defaultLimits.relayCallsHold);
    await untilAccepted(await send(liam, 40));
    expect((resets() ?? 0) - atFirst).toBeLessThan(8);
    expect(relay.server.context.metrics.value('relays_failed')).toBe(0);
  });

  test('after it accepted a message is asked again at once, with the same request', async () => {
    liar = await LyingRelay.start(relay);
    const liam = await liar.account('liam');
    const { seen, read, answer } = receiver();
    const query = Promise.withResolvers<void>();
    const half = Promise.withResolvers<void>();
    liar.foreign.serveRpc = async (stream) => {
      const request = await read(stream);
      if (request === undefined) return;
      const { id, messageId, count } = request;
      if (messageId === '') {
        await query.promise;
        return await answer(stream, id);
      }
      // Every second one of the first 20 is received, reset and received again.
      const isReset = count <= 20 && count % 2 === 0 && seen.params.get(messageId)?.length === 1;
      if (count === 20) half.resolve();
      await half.promise;
      if (!isReset) return await answer(stream, id);
      seen.underWay -= 1;
      stream.reset();
    };
    // A query that has no answer yet, so that no message is alone: a reset of that is a failure.
    const { relayClient } = relay.server.context;
    const asked = relayClient.call(liar.relayId, 'profile.resolve', { account: 'none' });
    await vi.waitFor(() => expect(seen.params.has('')).toBe(true), patience);
    const before = resets() ?? 0;
    const sent = send(liam, 40);
    await vi.waitFor(() => expect((resets() ?? 0) - before).toBe(10), patience);
    query.resolve();
    expect(await asked).toMatchObject({ kind: 'result' });
    await untilAccepted(await sent);
    seen.params.delete('');
    const requests = [...seen.params.values()];
    expect(requests.length).toBe(40);
    expect(requests.filter(({ length }) => length === 2).length).toBe(10);
    expect(requests.every((texts) => new Set(texts).size === 1)).toBe(true);
    expect(relayClient.pausedUntil(liar.relayId)).toBeUndefined();
  });

  test('each time is not asked for ever: the outcome is unknown, and it is paused', async () => {
    liar = await LyingRelay.start(relay);
    const { seen, read } = receiver();
    liar.foreign.serveRpc = async (stream) => {
      if ((await read(stream)) !== undefined) stream.reset();
    };
    const { relayClient } = relay.server.context;
    const calls = Array.from({ length: 40 }, () =>
      relayClient.call(liar.relayId, 'profile.resolve', { account: 'none' }),
    );
    await vi.waitFor(() => expect(relayClient.pausedUntil(liar.relayId)).toBeDefined(), patience);
    relay.clock.advance(1);
    const kinds = new Set((await Promise.all(calls)).map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual(['unknown', 'unreachable']);
    expect(relayClient.pausedUntil(liar.relayId)).toBeDefined();
    expect(seen.params.get('')?.length).toBeLessThanOrEqual(40);
  });
});

test('07 §C2: a relay that keeps up is asked more at once, up to 128, and resets nothing', async () => {
  liar = await LyingRelay.start(relay, { streams: 128 });
  const { seen, read, answer } = receiver();
  let left = 1_000;
  const waiting: (() => void)[] = [];
  liar.foreign.serveRpc = async (stream) => {
    const request = await read(stream);
    if (request === undefined) return;
    // All that may be under way are: none more comes before an answer. The last ones are fewer.
    if (left < 200 || seen.underWay >= window()) for (const go of waiting.splice(0)) go();
    else await new Promise<void>((resolve) => waiting.push(resolve));
    await answer(stream, request.id);
  };
  const { relayClient } = relay.server.context;
  expect(window()).toBe(32);
  const calls = Array.from({ length: left }, async () => {
    await relayClient.call(liar.relayId, 'profile.resolve', { account: 'none' });
    left -= 1;
  });
  await Promise.all(calls);
  expect(seen.most).toBe(128);
  expect(window()).toBe(128);
  expect(resets()).toBe(0);
});

describe('07 §C2: the window', () => {
  const limits = {
    ...defaultLimits,
    relayCallsAtOnce: 64,
    relayCallsFirst: 32,
    relayCallsHold: 300,
  };
  const fill = async (window: CallWindow) =>
    await Promise.all(Array.from({ length: window.size }, () => window.take('query', signal)));

  test('is halved once by all resets of one time, and stays below what was too many', async () => {
    const clock = new ManualClock();
    const window = new CallWindow({ clock, limits });
    const places = await fill(window);
    for (const place of places.slice(20)) {
      window.reset(place);
      place[Symbol.dispose]();
    }
    expect(window.size).toBe(11);
    for (const place of places.slice(0, 20)) place[Symbol.dispose]();
    const answerAll = async () => {
      const places = await fill(window);
      for (const place of places) {
        window.answered(place);
        place[Symbol.dispose]();
      }
    };
    for (let round = 0; round < 20; round += 1) await answerAll();
    expect(window.size).toBe(20);
    clock.advance(limits.relayCallsHold);
    await answerAll();
    await answerAll();
    expect(window.size).toBeGreaterThan(20);
    expect(window.size).toBeLessThanOrEqual(22);
  });

  test('does not grow while calls use less than half of it, and begins again after a failure', async () => {
    const window = new CallWindow({ clock: new ManualClock(), limits });
    for (let call = 0; call < 100; call += 1) {
      using place = await window.take('query', signal);
      window.answered(place);
    }
    expect(window.size).toBe(32);
    for (const place of await fill(window)) window.answered(place);
    expect(window.size).toBeGreaterThan(40);
    window.failed();
    expect(window.size).toBe(32);
  });

  test('gives a free place to queries before deliveries, and to one delivery in eight', async () => {
    const window = new CallWindow({
      clock: new ManualClock(),
      limits: { ...limits, relayCallsFirst: 1 },
    });
    const order: string[] = [];
    const first = await window.take('delivery', signal);
    const call = async (kind: 'query' | 'delivery', name: string) => {
      using _place = await window.take(kind, signal);
      order.push(name);
    };
    const calls = [call('delivery', 'a'), call('delivery', 'b')];
    calls.push(...Array.from({ length: 9 }, (_, index) => call('query', String(index))));
    first[Symbol.dispose]();
    await Promise.all(calls);
    expect(order.join('')).toBe('0123456a78b');
  });
});
