/** JSON-RPC envelopes between relays (07 §C2, §C3). */

import { utf8 } from '@posthouse/protocol';
import { encodeFrame } from '@posthouse/protocol/federation';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import { relayChecksOf } from './common.ts';

const envelopes = relayChecksOf('rpc.envelope');

/** Text of a frame, and the code and `id` of its answer. */
type Row = readonly [text: string, code: number, id: JsonValue];

const invalidRequest = -32_600;
const methodNotFound = -32_601;
const invalidParams = -32_602;
const parseError = -32_700;

/** A request whose parameters are invalid, with members replaced. */
function request(members: JsonObject): string {
  return JSON.stringify({
    jsonrpc: '2.0',
    id: 7,
    method: 'profile.resolve',
    params: {},
    ...members,
  });
}

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

const refusals: Readonly<Record<string, Row>> = {
  'an-empty-frame': ['', parseError, null],
  'no-json': ['{"jsonrpc":', parseError, null],
  'two-values': ['{} {}', parseError, null],
  'a-byte-order-mark': [`\ufeff${request({})}`, parseError, null],
  'an-array': [`[${request({})}]`, invalidRequest, null],
  'a-string': ['"request"', invalidRequest, null],
  null: ['null', invalidRequest, null],
  'no-version': ['{"id":7,"method":"profile.resolve","params":{}}', invalidRequest, 7],
  'version-1': [request({ jsonrpc: '1.0' }), invalidRequest, 7],
  'no-method': ['{"jsonrpc":"2.0","id":7,"params":{}}', invalidRequest, 7],
  'a-method-of-another-type': [request({ method: 5 }), invalidRequest, 7],
  'a-null-id': [request({ id: null }), invalidRequest, null],
  'a-boolean-id': [request({ id: true }), invalidRequest, null],
  'an-object-id': [request({ id: {} }), invalidRequest, null],
  'an-id-over-128-bytes': [request({ id: 'é'.repeat(65) }), invalidRequest, null],
  'a-fraction-as-id': [request({}).replace('"id":7', '"id":7.5'), invalidRequest, null],
  'an-unsafe-id': [request({}).replace('"id":7', '"id":9007199254740992'), invalidRequest, null],
  'a-repeated-member': [
    request({}).replace('"id":7', '"note":1,"note":1,"id":7'),
    invalidRequest,
    7,
  ],
  'an-unknown-method': [request({ method: 'message.send' }), methodNotFound, 7],
  'a-method-in-other-case': [request({ method: 'Profile.resolve' }), methodNotFound, 7],
  'null-params': [request({ params: null }), invalidParams, 7],
  'array-params': [request({ params: [] }), invalidParams, 7],
  'string-params': [request({ params: 'x' }), invalidParams, 7],
  'missing-params': ['{"jsonrpc":"2.0","id":7,"method":"profile.resolve"}', invalidParams, 7],
  'a-repeated-parameter': [
    request({}).replace('"params":{}', '"params":{"account":"a","account":"a"}'),
    invalidParams,
    7,
  ],
  'a-fraction-in-params': [
    request({}).replace('"params":{}', '"params":{"account":1.5}'),
    invalidParams,
    7,
  ],
  'a-deep-parameter': [
    request({}).replace('"params":{}', `"params":{"account":"a","deep":${deep(17)}}`),
    invalidParams,
    7,
  ],
  'a-deep-member': [
    request({}).replace('"params":{}', `"params":{},"deep":${deep(17)}`),
    invalidRequest,
    7,
  ],
};

for (const [word, [text, code, id]] of Object.entries(refusals)) {
  envelopes.check(
    `refused-${word}`,
    { source: '07 §C2, §C3', title: `answers a request with ${word} with ${code}` },
    async (context) => {
      const connection = await (await context.seat()).connect();
      const response = await exchange(connection, text);
      const { error } = response;
      assertConforms(isJsonObject(error), `a request with ${word} gets an error`);
      assertEqual(error.code, code, `code of the answer to a request with ${word}`);
      assertEqual(response.id, id, `id of the answer to a request with ${word}`);
    },
  );
}

/** Sends one frame and checks the form of the response (07 §C3). */
async function exchange(connection: RelayConnection, text: string): Promise<JsonObject> {
  const response = parseJson(await connection.exchange(text));
  assertConforms(isJsonObject(response), 'a response is an object');
  assertEqual(response.jsonrpc, '2.0', 'jsonrpc of a response');
  const { error } = response;
  assertConforms(
    Object.hasOwn(response, 'result') !== Object.hasOwn(response, 'error'),
    'a response has either result or error',
  );
  if (error === undefined) return response;
  assertConforms(isJsonObject(error), 'error is an object');
  assertConforms(Number.isInteger(error.code), 'error.code is an integer');
  assertConforms(typeof error.message === 'string', 'error.message is a string');
  return response;
}

envelopes.check(
  'refused-a-notification-with-id',
  { source: '07 §C1, §C3', title: 'answers a notification that has an id with an error' },
  async (context) => {
    const { account, device } = await context.testAccount();
    const connection = await (await context.seat()).connect();
    const params = { account: account.id, device_id: device.id };
    const response = await exchange(
      connection,
      request({ method: 'device.status.changed', params }),
    );
    assertConforms(Object.hasOwn(response, 'error'), 'the name of a notification is no method');
    assertEqual(response.id, 7, 'id of the answer');
  },
);

for (const [word, id] of Object.entries<JsonValue>({
  zero: 0,
  negative: -1,
  largest: Number.MAX_SAFE_INTEGER,
  empty: '',
  text: 'request 1',
  '128-bytes': 'é'.repeat(64),
})) {
  envelopes.check(
    `id-${word}`,
    { source: '07 §C3', title: 'returns the id of a request unchanged' },
    async (context) => {
      const connection = await (await context.seat()).connect();
      const response = await exchange(connection, request({ id }));
      assertEqual(response.id, id, 'id of the response');
    },
  );
}

envelopes.check(
  'unknown-members',
  { source: '07 §C3', title: 'ignores unknown members next to those of a request' },
  async (context) => {
    const { account, device } = await context.testAccount();
    const connection = await (await context.seat()).connect();
    const params = { account: account.id, device_id: device.id };
    const members = { relay_id: '0x00', from: 'x', future: { deep: [] } };
    const text = request({ method: 'device.status', params, ...members });
    const response = await exchange(connection, text);
    assertEqual(isJsonObject(response.result) && response.result.status, 'active', 'the status');
  },
);

for (const [word, text] of Object.entries({
  known: '{"jsonrpc":"2.0","method":"device.status.changed","params":{}}',
  unknown: '{"jsonrpc":"2.0","method":"future.changed","params":{}}',
  'of-a-request': '{"jsonrpc":"2.0","method":"profile.resolve","params":{}}',
})) {
  envelopes.check(
    `notification-${word}`,
    { source: '07 §C2', title: 'sends nothing for a notification' },
    async (context) => {
      const connection = await (await context.seat()).connect();
      const result = await connection.send(connection.protocols.rpc, encodeFrame(utf8(text)));
      assertConforms(result.kind !== 'frame', 'a notification gets no answer');
    },
  );
}

envelopes.check(
  'streams',
  { source: '07 §C3', title: 'answers requests with one id on several streams, each on its own' },
  async (context) => {
    const accounts = [await context.testAccount(), await context.testAccount()];
    const connection = await (await context.seat()).connect();
    const answers = await Promise.all(
      [0, 1, 0, 1, 0, 1].map(async (index) => {
        const { account, device } = accounts[index] as (typeof accounts)[0];
        // The second account is asked for a device of the first.
        const device_id = index === 0 ? device.id : (accounts[0] as (typeof accounts)[0]).device.id;
        const params = { account: account.id, device_id };
        const response = await exchange(connection, request({ method: 'device.status', params }));
        return isJsonObject(response.result) && response.result.status;
      }),
    );
    const [active, inactive] = ['active', 'inactive'];
    assertEqual(
      answers,
      [active, inactive, active, inactive, active, inactive],
      'the answers of six streams',
    );
  },
);

export const envelopeChecks = envelopes.list;
