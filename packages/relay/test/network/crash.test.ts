/** Two relays, each a process of its own, of which one is killed again and again amid deliveries. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import type { PartialConfig } from '../../src/config/index.ts';
import { devAuthority } from '../../src/tls/dev-ca.ts';
import { KillableRelay } from '../fixtures/killable-relay.ts';
import type { Person } from '../fixtures/person.ts';
import { upTo } from '../support/chance.ts';
import { RelayData } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';
import { freePort } from '../support/ports.ts';
import { differences, type SentMessage } from './received.ts';
import { send, statusOf, until } from './relay-network.ts';

/** How often a relay is killed; a long run says so in the environment. */
const kills = Number(process.env.TEST_KILLS ?? 6);

/** Retries soon: time is the machine's. */
const impatient = {
  ...{ peerRetryFirst: 1, peerRetryMost: 1, deliveryRetryFirst: 1, deliveryRetryMost: 1 },
  ...{ peerHandshakeRate: 1_000, peerHandshakeBurst: 1_000, peerHandshakesPerAddress: 100 },
  ...{ relayRate: 1_000, relayAccountRate: 1_000, relayAccountBurst: 1_000, dhtPause: 1 },
  remoteRetryFirst: 1,
  ...{ federationAddressLookupRate: 1_000, routeNotFound: 1 },
};

test('07 §C8: after crashes at any point, each message was received exactly once', async () => {
  await using parts = new AsyncDisposableStack();
  const { path } = parts.use(temporaryFolder());
  const authority = join(path, 'tls');
  const ca = await devAuthority(authority, systemClock.now());
  const start = async () => {
    const data = parts.use(await RelayData.withSchema());
    const settings: PartialConfig = {
      registry: join(path, 'registry.json'),
      tls: { authority },
      federation: { ca, listen: `127.0.0.1:${await freePort()}` },
      limits: impatient,
    };
    const relay = await KillableRelay.start(data, settings);
    parts.defer(() => relay.stop());
    return relay;
  };
  const relays = [await start(), await start()] as const;
  const [a, b] = relays;
  const ann = await a.register('ann');
  const ben = await b.register('ben');
  const homes = new Map([
    [ann, [a]],
    [ben, [b]],
  ]);
  const sent: SentMessage[] = [];
  const deliver = async (from: Person, to: Person) => {
    const message = from.message(to, { authorization: to.grant(from), senders: ['phone'] });
    sent.push({ from, to, message });
    const home = homes.get(from)![0]!;
    await send(home, { from, message });
    await until(async () => (await statusOf(home, { from, message })).status !== 'delivering');
  };
  const writers = { isOver: false };
  const write = async (from: Person, to: Person) => {
    while (!writers.isOver) await deliver(from, to);
  };
  const writing = Promise.all([write(ann, ben), write(ann, ben), write(ben, ann)]);
  for (let killed = 0; killed < kills; killed += 1) {
    const relay = relays[upTo(2) - 1]!;
    // Soon after a start the relays are in their handshake; later in the middle of deliveries.
    const isSoon = upTo(3) === 1;
    const killing = isSoon
      ? relay.kill(upTo(300))
      : relay.killAfter({ answers: upTo(20), turns: upTo(50) });
    await Promise.race([killing, writing]);
    await killing;
    await relay.revive();
  }
  writers.isOver = true;
  await writing;
  for (const one of sent) {
    const home = homes.get(one.from)![0]!;
    await until(async () => (await statusOf(home, one)).status !== 'delivering');
    expect(await statusOf(home, one)).toMatchObject({ status: 'target_accepted' });
  }
  expect(await differences(sent, homes)).toEqual([]);
  if (process.env.TEST_KILLS !== undefined) {
    const lost = a.lost.answers + b.lost.answers;
    console.log(`${kills} kills, ${sent.length} messages, ${lost} answers to clients lost`);
  }
}, 3_600_000);
