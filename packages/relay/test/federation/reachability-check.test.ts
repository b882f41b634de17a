/** What a running relay finds out for `posthouse doctor`: whether other relays reach it (07 §B2). */
import type { PeerStream } from '@posthouse/peer';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { askRunningRelay, type ReachabilityReport } from '../../src/federation/index.ts';
import { reachabilityJob } from '../../src/federation/reachability/request-job.ts';
import type { Storage } from '../../src/storage/types.ts';
import { rowsOf } from '../support/engine.ts';
import { patience, ServedNetwork, unlimitedHandshakes } from '../support/served-network.ts';
import { type ServedRelay, servedRelay } from '../support/served-relay.ts';
import { ForeignRelay, type ForeignRelayOptions } from './foreign-relay.ts';

const relay = servedRelay({
  limits: { ...unlimitedHandshakes, federationAddressLookupRate: 1_000 },
});
let open: AsyncDisposableStack;
beforeEach(() => {
  open = new AsyncDisposableStack();
});
afterEach(() => open.disposeAsync());

let asked: number;
beforeEach(() => {
  asked = 0;
});

/** Serves requests with this answer. */
const answering = (answer: unknown) => async (stream: PeerStream) => {
  asked += 1;
  expect(await stream.readFrame()).toHaveLength(0);
  await stream.writeFrame(Buffer.from(JSON.stringify(answer)));
};

const reached = { addresses: [{ address: '/dns4/a/tcp/1', outcome: 'reached' }], listed: true };

async function start(byte: number, options: ForeignRelayOptions = {}): Promise<ForeignRelay> {
  return open.use(await ForeignRelay.start(relay, { byte, ...options }));
}

/** Asks a relay as the command does, which is another process with the same database. */
async function ask({ server, clock }: ServedRelay = relay): Promise<ReachabilityReport> {
  const { storage } = server.context;
  const answer = askRunningRelay(storage, clock.now());
  await requestsStored(1, storage);
  await allTaken({ storage, clock });
  const found = await answer;
  if (found.kind !== 'report') throw new Error(`the relay did not report: ${found.kind}`);
  return found.report;
}

/** Waits until so many requests are stored. */
async function requestsStored(count: number, storage = relay.server.context.storage) {
  const rows = () => rowsOf(storage, 'reachability_requests');
  await vi.waitFor(async () => expect(await rows()).toHaveLength(count), patience);
}

/**
 * Lets time pass until every request is taken. A run of the job that has not ended when time passes
 * sets the next one late: time passes once more then.
 */
async function allTaken({ storage, clock }: Pick<ServedRelay, 'clock'> & { storage: Storage }) {
  await vi.waitFor(async () => {
    const rows = await rowsOf(storage, 'reachability_requests');
    const waiting = rows.filter(({ is_taken }) => is_taken === 0);
    const isBusy = rows.some(({ is_taken, report }) => is_taken === 1 && report === null);
    if (waiting.length > 0 && !isBusy) clock.advance(2);
    expect(waiting).toEqual([]);
  }, patience);
}

test('07 §B2: another Posthouse relay dials this one, and says that it was reached', async () => {
  await using network = await ServedNetwork.start(2);
  const [one, other] = network.pair;
  expect(await ask(one)).toEqual({
    ...{ active: 1, connected: 1, inbound: expect.any(Number) },
    relays: [
      {
        ...{ kind: 'dialled', relayId: other.relayId, endpoint: other.server.https[0] },
        addresses: [{ address: `/ip4/127.0.0.1/tcp/${one.server.peerPort}`, outcome: 'reached' }],
        listed: true,
      },
    ],
  });
  expect(await rowsOf(one.server.context.storage, 'reachability_requests')).toEqual([]);
});

test('07 §B2: three relays that dial are enough, however many are connected', async () => {
  for (let byte = 1; byte <= 5; byte += 1) {
    await start(byte, { serveDoctor: answering(reached) });
  }
  const { relays, connected, active, inbound } = await ask();
  expect(relays.map(({ kind }) => kind)).toEqual(['dialled', 'dialled', 'dialled']);
  expect([connected, active, inbound, asked]).toEqual([5, 5, 5, 3]);
});

test('07 §B2: relays without the protocol, busy ones and invalid answers are left for others', async () => {
  await start(1);
  await start(2, { serveDoctor: answering({ retry_after: 30 }) });
  const wrong = [
    { ...reached, listed: 'yes' },
    { addresses: Array(9).fill(reached.addresses[0]), listed: true },
    { addresses: [{ address: 'a', outcome: '\u001b[31mreached' }], listed: true },
    { retry_after: 0 },
    'reached',
  ];
  for (const [index, answer] of wrong.entries()) {
    await start(3 + index, { serveDoctor: answering(answer) });
  }
  await start(20, { serveDoctor: answering(reached) });
  const { relays } = await ask();
  const kinds = relays.map(({ kind }) => kind).sort();
  expect(kinds).toEqual(['busy', 'dialled', ...Array(5).fill('no_answer'), 'not_supported']);
});

test('07 §B2: a request is taken by one process and once', async () => {
  const answer = Promise.withResolvers<void>();
  await start(1, {
    serveDoctor: async (stream) => {
      await answer.promise;
      await answering(reached)(stream);
    },
  });
  const found = ask();
  const rows = () => rowsOf(relay.server.context.storage, 'reachability_requests');
  await vi.waitFor(async () => expect(await rows()).toMatchObject([{ is_taken: 1 }]), patience);
  const job = reachabilityJob({ run: () => expect.fail('it was taken') });
  await job.run(relay.server.context, AbortSignal.abort(), () => answer as never);
  answer.resolve();
  expect((await found).relays).toMatchObject([{ kind: 'dialled' }]);
});

test('07 §B5: a relay without the protocol stays connected when it was asked', async () => {
  const foreign = await start(1);
  expect((await ask()).relays).toMatchObject([{ kind: 'not_supported' }]);
  expect(foreign.connection.isOpen).toBe(true);
  expect(relay.server.context.metrics.value('peers', { state: 'failing' })).toBe(0);
});

test('07 §B5: without connections, the relay reports that there is none', async () => {
  expect(await ask()).toEqual({ active: 0, connected: 0, inbound: 0, relays: [] });
});

test('07 §B2: four commands may wait at once; a fifth is refused in words', async () => {
  let atOnce = 0;
  let mostAtOnce = 0;
  await start(1, {
    serveDoctor: async (stream) => {
      atOnce += 1;
      mostAtOnce = Math.max(mostAtOnce, atOnce);
      await answering(reached)(stream);
      atOnce -= 1;
    },
  });
  const { storage } = relay.server.context;
  const answers = Array.from({ length: 4 }, () => askRunningRelay(storage, relay.clock.now()));
  await requestsStored(4);
  const refused = askRunningRelay(storage, relay.clock.now());
  await expect(refused).rejects.toThrow('other commands wait for this: try again');
  await allTaken({ storage, clock: relay.clock });
  const kinds = (await Promise.all(answers)).map(({ kind }) => kind);
  expect(kinds).toEqual(Array(4).fill('report'));
  expect([asked, mostAtOnce]).toEqual([4, 1]);
  // Each command deletes its own.
  expect(await rowsOf(storage, 'reachability_requests')).toEqual([]);
});
