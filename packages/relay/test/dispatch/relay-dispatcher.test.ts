import { ProtocolError } from '@posthouse/protocol';
import { readRelayResponse } from '@posthouse/protocol/federation';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import type { HandlerResult } from '../../src/dispatch/handler.ts';
import { RelayDispatcher } from '../../src/dispatch/relay-dispatcher.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const account = 'neo:860833102:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT';
const deviceId = 'dev_VyJyKJVXKGyCX2vsKlsIUw';
const params = { account, device_id: deviceId };
const peer = { relayId: '0xff3380fa8e020053f1d1274f428cd542438f06d5' };

let dispatcher: RelayDispatcher;
let handled: JsonObject[];
let respond: () => Promise<HandlerResult>;

beforeEach(() => open());

function open(limits: Partial<typeof relay.context.limits> = {}): void {
  handled = [];
  respond = () => Promise.resolve({ result: { status: 'inactive' } });
  const handle = (_: unknown, call: { readonly params: object }) => {
    handled.push(call.params as JsonObject);
    return respond();
  };
  const context = { ...relay.context, limits: { ...relay.context.limits, ...limits } };
  dispatcher = new RelayDispatcher(context, {
    'device.status': handle,
    'device.status.changed': handle,
  });
}

const answer = (text: string) => dispatcher.answer(new TextEncoder().encode(text), peer);
const textOf = async (text: string) => {
  const reply = await answer(text);
  return reply.kind === 'answer' ? (parseJson(reply.text) as JsonObject) : reply.kind;
};
const request = (changes: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'device.status', params, ...changes });

describe('07 §C2, §C3: envelopes of relay RPC', () => {
  test('a request gets the result under its own id', async () => {
    for (const id of [1, 0, -7, '', 'x'.repeat(128)]) {
      expect(await textOf(request({ id }))).toEqual({
        jsonrpc: '2.0',
        id,
        result: { status: 'inactive' },
      });
    }
  });

  test('a frame that is no UTF-8 resets the stream', async () => {
    expect(await dispatcher.answer(Uint8Array.of(0x22, 0xff, 0x22), peer)).toEqual({
      kind: 'reset',
    });
  });

  test.each([
    ['not JSON', '{', -32700, null],
    ['two values', '{}{}', -32700, null],
    ['an array', '[]', -32600, null],
    ['a batch', `[${request()}]`, -32600, null],
    ['a repeated member', '{"jsonrpc":"2.0","jsonrpc":"2.0","id":4,"method":"x"}', -32600, 4],
    ['no jsonrpc', request({ jsonrpc: undefined }), -32600, 1],
    ['another version', request({ jsonrpc: '1.0' }), -32600, 1],
    ['an id that is null', request({ id: null }), -32600, null],
    ['an id that is too long', request({ id: 'x'.repeat(129) }), -32600, null],
    ['an id that is no integer', '{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, null],
    ['a method that is no text', request({ method: 3 }), -32600, 1],
    ['an unknown method', request({ method: 'message.send' }), -32601, 1],
    ['a notification as a request', request({ method: 'device.status.changed' }), -32601, 1],
    ['another case', request({ method: 'Device.Status' }), -32601, 1],
    ['params that are null', request({ params: null }), -32602, 1],
    ['params that are an array', request({ params: [] }), -32602, 1],
    ['missing params', request({ params: undefined }), -32602, 1],
    ['a missing member', request({ params: { account } }), -32602, 1],
    ['a null inside params', request({ params: { ...params, extra: null } }), -32602, 1],
    ['$context inside params', request({ params: { ...params, $context: 'x' } }), -32602, 1],
    [
      'a repeated member inside params',
      `{"jsonrpc":"2.0","id":1,"method":"device.status","params":{"a":1,"a":2}}`,
      -32602,
      1,
    ],
  ])('%s is refused', async (_, text, code, id) => {
    expect(await textOf(text)).toMatchObject({ jsonrpc: '2.0', id, error: { code } });
    expect(handled).toEqual([]);
  });

  test('unknown root members and unknown parameters change nothing', async () => {
    const extra = { trace: { a: [1] }, params: { ...params, extra: 'x' } };
    expect(await textOf(request(extra))).toMatchObject({ id: 1, result: { status: 'inactive' } });
  });

  test('a notification is handled and gets no answer, not even an error', async () => {
    const notification = { jsonrpc: '2.0', method: 'device.status.changed', params };
    expect(await textOf(JSON.stringify(notification))).toBe('none');
    expect(handled).toEqual([params]);
    expect(await textOf(JSON.stringify({ ...notification, params: {} }))).toBe('none');
    expect(await textOf(JSON.stringify({ ...notification, method: 'device.status' }))).toBe('none');
    expect(await textOf(JSON.stringify({ ...notification, method: 'x' }))).toBe('none');
    expect(handled).toHaveLength(1);
  });

  test('an error of the catalogue has its code; any other is an internal error', async () => {
    respond = () => Promise.reject(new ProtocolError('route_stale', 'moved'));
    expect(await textOf(request())).toMatchObject({ error: { code: -32021, message: 'moved' } });
    respond = () => Promise.reject(new Error('secret'));
    const internal = (await textOf(request())) as JsonObject;
    expect(internal).toMatchObject({ id: 1, error: { code: -32603 } });
    expect(JSON.stringify(internal)).not.toContain('secret');
  });
});

describe('07 §C9: quotas', () => {
  test('requests of one relay above its burst are refused with a wait', async () => {
    open({ relayBurst: 2, relayRate: 1 });
    const answers = [];
    for (let count = 0; count < 3; count += 1) answers.push(await textOf(request()));
    expect(answers[2]).toMatchObject({ error: { code: -32030, data: { retry_after: 1 } } });
    expect(handled).toHaveLength(2);
    relay.clock.advance(1);
    expect(await textOf(request())).toMatchObject({ result: { status: 'inactive' } });
  });

  test('another relay, and another account, is not affected', async () => {
    open({ relayAccountBurst: 1, relayAccountRate: 1 });
    expect(await textOf(request())).toHaveProperty('result');
    expect(await textOf(request())).toHaveProperty('error');
    const other = { ...params, account: 'neo:860833102:NQTNMWVdRFHLHTN5TXoUVtKPVFDyhKtuUQ' };
    expect(await textOf(request({ params: other }))).toHaveProperty('result');
    const reply = await dispatcher.answer(new TextEncoder().encode(request()), {
      relayId: `0x${'11'.repeat(20)}`,
    });
    expect(reply).toMatchObject({ kind: 'answer', text: expect.stringContaining('"result"') });
  });
});

describe('07 §C3, §C9: responses of other relays', () => {
  const read = (value: unknown) => readRelayResponse(JSON.stringify(value), 7);
  const error = (changes: object = {}) => ({
    jsonrpc: '2.0',
    id: 7,
    error: { code: -32030, message: 'wait', ...changes },
  });

  test('a result and an error are read', () => {
    expect(read({ jsonrpc: '2.0', id: 7, result: null, x: 1 })).toEqual({
      kind: 'result',
      value: null,
    });
    const refused = { kind: 'refused', code: 'rate_limited', message: 'wait' };
    expect(read(error())).toEqual(refused);
    expect(read(error({ data: { retry_after: 0 } }))).toEqual({ ...refused, retryAfter: 0 });
    expect(read(error({ code: -31000 }))).toMatchObject({ kind: 'refused', code: '-31000' });
  });

  test.each([
    ['text that is no JSON', '{'],
    ['an array', []],
    ['another id', { jsonrpc: '2.0', id: 8, result: {} }],
    ['the id as text', { jsonrpc: '2.0', id: '7', result: {} }],
    ['no id', { jsonrpc: '2.0', result: {} }],
    ['no version', { id: 7, result: {} }],
    ['neither result nor error', { jsonrpc: '2.0', id: 7 }],
    ['both', { ...error(), result: {} }],
    ['an error that is no object', { jsonrpc: '2.0', id: 7, error: 'x' }],
    ['a code that is no integer', error({ code: '1' })],
    ['no message', error({ message: undefined })],
    ['data that is no object', error({ data: [] })],
    ['a negative wait', error({ data: { retry_after: -1 } })],
    ['a wait that is no number', error({ data: { retry_after: '3' } })],
    ['a wait that is null', error({ data: { retry_after: null } })],
  ])('%s is invalid', (_, value) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    expect(readRelayResponse(text, 7).kind).toBe('invalid');
  });
});
