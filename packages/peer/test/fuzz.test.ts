/** Random bytes at each parser of the wire; the seed is fixed, see vitest.config.ts. */
import { once } from 'node:events';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PeerError } from '../src/errors.ts';
import { defaultPeerLimits } from '../src/index.ts';
import { encodeLines, Proposal, Selection } from '../src/multistream.ts';
import { NoiseHandshake } from '../src/noise/handshake.ts';
import { generateNoiseKeys } from '../src/noise/keys.ts';
import { anyPort, hostOf, identityOf } from './support/hosts.ts';
import { openSocket, RawPeer } from './support/raw-peer.ts';

const run = { seed: Number(process.env.TEST_SEED ?? 4711), numRuns: 300 };
const chunks = fc.array(
  fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.constantFrom(encodeLines('/multistream/1.0.0'), encodeLines('na'), encodeLines('/noise')),
  ),
  { maxLength: 8 },
);

/** Runs a parser; it may throw nothing but a PeerError. */
function parse(work: () => void): void {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(PeerError);
  }
}

test('07 §B2: multistream-select answers random bytes with lines or a PeerError', () => {
  fc.assert(
    fc.property(chunks, (pieces) => {
      const selection = new Selection(() => false, defaultPeerLimits);
      const proposal = new Proposal('/noise', defaultPeerLimits);
      parse(() => {
        let replies = 0;
        for (const piece of pieces) replies += selection.receive(piece).reply.length;
        expect(replies).toBeLessThanOrEqual(20 + 8 * 4);
      });
      parse(() => {
        for (const piece of pieces) if (proposal.receive(piece) !== undefined) return;
      });
    }),
    run,
  );
});

test('07 §B3: random handshake messages are refused with a PeerError', () => {
  const staticKeys = generateNoiseKeys();
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ maxLength: 200 }), (a, b) => {
      const responder = new NoiseHandshake({ role: 'responder', staticKeys });
      parse(() => {
        responder.read(a);
        responder.write(new Uint8Array());
        responder.read(b);
        expect.unreachable('random bytes are not authentic');
      });
      const initiator = new NoiseHandshake({ role: 'initiator', staticKeys });
      initiator.write(new Uint8Array());
      expect(() => initiator.read(a)).toThrow(PeerError);
    }),
    run,
  );
});

test('07 §B3: random bytes before and after the handshake close their connection alone', async () => {
  await using listener = hostOf(1);
  const { port } = await listener.listen(anyPort);
  using good = await RawPeer.connect(port, identityOf(1).peerId);
  for (const bytes of fc.sample(fc.uint8Array({ minLength: 300, maxLength: 3_000 }), run)) {
    if (bytes.length % 10 > 0) continue;
    const socket = await openSocket(port);
    const closed = once(socket, 'close');
    socket.resume();
    socket.end(bytes);
    await closed;
    using peer = await RawPeer.connect(port, identityOf(1).peerId, 8);
    peer.send(bytes);
    peer.channel.end(new PeerError('closed', 'sent'));
    await peer.closed;
  }
  good.send(Buffer.from('000200010000000000000007', 'hex'));
  while (!good.received.includes(Buffer.from('000200020000000000000007', 'hex'))) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect([...listener.connections].some(({ isOpen }) => isOpen)).toBe(true);
});
