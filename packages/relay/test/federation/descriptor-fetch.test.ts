import { lookup } from 'node:dns';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { AddressFilter } from '../../src/federation/address-filter.ts';
import { DescriptorFetcher } from '../../src/federation/descriptor-fetch.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ManualClock } from '../support/clock.ts';
import {
  type Answer,
  DescriptorServer,
  type TestCertificate,
  testCertificate,
} from './remote-relay.ts';

let certificate: TestCertificate;
beforeAll(async () => {
  certificate = await testCertificate();
});

let clock: ManualClock;
let servers: AsyncDisposableStack;
beforeEach(() => {
  clock = new ManualClock();
  servers = new AsyncDisposableStack();
});
afterEach(() => servers.disposeAsync());

const never = new AbortController().signal;
const fetcher = (
  options: { filter?: AddressFilter; authority?: string | undefined } = {},
): DescriptorFetcher =>
  new DescriptorFetcher({
    clock,
    limits: defaultLimits,
    filter: new AddressFilter({ allowPrivate: true }),
    authority: certificate.authority,
    ...options,
  });

async function serve(answer: Answer, pair = certificate): Promise<DescriptorServer> {
  return servers.use(await DescriptorServer.start(pair, answer));
}

/** Answers with so many interim answers, and then the final one. */
const interim =
  (count: number): Answer =>
  (response) => {
    response.socket?.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(count));
    response.end('{}');
  };

/** Changes the protocol, although nothing asked for it. */
const otherProtocol: Answer = ({ socket }) => {
  socket?.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
};

/** Answers in chunks of one byte. */
const inPieces =
  (count: number): Answer =>
  ({ socket }) => {
    const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    socket?.write(`${head}${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`);
  };

/** The base address of a server, at `127.0.0.1` or another name of this machine. */
const at = ({ port }: { readonly port: number }, host = '127.0.0.1') => `https://${host}:${port}/x`;

describe('07 §A9: a descriptor is fetched over HTTPS', () => {
  test('from /relay/descriptor below the endpoint of the record', async () => {
    const server = await serve((response, { url, headers }) => {
      expect(headers['accept-encoding']).toBe('identity');
      response.end(`{"url":"${url}"}`);
    });
    expect(await fetcher().fetch(at(server), never)).toBe('{"url":"/x/relay/descriptor"}');
    expect(await fetcher().fetch(at(server, 'localhost'), never)).toContain('/x/relay');
  });

  test('up to 16 KiB', async () => {
    const server = await serve((response) => response.end('x'.repeat(16_384)));
    expect(await fetcher().fetch(at(server), never)).toHaveLength(16_384);
  });

  test('after a few interim answers, and in a few small pieces', async () => {
    expect(await fetcher().fetch(at(await serve(interim(8))), never)).toBe('{}');
    expect(await fetcher().fetch(at(await serve(inPieces(256))), never)).toHaveLength(256);
  });

  test.each<[string, Answer, RegExp]>([
    ['many interim answers', interim(9), /interim answers only/],
    ['many pieces of one byte', inPieces(300), /very small pieces/],
    ['another protocol', otherProtocol, /another protocol/],
    [
      'a redirect is not followed',
      (response) => response.writeHead(302, { location: '/other' }).end(),
      /status 302/,
    ],
    ['a status other than 200', (response) => response.writeHead(404).end('{}'), /status 404/],
    [
      'more than 16 KiB, announced',
      (response) => response.writeHead(200, { 'content-length': 16_385 }).end('x'.repeat(16_385)),
      /over 16384 bytes/,
    ],
    [
      'more than 16 KiB, in pieces without end',
      (response) => {
        const more = () => {
          if (!isClosed) response.write('x'.repeat(4_096), () => setImmediate(more));
        };
        let isClosed = false;
        response.on('close', () => {
          isClosed = true;
        });
        more();
      },
      /over 16384 bytes/,
    ],
    [
      'headers of more than 16 KiB',
      (response) => response.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end('{}'),
      /Header overflow/,
    ],
    [
      'a content coding',
      (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      /content coding/,
    ],
    ['bytes that are no UTF-8', (response) => response.end(Buffer.of(0xff)), /not valid/],
    [
      'an answer that is cut off',
      (response) => {
        response.writeHead(200, { 'content-length': 10 }).write('x', () => response.destroy());
      },
      /aborted|hang up|ECONNRESET/,
    ],
  ])('%s is refused', async (_name, answer, message) => {
    const server = await serve(answer);
    await expect(fetcher().fetch(at(server), never)).rejects.toThrow(message);
    expect(server.requests).toBe(1);
  });
});

describe('a relay that answers slowly', () => {
  test('has ten seconds to begin', async () => {
    const asked = Promise.withResolvers<void>();
    const server = await serve(() => asked.resolve());
    const fetching = fetcher().fetch(at(server), never);
    await asked.promise;
    clock.advance(9.9);
    clock.advance(0.1);
    await expect(fetching).rejects.toThrow('no complete answer in time');
  });

  test('has ten seconds to end', async () => {
    const begun = Promise.withResolvers<void>();
    const server = await serve((response) => response.write('{', () => begun.resolve()));
    const fetching = fetcher().fetch(at(server), never);
    await begun.promise;
    clock.advance(10);
    await expect(fetching).rejects.toThrow('no complete answer in time');
  });

  test('also in the TLS handshake', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    servers.defer(() => void silent.close());
    await once(silent, 'listening');
    const fetching = fetcher().fetch(at(silent.address() as AddressInfo), never);
    const [socket] = await once(silent, 'connection');
    servers.defer(() => socket.destroy());
    clock.advance(10);
    await expect(fetching).rejects.toThrow('no complete answer in time');
  });

  test('is left when the relay stops', async () => {
    const stopping = new AbortController();
    const asked = Promise.withResolvers<void>();
    const server = await serve(() => asked.resolve());
    const fetching = fetcher().fetch(at(server), stopping.signal);
    await asked.promise;
    stopping.abort(new Error('stopping'));
    await expect(fetching).rejects.toThrow('stopping');
  });
});

describe('TLS is verified', () => {
  test('an unknown authority is refused', async () => {
    const server = await serve((response) => response.end('{}'));
    const message = /unable to (?:verify|get)|self-signed/;
    await expect(fetcher({ authority: undefined }).fetch(at(server), never)).rejects.toThrow(
      message,
    );
    const other = await testCertificate();
    await expect(fetcher({ authority: other.authority }).fetch(at(server), never)).rejects.toThrow(
      message,
    );
    expect(server.requests).toBe(0);
  });

  test('a certificate of another host is refused', async () => {
    const elsewhere = await testCertificate(['elsewhere.example']);
    const server = await serve((response) => response.end('{}'), elsewhere);
    const asking = fetcher({ authority: elsewhere.authority }).fetch(at(server), never);
    await expect(asking).rejects.toThrow(/altnames/);
    expect(server.requests).toBe(0);
  });

  test('an authority that is no certificate is reported at the start', () => {
    expect(() => fetcher({ authority: 'no certificate' })).toThrow('no certificate in PEM');
  });
});

describe('without federation.allowPrivate', () => {
  const strict = new AddressFilter({ allowPrivate: false });

  test.each([
    '127.0.0.1',
    'localhost',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::1]',
    '10.0.0.1',
  ])('%s is not connected to', async (host) => {
    const server = await serve((response) => response.end('{}'));
    await expect(fetcher({ filter: strict }).fetch(at(server, host), never)).rejects.toMatchObject({
      name: 'AddressRefused',
      // Before a socket connects.
      message: expect.stringMatching(/does not connect to|no public address/),
    });
    expect(server.connections).toBe(0);
  });

  test('the connected address counts, whatever the lookup answered', async () => {
    const server = await serve((response) => response.end('{}'));
    const careless = { isAllowed: (address: string) => strict.isAllowed(address), lookup };
    const asking = fetcher({ filter: careless as unknown as AddressFilter });
    await expect(asking.fetch(at(server, 'localhost'), never)).rejects.toMatchObject({
      name: 'AddressRefused',
    });
    expect(server.requests).toBe(0);
  });
});
