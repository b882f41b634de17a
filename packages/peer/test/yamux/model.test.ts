/** Random sequences against simple references; the seed is fixed, see vitest.config.ts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PeerError } from '../../src/errors.ts';
import { encodeHeader, frameFlag, frameType, windowBytes } from '../../src/yamux/frame.ts';
import { SessionEnd, StreamLog } from '../support/yamux-pair.ts';

const run = { seed: Number(process.env.TEST_SEED ?? 4711), numRuns: 300 };

const action = fc.record({
  kind: fc.constantFrom(
    'open',
    'send',
    'send',
    'send',
    'finish',
    'reset',
    'read',
    'deliver',
    'deliver',
  ),
  side: fc.constantFrom(0, 1),
  pick: fc.nat(),
  size: fc.oneof(fc.nat(50), fc.nat(2 * windowBytes)),
});

/** What one direction of one stream was given by its sender. */
class Sent {
  bytes = 0;
  finished = false;
}

interface Endpoint {
  readonly log: StreamLog;
  readonly sent: Sent;
}

/** Two sessions with bytes on their way between them. */
class Network {
  readonly ends = [new SessionEnd(true), new SessionEnd(false)] as const;
  readonly #wire: [Buffer, Buffer] = [Buffer.alloc(0), Buffer.alloc(0)];
  readonly endpoints: [Map<number, Endpoint>, Map<number, Endpoint>] = [new Map(), new Map()];
  readonly reset = new Set<number>();

  open(side: 0 | 1): void {
    const log = new StreamLog(this.ends[side].session.open());
    this.endpoints[side].set(log.stream.id, { log, sent: new Sent() });
  }

  /** Delivers up to so many of the bytes that one side has written. */
  deliver(from: 0 | 1, most: number): void {
    this.#wire[from] = Buffer.concat([this.#wire[from], this.ends[from].take()]);
    const to = from === 0 ? 1 : 0;
    this.ends[to].session.receive(this.#wire[from].subarray(0, most));
    this.#wire[from] = this.#wire[from].subarray(most);
    for (const log of this.ends[to].accepted.splice(0)) {
      this.endpoints[to].set(log.stream.id, { log, sent: new Sent() });
    }
  }

  /** Delivers and reads until nothing more happens. */
  settle(): void {
    for (let round = 0; round < 200; round += 1) {
      for (const side of [0, 1] as const) {
        this.deliver(side, Number.MAX_SAFE_INTEGER);
        for (const { log } of this.endpoints[side].values()) log.read();
      }
    }
  }
}

describe('two sessions', () => {
  test('07 §B2: whatever the order, all that was sent arrives once and in order, then the end', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const network = new Network();
        for (const { kind, side, pick, size } of actions as ((typeof actions)[0] & {
          side: 0 | 1;
        })[]) {
          if (kind === 'open') network.open(side);
          if (kind === 'deliver') network.deliver(side, size);
          const all = [...network.endpoints[side].values()];
          const one = all[pick % Math.max(all.length, 1)];
          if (one === undefined) continue;
          const { log, sent } = one;
          if (kind === 'read') log.read();
          if (kind === 'reset') {
            log.stream.reset();
            network.reset.add(log.stream.id);
          }
          if (kind === 'finish') {
            log.stream.finish();
            sent.finished = true;
          }
          if (kind === 'send' && !sent.finished) {
            const start = sent.bytes;
            log.stream.send(Uint8Array.from({ length: size }, (_, i) => (start + i) % 251));
            sent.bytes += size;
          }
        }
        network.settle();
        for (const side of [0, 1] as const) {
          for (const [id, { log }] of network.endpoints[side]) {
            expect(log.inOrder).toBe(true);
            const peer = network.endpoints[side === 0 ? 1 : 0].get(id);
            const sent = peer?.sent ?? new Sent();
            expect(log.received).toBeLessThanOrEqual(sent.bytes);
            if (network.reset.has(id)) continue;
            expect(log.received).toBe(sent.bytes);
            expect(log.ended).toBe(sent.finished);
            const own = network.endpoints[side].get(id)?.sent;
            expect(log.closed).toBe(sent.finished && own?.finished ? 'finished' : undefined);
          }
          const open = [...network.endpoints[side].values()].filter(({ log }) => !log.closed);
          expect(network.ends[side].session.streams.size).toBe(open.length);
        }
      }),
      run,
    );
  });
});

const rawFrame = fc.record({
  type: fc.constantFrom(frameType.data, frameType.windowUpdate),
  flags: fc.constantFrom(
    0,
    0,
    0,
    frameFlag.syn,
    frameFlag.fin,
    frameFlag.rst,
    frameFlag.syn | frameFlag.fin,
  ),
  streamId: fc.constantFrom(1, 3),
  length: fc.constantFrom(0, 1, 100, 200_000),
});

/** What a receiver must make of frames, written as plainly as possible. */
class Reference {
  readonly streams = new Map<number, { window: number; ended: boolean }>();
  accepted = 0;
  bytes = 0;
  ends = 0;
  resets = 0;

  /** Returns whether the connection goes on. */
  apply({
    type,
    flags,
    streamId,
    length,
  }: typeof rawFrame extends fc.Arbitrary<infer F> ? F : never): boolean {
    if ((flags & frameFlag.syn) !== 0) {
      if (this.streams.has(streamId)) return false;
      this.streams.set(streamId, { window: windowBytes, ended: false });
      this.accepted += 1;
    }
    const stream = this.streams.get(streamId);
    if (stream === undefined) return true;
    if ((flags & frameFlag.rst) !== 0) {
      this.streams.delete(streamId);
      this.resets += 1;
      return true;
    }
    if (type === frameType.data) {
      if (length > stream.window) return false;
      stream.window -= length;
      if (!stream.ended) this.bytes += length;
    }
    if ((flags & frameFlag.fin) !== 0 && !stream.ended) {
      stream.ended = true;
      this.ends += 1;
    }
    return true;
  }
}

test('07 §B2: any order of SYN, FIN, RST, data and credit has the effect of the reference', () => {
  fc.assert(
    fc.property(fc.array(rawFrame, { maxLength: 30 }), (frames) => {
      const reference = new Reference();
      const end = new SessionEnd(false);
      for (const frame of frames) {
        const goesOn = reference.apply(frame);
        const payload = Buffer.alloc(frame.type === frameType.data ? frame.length : 0);
        const receive = () => end.session.receive(Buffer.concat([encodeHeader(frame), payload]));
        if (!goesOn) {
          expect(receive).toThrow(PeerError);
          return;
        }
        receive();
      }
      expect(end.accepted).toHaveLength(reference.accepted);
      expect(end.accepted.reduce((sum, { received }) => sum + received, 0)).toBe(reference.bytes);
      expect(end.accepted.filter(({ ended }) => ended)).toHaveLength(reference.ends);
      expect(end.accepted.filter(({ closed }) => closed === 'peer reset')).toHaveLength(
        reference.resets,
      );
      expect(end.session.streams.size).toBe(reference.streams.size);
    }),
    { ...run, numRuns: 1_000 },
  );
});

test('07 §B2: random bytes end a session with a PeerError or are skipped, and hold no memory', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 80 }), { maxLength: 10 }), (chunks) => {
      const end = new SessionEnd(false);
      try {
        for (const chunk of chunks) end.session.receive(Buffer.from(chunk));
      } catch (error) {
        expect(error).toBeInstanceOf(PeerError);
      }
      expect(end.session.streams.size).toBeLessThanOrEqual(
        chunks.flatMap((one) => [...one]).length / 12,
      );
    }),
    run,
  );
});
