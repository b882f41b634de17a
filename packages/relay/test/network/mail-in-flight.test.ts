/**
 * Messages that are on their way while their recipient or their sender moves to another relay, with
 * the source relay restarted at each of these moments (03 §12.2, 04 §16.3, 07 §C8).
 */
import { describe, expect, test } from 'vitest';
import type { Person } from '../fixtures/person.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { differences, type SentMessage } from './received.ts';
import { type RelayName, relayNetwork, sendTo, statusOf, until } from './relay-network.ts';

/** Ways are cut while accounts move: whether other relays have stored the route is not waited for. */
const network = relayNetwork(() => ({ limits: { dhtReplicas: 0 } }));

/** Ann at A and Ben at B, whose relays have exchanged a message. */
async function pair() {
  const { a, b } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  const first = await sendTo(a, ann, ben);
  expect(await network.fateAfterRetries(a, first)).toBe('ok');
  return { ann, ben, first };
}

/** Resolves when a relay stores a record for an account; the work runs before it answers. */
function whenStored(relay: ServedRelay, person: Person, work: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const watch = relay.server.context.bus.subscribe((notice) => {
    if (notice.kind !== 'timeline' || notice.account !== person.account) return;
    watch[Symbol.dispose]();
    work();
    resolve();
  });
  return promise;
}

/** Resolves when a relay's write of a record has failed once. */
function failToStore(relay: ServedRelay): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  relay.faults.beforeStatement = (sql) => {
    if (!/^\s*INSERT INTO timeline_records/i.test(sql)) return;
    delete relay.faults.beforeStatement;
    resolve();
    throw new Error('fault of the test');
  };
  return promise;
}

/** A moment of the recipient's move from B to C at which a message of A is on its way. */
interface Moment {
  readonly title: string;
  /** Whose timeline has the message in the end. */
  readonly at: RelayName;
  /** Sends the message, and moves; `restart` is called in between. */
  happen(
    people: { readonly ann: Person; readonly ben: Person },
    restart: () => Promise<void>,
  ): Promise<SentMessage>;
}

const moments: readonly Moment[] = [
  {
    title: 'before the move, accepted by the source and not sent on',
    at: 'c',
    async happen({ ann, ben }, restart) {
      network.cutAll();
      const sent = await sendTo(network.a, ann, ben);
      expect(await statusOf(network.a, sent)).toMatchObject({ status: 'delivering' });
      await restart();
      // Its first attempt fails before the cables are whole again; the clock stands, so no other follows.
      await until(
        () => network.a.server.context.relayClient.pausedUntil(network.b.relayId) !== undefined,
      );
      for (const cable of Object.values(network.cables)) cable.restore();
      await ben.moveTo(network.c);
      return sent;
    },
  },
  {
    title: 'during the move, at the target whose commit failed',
    at: 'c',
    async happen({ ann, ben }, restart) {
      const failed = failToStore(network.b);
      const sent = await sendTo(network.a, ann, ben);
      await failed;
      await restart();
      await ben.moveTo(network.c);
      return sent;
    },
  },
  {
    title: 'during the move, committed by the target, the answer lost',
    at: 'b',
    async happen({ ann, ben }, restart) {
      const stored = whenStored(network.b, ben, () => network.cutAll());
      const sent = await sendTo(network.a, ann, ben);
      await stored;
      expect(await statusOf(network.a, sent)).toMatchObject({ status: 'delivering' });
      await restart();
      for (const cable of Object.values(network.cables)) cable.restore();
      await ben.moveTo(network.c);
      return sent;
    },
  },
  {
    title: 'after the route was committed, to the old relay, which does not know of it',
    at: 'b',
    async happen({ ann, ben }, restart) {
      network.cutAll();
      await ben.moveTo(network.c);
      await network.c.stop();
      for (const cable of Object.values(network.cables)) cable.restore();
      const stored = whenStored(network.b, ben, () => {});
      const sent = await sendTo(network.a, ann, ben);
      let isOver = false;
      void stored.then(() => {
        isOver = true;
      });
      await network.untilInTime(async () => {
        await statusOf(network.a, sent);
        return isOver;
      });
      await restart();
      await network.c.resume();
      return sent;
    },
  },
  {
    title: 'after the move, sent on the route that the source had',
    at: 'c',
    async happen({ ann, ben }, restart) {
      await ben.moveTo(network.c);
      await restart();
      return await sendTo(network.a, ann, ben);
    },
  },
];

describe.each([
  ['goes on', async () => {}],
  ['restarts', async () => await network.a.restart()],
] as const)('the source %s', (_name, restart) => {
  test.each(moments)('07 §C8: a message arrives once: $title', async ({ at, happen }) => {
    const { a, b, c } = network;
    const { ann, ben, first } = await pair();
    const sent = await happen({ ann, ben }, restart);
    await network.heal();
    expect(await network.fateAfterRetries(a, sent)).toBe('ok');
    const homes = new Map([
      [ben, [b, c]],
      [ann, [a]],
    ]);
    expect(await differences([first, sent], homes)).toEqual([]);
    const there = new Map([[ben, [network.relays[at]]]]);
    expect(await differences(at === 'b' ? [first, sent] : [sent], there)).toEqual([]);
  });
});

test('03 §12.2: the old relay of a sender finishes what it accepted, also after a restart', async () => {
  const { a, b, c } = network;
  const { ann, ben, first } = await pair();
  network.cutAll();
  const sent = await sendTo(a, ann, ben);
  await ann.moveTo(c);
  await a.restart();
  await network.heal();
  expect(await network.fateAfterRetries(a, sent)).toBe('ok');
  const homes = new Map([
    [ben, [b]],
    [ann, [a, c]],
  ]);
  expect(await differences([first, sent], homes)).toEqual([]);
});

test('03 §12: both move at once, and answer each other afterwards', async () => {
  const { a, b, c } = network;
  const { ann, ben, first } = await pair();
  network.cutAll();
  const crossing = [await sendTo(a, ann, ben), await sendTo(b, ben, ann)] as const;
  await Promise.all([ann.moveTo(b), ben.moveTo(c)]);
  await network.heal();
  expect(await network.fateAfterRetries(a, crossing[0])).toBe('ok');
  expect(await network.fateAfterRetries(b, crossing[1])).toBe('ok');
  const after = [await sendTo(b, ann, ben), await sendTo(c, ben, ann)] as const;
  expect(await network.fateAfterRetries(b, after[0])).toBe('ok');
  expect(await network.fateAfterRetries(c, after[1])).toBe('ok');
  const homes = new Map([
    [ann, [a, b]],
    [ben, [b, c]],
  ]);
  expect(await differences([first, ...crossing, ...after], homes)).toEqual([]);
});
