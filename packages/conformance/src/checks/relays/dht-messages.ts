/** Requests of the relay DHT that break its rules (07 §B6, §B7). */
import { utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeFrame,
  encodeKadMessage,
  type KadMessage,
  kadTypes,
} from '@posthouse/protocol/federation';
import { assertConforms, assertEqual } from '../../assert.ts';
import { recordOf } from '../../seat/home-account.ts';
import { nextFrame } from '../../seat/relay-connection.ts';
import { relayChecksOf } from './common.ts';

const messages = relayChecksOf('dht.messages');

/** A valid record of a route, of which each fault is made. */
type MakeFault = (record: { key: Uint8Array; value: Uint8Array }) => KadMessage;

const { putValue, getValue, findNode } = kadTypes;

const bounds = { peers: 100, addresses: 100 };

const faults: Readonly<Record<string, MakeFault>> = {
  'get-without-key': () => ({ type: getValue }),
  'get-with-31-bytes': ({ key }) => ({ type: getValue, key: key.subarray(1) }),
  'get-with-33-bytes': ({ key }) => ({
    type: getValue,
    key: Buffer.concat([key, key]).subarray(31),
  }),
  'find-without-key': () => ({ type: findNode }),
  'find-with-an-empty-key': () => ({ type: findNode, key: new Uint8Array() }),
  'put-without-key': (record) => ({ type: putValue, record }),
  'put-without-record': ({ key }) => ({ type: putValue, key }),
  'put-without-record-key': ({ key, value }) => ({ type: putValue, key, record: { value } }),
  'put-without-value': ({ key }) => ({ type: putValue, key, record: { key } }),
  'put-with-another-record-key': ({ key, value }) => {
    const other = Buffer.from(key);
    other[0] = (other[0] as number) ^ 1;
    return { type: putValue, key, record: { key: other, value } };
  },
  'put-under-another-key': ({ key, value }) => {
    const other = Buffer.from(key);
    other[31] = (other[31] as number) ^ 1;
    return { type: putValue, key: other, record: { key: other, value } };
  },
  'put-with-a-short-key': ({ key, value }) => {
    const short = key.subarray(0, 16);
    return { type: putValue, key: short, record: { key: short, value } };
  },
};

for (const [word, fault] of Object.entries(faults)) {
  messages.check(
    `refused-${word}`,
    { source: '07 §B6, §B7', title: `closes or resets a stream with ${word}, without an answer` },
    async (context) => {
      const seat = await context.seat();
      const connection = await seat.connect();
      const { id, route } = await seat.home();
      const message = encodeKadMessage(fault(recordOf(context.network, route)));
      const result = await connection.send(connection.protocols.dht, encodeFrame(message));
      assertConforms(result.kind !== 'frame', `a message ${word} is not answered`);
      assertEqual(await connection.getRoute(id), undefined, 'route that is stored afterwards');
    },
  );
}

for (const [word, type] of [
  ['get', getValue],
  ['find', findNode],
] as const) {
  messages.check(
    `${word}-with-a-record`,
    { source: '07 §B7', title: 'stores no record but that of PUT_VALUE' },
    async (context) => {
      const seat = await context.seat();
      const connection = await seat.connect();
      const { id, route } = await seat.home();
      const record = recordOf(context.network, route);
      await connection.ask({ type, key: record.key, record });
      assertEqual(await connection.getRoute(id), undefined, 'route that is stored afterwards');
    },
  );
}

/** Bytes that are no message. */
const garbage: Readonly<Record<string, Uint8Array>> = {
  'no-protobuf': utf8('no protobuf'),
  'a-key-of-another-wire-type': new Uint8Array([0x08, 0x01, 0x10, 0x05]),
  'a-field-cut-off': new Uint8Array([0x08, 0x01, 0x12, 0x20, 0x01]),
};

for (const [word, bytes] of Object.entries(garbage)) {
  messages.check(
    `refused-${word}`,
    { source: '07 §B6', title: `closes or resets a stream with ${word}, without an answer` },
    async (context) => {
      const connection = await (await context.seat()).connect();
      const result = await connection.send(connection.protocols.dht, encodeFrame(bytes));
      assertConforms(result.kind !== 'frame', `a message of ${word} is not answered`);
    },
  );
}

messages.check(
  'unknown-fields',
  { source: '07 §B6', title: 'ignores unknown fields and fields of other DHTs' },
  async (context) => {
    const { account } = await context.testAccount();
    const connection = await (await context.seat()).connect();
    const key = deriveRouteKey(context.network, account.id);
    const request = encodeKadMessage({ type: getValue, key });
    // providerPeers (9), clusterLevelRaw (10) and an unknown field (99).
    const others = new Uint8Array([0x4a, 0x02, 0x0a, 0x00, 0x50, 0x05, 0x9a, 0x06, 0x01, 0x78]);
    const frame = encodeFrame(Buffer.concat([request, others]));
    const result = await connection.send(connection.protocols.dht, frame);
    assertEqual(result.kind, 'frame', 'what a message with unknown fields is answered with');
  },
);

messages.check(
  'absent',
  { source: '07 §B7', title: 'answers GET_VALUE of an unknown account without a record' },
  async (context) => {
    const connection = await (await context.seat()).connect();
    const route = await connection.getRoute(context.account().id);
    assertEqual(route, undefined, 'route of an unknown account');
  },
);

messages.check(
  'several-on-a-stream',
  { source: '07 §B6', title: 'answers several requests on one stream, one after another' },
  async (context) => {
    const connection = await (await context.seat()).connect();
    const { network } = context;
    const keys = [0, 1, 2].map(() => deriveRouteKey(network, context.account().id));
    const answers = await connection.withStream(connection.protocols.dht, async (stream) => {
      const found: string[] = [];
      for (const key of keys) {
        await stream.write(encodeFrame(encodeKadMessage({ type: getValue, key })));
        const result = await nextFrame(stream);
        if (result.kind !== 'frame') break;
        const { key: echoed = new Uint8Array() } = decodeKadMessage(result.frame, bounds);
        found.push(Buffer.from(echoed).toString('hex'));
      }
      return { kind: 'answers', found } as const;
    });
    const found = answers.kind === 'answers' ? answers.found : [];
    const expected = keys.map((key) => Buffer.from(key).toString('hex'));
    assertEqual(found, expected, 'keys of the answers on one stream');
  },
);

/** Values that are no route, under the key of an account. */
const values: Readonly<Record<string, (text: string) => Uint8Array>> = {
  'no-json': (text) => utf8(text.slice(1)),
  'no-utf8': (text) => Buffer.concat([utf8(text.slice(0, -1)), new Uint8Array([0xff, 0x7d])]),
  'a-repeated-member': (text) => utf8(`${text.slice(0, -1)},"revision":1}`),
  'bytes-after-it': (text) => utf8(`${text} {}`),
  'an-array': (text) => utf8(`[${text}]`),
  'nothing-in-it': () => new Uint8Array(),
};

for (const [word, change] of Object.entries(values)) {
  messages.check(
    `refused-value-with-${word}`,
    { source: '07 §B7, §B10', title: `stores no record whose value has ${word}` },
    async (context) => {
      const seat = await context.seat();
      const connection = await seat.connect();
      const { id, route } = await seat.home();
      const { key, value } = recordOf(context.network, route);
      const record = { key, value: change(Buffer.from(value).toString()) };
      const reply = await connection.ask({ type: putValue, key, record });
      assertEqual(reply?.record, undefined, 'the record that is echoed');
      assertEqual(await connection.getRoute(id), undefined, 'route that is stored afterwards');
    },
  );
}

export const dhtMessageChecks = messages.list;
