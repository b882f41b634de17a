/** Frames of both protocols between relays: length prefixes, sizes, streams (07 §B6, §C2). */
import { utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  encodeFindNode,
  encodeFrame,
  kadTypes,
} from '@posthouse/protocol/federation';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { TestContext } from '../../fixtures/test-context.ts';
import { nextFrame, type RelayConnection } from '../../seat/relay-connection.ts';
import { relayChecksOf } from './common.ts';

const rpc = relayChecksOf('rpc.frames');
const dht = relayChecksOf('dht.frames');

const maxFrame = 1_048_576;

/** Valid messages of each protocol, which are answered. */
const messages = {
  rpc: utf8('{"jsonrpc":"2.0","id":1,"method":"profile.resolve","params":{}}'),
  dht: encodeFindNode(utf8('any nonempty input')),
} as const;

/** Streams that cannot be read as frames, made of a valid message. */
const faults: Readonly<Record<string, (message: Uint8Array) => Uint8Array>> = {
  'a-longer-prefix-than-needed': (message) =>
    Buffer.concat([new Uint8Array([message.length | 0x80, 0]), message]),
  'prefix-81-00': () => new Uint8Array([0x81, 0x00, 0x7b]),
  'a-prefix-of-ten-bytes': (message) =>
    Buffer.concat([new Uint8Array(9).fill(0x80), new Uint8Array([1]), message]),
  'a-prefix-above-the-range': () => new Uint8Array([...new Uint8Array(9).fill(0xff), 1]),
  'a-cut-prefix': () => new Uint8Array([0x80]),
  'a-cut-frame': (message) => encodeFrame(message).subarray(0, -1),
};

for (const [name, { check }] of [
  ['rpc', rpc],
  ['dht', dht],
] as const) {
  const source = name === 'rpc' ? '07 §C2' : '07 §B6';
  for (const [word, fault] of Object.entries(faults)) {
    check(
      `refused-${word}`,
      { source, title: `closes or resets a stream with ${word}, without an answer` },
      async (context) => {
        const connection = await connect(context);
        const result = await connection.send(connection.protocols[name], fault(messages[name]));
        assertConforms(result.kind !== 'frame', `a stream with ${word} is not answered`);
        await expectAlive(connection);
      },
    );
  }
  check(
    'in-pieces',
    { source, title: 'reads a frame that arrives byte by byte' },
    async (context) => {
      const connection = await connect(context);
      const result = await connection.withStream(connection.protocols[name], async (stream) => {
        for (const byte of encodeFrame(messages[name])) await stream.write(new Uint8Array([byte]));
        return await nextFrame(stream);
      });
      assertEqual(result.kind, 'frame', 'what a frame in pieces is answered with');
    },
  );
}

async function connect(context: TestContext): Promise<RelayConnection> {
  const seat = await context.seat();
  return await seat.connect();
}

/** Asserts that a fault of one stream has not ended the connection's other streams. */
async function expectAlive(connection: RelayConnection): Promise<void> {
  await connection.exchange(messages.rpc);
}

rpc.check(
  'largest',
  { source: '07 §C2', title: 'accepts a frame of exactly 1 MiB' },
  async (context) => {
    const connection = await connect(context);
    const [head, tail] = ['{"jsonrpc":"2.0","id":"large","method":"x","params":{},"note":"', '"}'];
    const note = 'n'.repeat(maxFrame - head.length - tail.length);
    const text = await connection.exchange(head + note + tail);
    assertEqual(JSON.parse(text).id, 'large', 'id of the answer to the largest frame');
  },
);

dht.check(
  'largest',
  { source: '07 §B6', title: 'accepts a message of exactly 1 MiB, unknown fields included' },
  async (context) => {
    const connection = await connect(context);
    const message = messages.dht;
    // Field 99, a length of three bytes, and so many bytes.
    const head = [0x9a, 0x06];
    const length = maxFrame - message.length - head.length - 3;
    const varint = [(length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14];
    const padded = Buffer.concat([
      message,
      new Uint8Array([...head, ...varint]),
      new Uint8Array(length),
    ]);
    assertEqual(padded.length, maxFrame, 'bytes of the message');
    const result = await connection.send(connection.protocols.dht, encodeFrame(padded));
    assertEqual(result.kind, 'frame', 'what the largest message is answered with');
  },
);

dht.check(
  'too-large',
  { source: '07 §B6', title: 'refuses a message above 1 MiB by its prefix, without an answer' },
  async (context) => {
    const connection = await connect(context);
    // 2^20 + 1 bytes, of which a few come: a relay that waits for the rest has not refused it.
    const prefix = new Uint8Array([0x81, 0x80, 0x40, 0x08, 0x04]);
    const options = { end: false };
    const result = await connection.send(connection.protocols.dht, prefix, options);
    assertConforms(result.kind !== 'frame', 'a message above 1 MiB is not answered');
    await expectAlive(connection);
  },
);

dht.check(
  'echoes',
  { source: '07 §B7', title: 'repeats type and key of a request, written even if they are zero' },
  async (context) => {
    const connection = await connect(context);
    const result = await connection.send(connection.protocols.dht, encodeFrame(messages.dht));
    assertConforms(result.kind === 'frame', `FIND_NODE is answered, not ${result.kind}`);
    const reply = decodeKadMessage(result.frame, { peers: 100, addresses: 100 });
    assertEqual(reply.type, kadTypes.findNode, 'type of the answer');
    assertEqual(Buffer.from(reply.key ?? []).toString(), 'any nonempty input', 'key of the answer');
    assertEqual(reply.record, undefined, 'record of the answer to FIND_NODE');
  },
);

rpc.check(
  'no-utf8',
  {
    source: '07 §C2',
    title: 'closes or resets a stream whose frame is no UTF-8, without an answer',
  },
  async (context) => {
    const connection = await connect(context);
    const frame = encodeFrame(new Uint8Array([0x7b, 0xff, 0x7d]));
    const result = await connection.send(connection.protocols.rpc, frame);
    assertConforms(result.kind !== 'frame', 'a frame that is no UTF-8 is not answered');
    await expectAlive(connection);
  },
);

rpc.check(
  'closes',
  { source: '07 §C2', title: 'closes its side of the stream after the response' },
  async (context) => {
    const connection = await connect(context);
    const frame = encodeFrame(messages.rpc);
    const second = await connection.withStream(connection.protocols.rpc, async (stream) => {
      await stream.write(frame);
      assertEqual((await nextFrame(stream)).kind, 'frame', 'what a request is answered with');
      return await nextFrame(stream);
    });
    assertConforms(second.kind !== 'frame', 'nothing follows a response');
  },
);

rpc.check(
  'one-request',
  { source: '07 §C2', title: 'answers no second request of a stream' },
  async (context) => {
    const connection = await connect(context);
    const frame = encodeFrame(messages.rpc);
    const answers = await connection.withStream(connection.protocols.rpc, async (stream) => {
      await stream.write(Buffer.concat([frame, frame]));
      let count = 0;
      while (count < 2 && (await nextFrame(stream)).kind === 'frame') count += 1;
      return { kind: 'counted', count } as const;
    });
    const count = answers.kind === 'counted' ? answers.count : 0;
    assertConforms(count <= 1, `at most one answer on a stream, not ${count}`);
  },
);

export const frameChecks = [...rpc.list, ...dht.list];
