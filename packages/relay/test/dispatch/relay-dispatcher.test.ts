import { ProtocolError } from '@posthouse/protocol';
import { readRelayResponse } from '@posthouse/protocol/federation';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RelayContext, Verifier } from '../../src/context.ts';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import type { HandlerResult } from '../../src/dispatch/handler.ts';
import { LongWork } from '../../src/dispatch/long-work.ts';
import { RelayDispatcher } from '../../src/dispatch/relay-dispatcher.ts';
import { RelayTexts } from '../../src/dispatch/relay-texts.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const account = 'neo:860833102:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT';
const deviceId = 'dev_VyJyKJVXKGyCX2vsKlsIUw';
const params = { account, device_id: deviceId };
const peer = { relayId: '0xff3380fa8e020053f1d1274f428cd542438f06d5' };

let dispatcher: RelayDispatcher;
let handled: JsonObject[];
let respond: () => Promise<HandlerResult>;
/** Signatures that the handler verifies, and who paid for them. */
let verified: number;
let payers: Set<string | undefined>;

beforeEach(() => open());

function open(limits: Partial<typeof relay.context.limits> = {}): void {
  handled = [];
  respond = () => Promise.resolve({ result: { status: 'inactive' } });
  verified = 0;
  payers = new Set();
  const handle = async (
    { verifier }: Pick<RelayContext, 'verifier'>,
    call: { readonly params: object },
  ) => {
    handled.push(call.params as JsonObject);
    if (verified > 0) await verifier.verify(Array(verified).fill({}), 'an object');
    return await respond();
  };
  const verifier = {
    ...relay.context.verifier,
    verify: async (...[, , payer]: Parameters<Verifier['verify']>) => void payers.add(payer),
  };
  const context = { ...relay.context, verifier, limits: { ...relay.context.limits, ...limits } };
  const handlers = { 'device.status': handle, 'device.status.changed': handle };
  const turns = new CallTurns(context.clock);
  const texts = new RelayTexts({ limits: context.limits, turns, longWork: new LongWork() });
  dispatcher = new RelayDispatcher(context, handlers, texts);
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

/** Members that no method knows, of 20 bytes each. */
const members = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`unknown${index}`, [0]]));
const large = (changes: object = {}) =>
  request({ params: { ...params, ...members(6_000) }, ...changes });

describe('07 §C2: a frame of 64 KiB and more', () => {
  test('is read in steps: a small request that follows is answered before it', async () => {
    const order: unknown[] = [];
    const first = textOf(large({ id: 'large' })).then(() => order.push('large'));
    const second = textOf(request({ id: 'small' })).then(() => order.push('small'));
    await Promise.all([first, second]);
    expect(order).toEqual(['small', 'large']);
    expect(handled).toHaveLength(2);
  });

  test.each([
    ['nothing wrong', '', undefined],
    ['a null', ',"last":[null]', -32602],
    ['$context', ',"$context":1', -32602],
    ['a repeated name', ',"unknown1":1', -32602],
    ['no JSON', ',', -32700],
  ])('with %s gets the answer of a small one', async (_, end, code) => {
    const answer = (await textOf(large().replace(/}}$/, `${end}}}`))) as JsonObject;
    expect(answer.id).toBe(code === -32700 ? null : 1);
    expect((answer.error as JsonObject | undefined)?.code).toBe(code);
  });

  test('that is no UTF-8 resets the stream', async () => {
    const frame = new Uint8Array(70_000).fill(0xff);
    expect(await dispatcher.answer(frame, peer)).toEqual({ kind: 'reset' });
  });

  test('whose stream was reset is not read', async () => {
    const frame = new TextEncoder().encode(large());
    const reset = AbortSignal.abort(new Error('reset'));
    await expect(dispatcher.answer(frame, peer, reset)).rejects.toThrow('reset');
    expect(handled).toEqual([]);
  });

  test('without an allowance is not read: refused with its id, or without one', async () => {
    open({ relayBurst: 40, relayRate: 1 });
    const broken = (id: number) => `{"jsonrpc":"2.0","id":${id},${'x'.repeat(100_000)}`;
    // 25 units each; the second one goes into debt.
    expect(await textOf(broken(1))).toHaveProperty('error.code', -32700);
    expect(await textOf(broken(2))).toHaveProperty('error.code', -32700);
    expect(await textOf(broken(3))).toMatchObject({
      ...{ id: 3, error: { code: -32030, data: { retry_after: 12 } } },
    });
    expect(await textOf(` ${broken(4)}`)).toBe('unread');
  });

  test('that becomes more than a relay may have once it is read is not read', async () => {
    const lists = { ...params, lists: Array(100_000).fill([1]) };
    expect(await textOf(request({ params: lists }))).toMatchObject({
      ...{ id: 1, error: { code: -32015 } },
    });
    expect(handled).toEqual([]);
    const text = { ...params, text: 'x'.repeat(900_000) };
    expect(await textOf(request({ params: text }))).toHaveProperty('result');
  });
});

test('07 §C2: a frame that is no JSON is a fault of the relay, an invalid request is none', async () => {
  const isFault = async (text: string) => {
    const reply = await answer(text);
    return reply.kind === 'answer' && reply.isFault;
  };
  expect(await isFault('{')).toBe(true);
  expect(await isFault('[]')).toBe(false);
  expect(await isFault(request({ params: { a: null } }))).toBeUndefined();
});

describe('07 §C9: quotas', () => {
  /** Calls that are answered in a row with a full allowance. */
  async function answered(text: string): Promise<number> {
    relay.clock.advance(1_000);
    for (let count = 0; ; count += 1) {
      if (JSON.stringify(await textOf(text)).includes('-32030')) return count;
    }
  }

  test('a request costs a unit, and more for its bytes, lists, answer and signatures', async () => {
    open({ relayBurst: 60, relayRate: 1, relayAccountBurst: 1_000 });
    expect(await answered(request())).toBe(60);
    // 1 and 2 for the bytes.
    const padded = { ...params, padding: 'x'.repeat(2 * 4_096) };
    expect(await answered(request({ params: padded }))).toBe(20);
    // 1 and 5 for the list.
    const list = { ...params, list: Array(100).fill(1) };
    expect(await answered(request({ params: list }))).toBe(10);
    respond = async () => ({ result: { text: 'x'.repeat(4 * 4_096) } });
    expect(await answered(request())).toBe(12);
    verified = 3;
    respond = async () => ({ result: null });
    expect(await answered(request())).toBe(15);
  });

  test('requests of one relay above its burst are refused with a wait', async () => {
    open({ relayBurst: 2, relayRate: 1 });
    const answers = [];
    for (let count = 0; count < 3; count += 1) answers.push(await textOf(request()));
    // The refusal cost a unit too.
    expect(answers[2]).toMatchObject({ error: { code: -32030, data: { retry_after: 2 } } });
    expect(handled).toHaveLength(2);
    relay.clock.advance(2);
    expect(await textOf(request())).toMatchObject({ result: { status: 'inactive' } });
  });

  test('what an honest relay sends at once is below all: mail, hints and questions', async () => {
    open();
    const codes = async (count: number, text: string) => {
      const answers = await Promise.all(Array.from({ length: count }, () => textOf(text)));
      return new Set(answers.map((one) => (typeof one === 'string' ? one : Object.keys(one)[2])));
    };
    const of = (account: string, more: object = {}) => ({
      params: { ...params, account, ...more },
    });
    // A message of 64 KiB with 64 boxes, certificate and credential, and its signatures.
    verified = 5;
    const boxes = Array(64).fill({ box: 'x'.repeat(400) });
    const message = request({ params: { ...params, boxes, text: 'x'.repeat(80_000) } });
    expect(await codes(112, message)).toEqual(new Set(['result']));
    verified = 0;
    const third = 'neo:860833102:NQTNMWVdRFHLHTN5TXoUVtKPVFDyhKtuUQ';
    const hint = { ...of(third), id: undefined, method: 'device.status.changed' };
    expect(await codes(200, request(hint))).toEqual(new Set(['none']));
    respond = async () => ({ result: { state: 'x'.repeat(65_536) } });
    expect(await codes(64, request())).toEqual(new Set(['result']));
    expect(handled).toHaveLength(112 + 200 + 64);
  });

  test('each relay has its own turns in verifying signatures', async () => {
    verified = 1;
    const other = { relayId: `0x${'11'.repeat(20)}` };
    await answer(request());
    await dispatcher.answer(new TextEncoder().encode(request()), other);
    expect([...payers]).toEqual([`relay ${peer.relayId}`, `relay ${other.relayId}`]);
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

test('07 §C9: relays whose requests wait and have all room do not delay those of another', async () => {
  open({ peerBytes: 800_000, relayTextBytes: 100_000 });
  const { promise, resolve } = Promise.withResolvers<HandlerResult>();
  respond = () => promise;
  const of = (relayId: string, x: unknown) => {
    const text = request({ params: { ...params, x } });
    return dispatcher.answer(new TextEncoder().encode(text), { relayId });
  };
  const first = ['0xa', '0xb'].map((relayId) => of(relayId, Array(2_880).fill(0)));
  while (handled.length < 2) await new Promise((go) => setImmediate(go));
  respond = () => Promise.resolve({ result: { status: 'inactive' } });
  expect(await of('0xc', Array(300).fill(0))).toMatchObject({ kind: 'answer' });
  resolve({ result: { status: 'inactive' } });
  await Promise.all(first);
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
