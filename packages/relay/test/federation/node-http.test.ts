/** Requests to the nodes of the chain, and how many of them strangers can cause. */
import { ChainRegistry } from '@posthouse/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeNode, type Fate } from '../../../protocol/test/registry-chain/fake-node.ts';
import { KeptRegistry } from '../../src/federation/registry/kept-registry.ts';
import { NodeHttp } from '../../src/federation/registry/node-http.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/in-process-relay.ts';
import { patience } from '../support/served-network.ts';
import { type Answer, DescriptorServer, testCertificate } from './remote-relay.ts';

let clock: ManualClock;
let parts: AsyncDisposableStack;
let node: FakeNode;
beforeEach(async () => {
  clock = new ManualClock();
  parts = new AsyncDisposableStack();
  node = parts.use(await FakeNode.start(network.context));
});
afterEach(() => parts.disposeAsync());

const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getversion', params: [] });
const http = (authority?: string) =>
  parts.use(new NodeHttp({ clock, limits: defaultLimits, authority }));
const request = (url: string, maxBytes = 65_536) => ({ url, body, maxBytes, signal: undefined });

describe('07 §A6: a request to a node', () => {
  test('is answered, and tells a new connection from a kept one', async () => {
    const { post } = http();
    const first = await post(request(node.url));
    expect(first).toMatchObject({ status: 200, isNewConnection: true });
    expect(JSON.parse(new TextDecoder().decode(first.body)).result.protocol.network).toBe(
      node.magic,
    );
    expect(await post(request(node.url))).toMatchObject({ isNewConnection: false });
  });

  test('over a kept connection that the node closed is sent again over a new one', async () => {
    const { post } = http();
    await post(request(node.url));
    node.disconnect();
    expect(await post(request(node.url))).toMatchObject({ status: 200, isNewConnection: true });
  });

  test.each<[Fate, RegExp]>([
    ['close', /hang up/],
    ['cut', /aborted/],
    ['huge', /over 65536 bytes/],
  ])('with the answer %s is refused', async (fate, message) => {
    node.fate = () => fate;
    await expect(http().post(request(node.url))).rejects.toThrow(message);
    expect(node.asked).toHaveLength(1);
    expect(node.sentBytes).toBeLessThan(16 * 1024 * 1024);
  });

  test.each<[Fate, number]>([
    ['redirect', 307],
    ['status', 503],
  ])('with the answer %s tells the status, and nothing of the body', async (fate, status) => {
    node.fate = () => fate;
    const answer = await http().post(request(node.url));
    expect(answer).toEqual({ status, body: new Uint8Array() });
    expect(node.asked).toHaveLength(1);
    const registry = new ChainRegistry({ network, nodes: [node.url], post: http().post });
    await expect(registry.registrationFee()).rejects.toThrow(`it answered with status ${status}`);
  });

  test('in a million pieces, or after interim answers without a final one, is refused', async () => {
    const serve = async (answer: Answer) =>
      `https://127.0.0.1:${parts.use(await DescriptorServer.start(certificate, answer)).port}`;
    const certificate = await testCertificate();
    const pieces = '1\r\nx\r\n'.repeat(1_000_000);
    const small = await serve(({ socket }) => {
      socket?.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${pieces}0\r\n\r\n`);
    });
    const { post } = http(certificate.authority);
    await expect(post(request(small, 4_194_304))).rejects.toThrow('very small pieces');
    const interim = await serve((response) => {
      response.socket?.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(1_000));
      response.end('{}');
    });
    await expect(post(request(interim))).rejects.toThrow('interim answers only');
    const other = await serve(({ socket }) => {
      socket?.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      );
    });
    await expect(post(request(other))).rejects.toThrow('another protocol');
  });

  test('over a kept connection, interim answers only are what the error tells', async () => {
    const certificate = await testCertificate();
    let asked = 0;
    const answer: Answer = (response) => {
      asked += 1;
      if (asked > 1) response.socket?.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(9));
      response.end('{}');
    };
    const { port } = parts.use(await DescriptorServer.start(certificate, answer));
    const { post } = http(certificate.authority);
    const url = `https://127.0.0.1:${port}`;
    expect(await post(request(url))).toMatchObject({ status: 200 });
    await expect(post(request(url))).rejects.toThrow('interim answers only');
    expect(asked).toBe(2);
  });

  test('as long as the limit of bytes is read, one byte less is refused', async () => {
    const { length } = (await http().post(request(node.url))).body;
    expect((await http().post(request(node.url, length))).body).toHaveLength(length);
    await expect(http().post(request(node.url, length - 1))).rejects.toThrow('over');
  });

  test('has four seconds to be answered', async () => {
    node.fate = () => 'hang';
    const answer = http().post(request(node.url));
    await vi.waitFor(() => expect(node.asked).toHaveLength(1), patience);
    clock.advance(3.999);
    const early = await Promise.race([answer.catch(() => 'ended'), Promise.resolve('waits')]);
    expect(early).toBe('waits');
    clock.advance(0.001);
    await expect(answer).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    node.fate = () => 'drip';
    const half = http().post(request(node.url));
    await vi.waitFor(() => expect(node.asked).toHaveLength(2), patience);
    clock.advance(4);
    await expect(half).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  });

  test('over TLS needs a certificate of the system, or of federation.ca', async () => {
    const certificate = await testCertificate();
    const answer: Answer = (response) => response.end('{}');
    const server = parts.use(await DescriptorServer.start(certificate, answer));
    const url = `https://127.0.0.1:${server.port}/`;
    await expect(http().post(request(url))).rejects.toMatchObject({
      code: expect.stringMatching(/CERT|UNABLE_TO_VERIFY/),
    });
    expect(await http(certificate.authority).post(request(url))).toMatchObject({ status: 200 });
    expect(() => http('not a certificate')).toThrow('no certificate in PEM');
  });
});

describe('strangers do not drive the reader', () => {
  const kept = () => {
    const limits = defaultLimits;
    const chain = new ChainRegistry({ network, nodes: [node.url], post: http().post });
    const log = pino({ level: 'silent' });
    return parts.use(new KeptRegistry(chain, { clock, limits, log, metrics: new Metrics() }));
  };
  const id = (number: number) => `0x${number.toString(16).padStart(40, '0')}`;

  test('a thousand handshakes of unknown relays in a second cause ten reads', async () => {
    const registry = kept();
    const asked = await Promise.allSettled(
      Array.from({ length: 1_000 }, (_, index) =>
        registry.current(id(index), `192.0.2.${index % 250}`),
      ),
    );
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    expect(node.asked.filter((method) => method === 'getRelay')).toHaveLength(10);
    clock.advance(1);
    await registry.current(id(5_000), '192.0.2.251');
    expect(node.asked.filter((method) => method === 'getRelay')).toHaveLength(11);
  });

  test('one relay that returns again and again causes one read in a minute', async () => {
    const registry = kept();
    for (let round = 0; round < 59; round += 1) {
      await registry.current(id(1), '192.0.2.1');
      clock.advance(1);
    }
    expect(node.asked).toEqual(['getversion', 'getRelay']);
  });

  test('while every node fails, the reads of strangers stay as few', async () => {
    node.fate = () => 'status';
    const registry = kept();
    await Promise.allSettled(
      Array.from({ length: 1_000 }, (_, index) =>
        registry.current(id(index), `192.0.2.${index % 250}`),
      ),
    );
    expect(node.asked.length).toBeLessThanOrEqual(10);
  });
});
