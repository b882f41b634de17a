/** Content outside of messages: fetched over HTTPS only, and never used unchecked (04 §9, §10). */
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type ContentReference, sealContent, utf8 } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { downloadContent, sealAttachment } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { network, RelayWithClients } from '../support/relay-with-clients.ts';

const plaintext = utf8('the picture');
const served = new Map<string, (response: ServerResponse) => void>();
let server: Server;
let ca: string;
let base: string;

beforeAll(async () => {
  await using world = await RelayWithClients.start();
  const file = (name: string) => readFileSync(join(world.folder, 'relay', 'tls', name), 'utf8');
  ca = file('ca.pem');
  server = createServer(
    { key: file('server.key'), cert: file('server.pem') },
    (request, response) => served.get(request.url ?? '')?.(response),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
});

function offer(path: string, change: (body: Uint8Array) => Uint8Array = (it) => it) {
  const { body, reference } = sealContent(network, {
    plaintext,
    contentType: 'image/png',
    random: nodeRandom,
  });
  served.set(path, (response) => response.end(change(body)));
  return { uri: `${base}${path}`, ...reference };
}

async function download(reference: ContentReference, maxBytes?: number) {
  using transport = new NodeTransport({ ca });
  const signal = AbortSignal.timeout(30_000);
  return await downloadContent(network, reference, {
    transport,
    signal,
    ...(maxBytes !== undefined && { maxBytes }),
  });
}

test('encrypted content is downloaded, opened and checked', async () => {
  expect(Buffer.from(await download(offer('/good'))).toString()).toBe('the picture');
});

test('a redirect to HTTPS is followed', async () => {
  const reference = offer('/there');
  served.set('/here', (response) => response.writeHead(302, { location: '/there' }).end());
  const found = await download({ ...reference, uri: `${base}/here` });
  expect(Buffer.from(found).toString()).toBe('the picture');
});

test('a redirect to anything else is not', async () => {
  const reference = offer('/down');
  const location = reference.uri.replace('https:', 'http:');
  served.set('/down', (response) => response.writeHead(302, { location }).end());
  await expect(download(reference)).rejects.toMatchObject({ code: 'verification_failed' });
});

test.each(['data:text/plain,x', 'javascript:x', 'file:///etc/passwd', '//['])(
  '04 §9.1: a redirect to %s is not followed',
  async (location) => {
    const reference = offer('/other');
    served.set('/other', (response) => response.writeHead(302, { location }).end());
    await expect(download(reference)).rejects.toMatchObject({ code: 'verification_failed' });
  },
);

test.each([404, 410])('04 §9.1: content whose host answers %i is gone, by code', async (status) => {
  const reference = offer('/gone');
  served.set('/gone', (response) => response.writeHead(status).end());
  await expect(download(reference)).rejects.toMatchObject({ code: 'content_gone' });
});

test('redirects end somewhere', async () => {
  const reference = offer('/round');
  served.set('/round', (response) => response.writeHead(302, { location: '/round' }).end());
  await expect(download(reference)).rejects.toMatchObject({ code: 'relay_unreachable' });
});

test.each<[string, (body: Uint8Array) => Uint8Array]>([
  ['altered', (body) => body.map((byte, index) => (index === 0 ? byte ^ 1 : byte))],
  ['shortened', (body) => body.subarray(1)],
])('%s content is not given out', async (name, change) => {
  const failing = download(offer(`/${name}`, change));
  await expect(failing).rejects.toMatchObject({ code: 'verification_failed' });
});

test('more than promised is refused while it arrives', async () => {
  const failing = download(offer('/long', (body) => new Uint8Array([...body, 0])));
  await expect(failing).rejects.toMatchObject({ code: 'verification_failed' });
});

test('content over the limit is not asked for', async () => {
  let asked = 0;
  const reference = offer('/huge');
  served.set('/huge', () => {
    asked += 1;
  });
  await expect(download(reference, plaintext.length - 1)).rejects.toMatchObject({
    code: 'invalid_input',
  });
  expect(asked).toBe(0);
});

test('an address that is not HTTPS is no reference', async () => {
  const reference = { ...offer('/plain'), uri: 'http://127.0.0.1/plain' };
  await expect(download(reference)).rejects.toMatchObject({ code: 'invalid_input' });
});

test('a host that stops answering is waited for until the deadline', async () => {
  const reference = offer('/never');
  served.set('/never', (response) => void response.write('a'));
  using transport = new NodeTransport({ ca });
  const { signal } = new AbortController();
  const failing = downloadContent(network, reference, { transport, signal, timeout: 50 });
  await expect(failing).rejects.toMatchObject({ code: 'relay_unreachable' });
  const upload = sealAttachment(network, plaintext, {
    ...{ contentType: 'image/png', signal, timeout: 50 },
    uploader: { put: () => new Promise(() => {}) },
  });
  await expect(upload).rejects.toMatchObject({ code: 'relay_unreachable' });
});
