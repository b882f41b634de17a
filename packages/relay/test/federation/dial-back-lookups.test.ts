/** Names in descriptors of relays that ask to be dialled: their DNS is the asker's. */
import type { PeerConnection, PeerStream } from '@posthouse/peer';
import type { Libp2pAddress } from '@posthouse/protocol';
import { pino } from 'pino';
import { expect, test, vi } from 'vitest';
import { DialBackServer } from '../../src/federation/reachability/dial-back.ts';
import type { EligiblePeer } from '../../src/federation/verify-descriptor.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { patience } from '../support/served-network.ts';

const name = (host: string): Libp2pAddress =>
  ({ family: 'dns4', host, port: 4_201 }) as unknown as Libp2pAddress;

/** A stream that brings one request; its answer is in `answers`. */
function asking(answers: string[]): PeerStream {
  return {
    readFrame: () => Promise.resolve(new Uint8Array(0)),
    expectEnd: () => {},
    signal: new AbortController().signal,
    writeFrame: (frame: Uint8Array) =>
      Promise.resolve(void answers.push(String(Buffer.from(frame)))),
    reset: () => {},
  } as unknown as PeerStream;
}

test('07 §B2: names of askers are looked up one after another, however slow', async () => {
  const clock = new ManualClock();
  const lookups: { readonly host: string; readonly end: (found: string[]) => void }[] = [];
  const eligible = (relayId: string) =>
    ({
      relayId,
      peerId: new Uint8Array(1),
      addresses: Array.from({ length: 8 }, (_, index) => name(`${relayId}${index}.example`)),
    }) as unknown as EligiblePeer;
  const server = new DialBackServer(
    { clock, limits: defaultLimits, log: pino({ level: 'silent' }), metrics: new Metrics() },
    {
      eligibility: { find: eligible },
      faults: { add: () => expect.fail('no fault') },
      table: { closest: () => [] },
      filter: {
        resolve: ({ host }) => new Promise((end) => void lookups.push({ host, end })),
      },
      host: () => ({ dial: () => Promise.reject(new Error('refused')) }),
      stopping: new AbortController().signal,
    },
  );
  const answers: string[] = [];
  const served = ['a', 'b', 'c'].map((relayId) =>
    server.serve(asking(answers), {
      peer: { relayId },
    } as unknown as PeerConnection<EligiblePeer>),
  );
  await vi.waitFor(() => expect(lookups).toHaveLength(1), patience);
  clock.advance(10);
  await Promise.all(served);
  expect(answers).toHaveLength(3);
  for (const answer of answers) expect(answer.match(/timed_out/g)).toHaveLength(8);
  expect(lookups.map(({ host }) => host)).toEqual(['a0.example']);
  const last = server.serve(asking(answers), {
    peer: { relayId: 'd' },
  } as unknown as PeerConnection<EligiblePeer>);
  for (let index = 0; index <= 8; index += 1) {
    await vi.waitFor(() => expect(lookups).toHaveLength(index + 1), patience);
    lookups[index]?.end(['192.0.2.1']);
  }
  await last;
  expect(answers[3]?.match(/refused/g)).toHaveLength(8);
});
