/** Ways that are cut, hang or break in the middle, relays that stop, and clocks that differ. */
import { describe, expect, test } from 'vitest';
import type { Person } from '../fixtures/person.ts';
import type { CableDirection } from '../support/cable.ts';
import { chanceOf, seed } from '../support/chance.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { differences, type SentMessage } from './received.ts';
import { fateOf, relayNetwork, sendTo, statusOf, until } from './relay-network.ts';

const network = relayNetwork();

/** An account at home at A and one at B, whose relays have exchanged a message. */
async function pair() {
  const { a, b } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  const homes = new Map([
    [ann, [a]],
    [ben, [b]],
  ]);
  const first = await sendTo(a, ann, ben);
  expect(await network.fateAfterRetries(a, first)).toBe('ok');
  return { ann, ben, homes, sent: [first] };
}

/** Waits until messages are delivered and checks that each was received once. */
async function settle(
  sent: readonly SentMessage[],
  homes: ReadonlyMap<Person, readonly ServedRelay[]>,
): Promise<void> {
  for (const one of sent) {
    expect(await network.fateAfterRetries(homes.get(one.from)![0]!, one)).toBe('ok');
  }
  expect(await differences(sent, homes)).toEqual([]);
}

describe('partitions', () => {
  test('in both directions: mail waits on both sides, and arrives once after healing', async () => {
    const { a, b } = network;
    const { ann, ben, homes, sent } = await pair();
    network.cutAll();
    sent.push(await sendTo(a, ann, ben), await sendTo(b, ben, ann));
    await until(() => a.server.context.relayClient.pausedUntil(b.relayId) !== undefined);
    for (const one of sent.slice(1)) {
      const home = homes.get(one.from)![0]!;
      expect(await statusOf(home, one)).toMatchObject({ status: 'delivering' });
    }
    await network.heal();
    await settle(sent, homes);
  });

  test('in one direction: a relay that cannot be dialled is reached over its own connection', async () => {
    const { a, b } = network;
    const { ann, ben, homes, sent } = await pair();
    network.cables.b.cut();
    network.cables.a.drop();
    await network.untilInTime(async () => {
      const answer = await b.server.context.relayClient.call(a.relayId, 'profile.resolve', {});
      return answer.kind === 'refused';
    });
    sent.push(await sendTo(a, ann, ben), await sendTo(b, ben, ann));
    await settle(sent, homes);
  });

  test('a relay that is cut off does not delay mail to others', async () => {
    const { a, c } = network;
    const { ann, ben } = await pair();
    const cem = await network.register('cem', c);
    network.cables.b.hang();
    network.cables.a.hang('of-dialer');
    const waiting = [];
    for (let count = 0; count < 12; count += 1) waiting.push(await sendTo(a, ann, ben));
    network.cables.a.resume();
    network.cables.a.drop();
    const other = await sendTo(a, ann, cem);
    expect(await fateOf(a, other)).toBe('ok');
    expect(await statusOf(a, waiting[0]!)).toMatchObject({ status: 'delivering' });
  });
});

describe('hangs', () => {
  test('an answer that is held back arrives, and no time has to pass', async () => {
    const { a, b } = network;
    const { ann, ben, homes, sent } = await pair();
    network.cables.b.hang();
    network.cables.a.hang();
    sent.push(await sendTo(a, ann, ben), await sendTo(b, ben, ann));
    network.cables.b.resume();
    network.cables.a.resume();
    for (const one of sent) expect(await fateOf(homes.get(one.from)![0]!, one)).toBe('ok');
    await settle(sent, homes);
  });

  test.each<CableDirection>(['of-dialer', 'of-listener'])(
    'bytes %s that never arrive end the call after its time, and the message is sent again',
    async (direction) => {
      const { a, b } = network;
      const { ann, ben, homes, sent } = await pair();
      network.cables.b.hang(direction);
      network.cables.a.hang(direction);
      sent.push(await sendTo(a, ann, ben));
      await network.untilInTime(
        async () => a.server.context.relayClient.pausedUntil(b.relayId) !== undefined,
      );
      await network.heal();
      await settle(sent, homes);
    },
  );
});

test('a connection that breaks after any number of bytes loses and doubles nothing', async () => {
  const { a, b } = network;
  const { ann, ben, homes, sent } = await pair();
  const chance = chanceOf(seed);
  const ways = [network.cables.a, network.cables.b];
  // The first bytes are those of the handshake, after a drop; the others those of the exchange.
  const lengths = [0, 1, 50, 200, ...Array.from({ length: 8 }, () => Math.floor(chance() * 5_000))];
  for (const [index, bytes] of lengths.entries()) {
    if (index % 2 === 0) for (const way of ways) way.drop();
    for (const way of ways) void way.cutAfter(bytes);
    sent.push(await sendTo(a, ann, ben), await sendTo(b, ben, ann));
    for (const one of sent.slice(-2)) {
      expect(await network.fateAfterRetries(homes.get(one.from)![0]!, one)).toBe('ok');
    }
  }
  await settle(sent, homes);
});

describe('stops', () => {
  test('a relay that stopped gets its mail when it is back', async () => {
    const { a, b } = network;
    const { ann, ben, homes, sent } = await pair();
    await b.stop();
    sent.push(await sendTo(a, ann, ben), await sendTo(a, ann, ben));
    await b.restart();
    await settle(sent, homes);
  });

  test('a relay with mail waiting delivers it after its restart', async () => {
    const { a, b } = network;
    const { ann, ben, homes, sent } = await pair();
    network.cutAll();
    sent.push(await sendTo(a, ann, ben));
    await a.restart();
    await network.heal();
    sent.push(await sendTo(b, ben, ann));
    await settle(sent, homes);
  });

  test('a relay that stops while another one waits for its answer has the message once', async () => {
    const { a, b } = network;
    const { ann, ben, homes, sent } = await pair();
    const { promise: stored, resolve } = Promise.withResolvers<void>();
    const watch = b.server.context.bus.subscribe((notice) => {
      if (notice.kind !== 'timeline' || notice.account !== ben.account) return;
      network.cutAll();
      resolve();
    });
    sent.push(await sendTo(a, ann, ben));
    await stored;
    watch[Symbol.dispose]();
    await b.restart();
    await a.restart();
    await network.heal();
    await settle(sent, homes);
  });
});
