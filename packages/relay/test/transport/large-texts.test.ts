/** Texts of 64 KiB and more are read in slices, with the answers that smaller ones get. */
import { errorCatalogue } from '@posthouse/protocol';
import { expect, test } from 'vitest';
import { parsedBytes } from '../../src/dispatch/parsed-bytes.ts';
import { defaultLimits } from '../../src/limits.ts';
import { codeOf } from '../support/http.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';

const relay = servedRelay();
const ann = relay.person('ann');
const json = { 'content-type': 'application/json' };

/** Members that no method knows, of 20 bytes each. */
const members = (count: number) =>
  Array.from({ length: count }, (_, index) => `"unknown${index}":[0]`).join(',');
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** What comes after the members, and the code of the answer over HTTP and over WebSocket. */
const cases = [
  ['nothing wrong', '', 'ok', undefined],
  ['a null', ',"last":[null]', 'bad_request', -32602],
  ['$context', ',"$context":1', 'bad_request', -32602],
  ['a value that is too deep', `,"last":${nested(17)}`, 'bad_request', -32602],
  ['a repeated name', ',"unknown1":1', 'bad_request', -32602],
  ['no JSON', ',', 'bad_request', -32700],
] as const;

test.each(cases)('02 §3.3, §18: a large text with %s', async (_, end, code, rpc) => {
  const params = `{"account":"${ann.account}",${members(6_000)}${end}}`;
  const message = { verb: 'POST', path: '/auth/challenge', headers: json };
  expect(codeOf(await relay.http().send({ ...message, body: params }))).toBe(code);
  using socket = await relay.socket();
  const text = `{"jsonrpc":"2.0","id":7,"method":"auth.challenge","params":${params}}`;
  const answer = await socket.send(text);
  expect(answer.error?.code).toBe(rpc);
  expect(answer.id).toBe(rpc === -32700 ? null : 7);
});

test('02 §3.7: a small request that follows a large one is answered before it', async () => {
  using socket = await relay.socket();
  const params = `{"account":"${ann.account}",${members(50_000)}}`;
  const order: unknown[] = [];
  socket.socket.on('message', (data) => order.push(JSON.parse(String(data)).id));
  socket.socket.send(`{"jsonrpc":"2.0","id":1,"method":"auth.challenge","params":${params}}`);
  socket.socket.send('{"jsonrpc":"2.0","id":2,"method":"relay.info"}');
  expect(await socket.answer(1)).toHaveProperty('result.nonce');
  expect(order).toEqual([2, 1]);
});

test('02 §18: a large request that is being read is one under way', async () => {
  await using strict = await ServedRelay.start({ limits: { outstandingRequests: 1 } });
  using socket = await strict.socket();
  const request = (id: number, end: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"auth.challenge","params":{"account":"${ann.account}"${end}}}`;
  socket.socket.send(request(1, `,${members(50_000)}`));
  socket.socket.send(request(2, `,"unknown":"${'x'.repeat(70_000)}"`));
  expect(await socket.answer(2)).toHaveProperty('error.code', -32030);
  expect(await socket.answer(1)).toHaveProperty('result.nonce');
});

test('02 §18: what is read of a text counts, before it is read', async () => {
  expect(parsedBytes(Buffer.from('{"a":[1,2]}'))).toBe(11 + 80 + 48 + 160 + 32);
  const { receivedBytesPerAddress } = defaultLimits;
  await using strict = await ServedRelay.start({ limits: { receivedBytesPerAddress } });
  using socket = await strict.socket();
  const lists = `{"account":"${ann.account}","lists":[${Array(200_000).fill('[1]').join(',')}]}`;
  const plain = `{"account":"${ann.account}","unknown":"${'x'.repeat(800_000)}"}`;
  const send = (id: number, params: string) =>
    socket.send(`{"jsonrpc":"2.0","id":${id},"method":"auth.challenge","params":${params}}`);
  const message = { verb: 'POST', path: '/auth/challenge', headers: json };
  expect(await send(1, lists)).toMatchObject({ id: 1, error: { code: -32030 } });
  expect(codeOf(await strict.http().send({ ...message, body: lists }))).toBe('rate_limited');
  expect(await send(2, plain)).toHaveProperty('result.nonce');
  expect(codeOf(await strict.http().send({ ...message, body: plain }))).toBe('ok');
});

test('02 §18: a large text without an allowance is refused before it is read', async () => {
  const limits = { addressRate: 1, addressBurst: 40 };
  await using strict = await ServedRelay.start({ limits });
  using socket = await strict.socket();
  const broken = (id: number) => `{"jsonrpc":"2.0","id":${id},${'x'.repeat(100_000)}`;
  // 25 units each; the second one goes into debt.
  expect(await socket.send(broken(1))).toHaveProperty('error.code', -32700);
  expect(await socket.send(broken(2))).toHaveProperty('error.code', -32700);
  const { id, error } = await socket.send(broken(3));
  expect([id, error?.code]).toEqual([3, -32030]);
  expect(error?.data).toHaveProperty('retry_after');
});

test('02 §18: a request under way counts 4 KiB at least', async () => {
  const params = `{"account":"${ann.account}",${members(50_000)}}`;
  const large = `{"jsonrpc":"2.0","id":1,"method":"auth.challenge","params":${params}}`;
  const bytes = large.length + parsedBytes(Buffer.from(large));
  await using strict = await ServedRelay.start({
    limits: { receivedBytesPerAddress: bytes + 4_000 },
  });
  using socket = await strict.socket();
  socket.socket.send(large);
  // What the large one becomes is counted in steps before it counts.
  let code: number | undefined;
  for (let id = 2; code === undefined && id < 200; id += 1) {
    code = (await socket.send(`{"jsonrpc":"2.0","id":${id},"method":"relay.info"}`)).error?.code;
  }
  expect(code).toBe(-32030);
  expect(await socket.answer(1)).toHaveProperty('result.nonce');
});

test('02 §3.3: a large request that is being read when its connection is closed is not run', async () => {
  using bound = await relay.socket();
  await relay.bindDevice(bound, ann.device());
  const params = JSON.stringify(ann.profile());
  const request = `"id":1,"method":"profile.publish","params":${params}`;
  bound.socket.send(`{"jsonrpc":"2.0",${request},"padding":{${members(20_000)}}}`);
  bound.socket.send(Buffer.from('binary'));
  expect(await bound.closed).toBe(1003);
  // Read after the other: two texts at once, in turns.
  using other = await relay.socket();
  await relay.bindDevice(other, ann.device());
  const later = `{"account":"${ann.account}",${members(40_000)}}`;
  other.socket.send(`{"jsonrpc":"2.0","id":2,"method":"auth.challenge","params":${later}}`);
  expect(await other.answer(2)).toHaveProperty('result.nonce');
  const stored = await other.call('profile.resolve', { account: ann.account });
  expect(stored.error?.code).toBe(errorCatalogue.not_found.rpc);
});
