/** js-libp2p as a second opinion, in both directions: its own Noise, Yamux and multistream-select. */
import { formatPeerId } from '@posthouse/protocol/federation';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hex } from '../support/bytes.ts';
import { anyPort, echoProtocol, forever, hostOf, identityOf } from '../support/hosts.ts';
import { echoFrame, type KeyKind, setDescriptor, startJsNode } from '../support/js-libp2p.ts';

const kinds: readonly KeyKind[] = ['Ed25519', 'secp256k1', 'RSA'];
const sizes = [0, 1, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 1_048_575, 1_048_576];

beforeEach(() => setDescriptor('{"relay":"js"}'));
afterEach(() => setDescriptor(undefined));

const ownId = formatPeerId(identityOf(1).peerId);

describe.each(kinds)('js-libp2p with a key of kind %s', (kind) => {
  test('07 §B3: it dials us: Peer ID, descriptor, identify and ping', async () => {
    await using host = hostOf(1);
    await using node = await startJsNode(kind);
    const { port } = await host.listen(anyPort);
    const identified = new Promise<{ protocols: string[]; agentVersion?: string }>((resolve) => {
      node.libp2p.addEventListener('peer:identify', ({ detail }) => resolve(detail));
    });
    await node.dial(port, ownId);
    const [connection] = host.connections;
    expect(connection?.peer).toBe('{"relay":"js"}');
    expect(hex(connection?.remote.peerId ?? new Uint8Array())).toBe(hex(node.peerId));
    const { protocols, agentVersion } = await identified;
    expect(protocols).toContain(echoProtocol);
    expect(agentVersion).toBe('test/1.0');
    const { ping } = node.libp2p.services as unknown as {
      ping: { ping(peer: unknown): Promise<number> };
    };
    const [toUs] = node.libp2p.getConnections();
    expect(await ping.ping(toUs?.remotePeer)).toBeGreaterThanOrEqual(0);
  });

  test('07 §B3: we dial it: Peer ID and descriptor', async () => {
    await using host = hostOf(1);
    await using node = await startJsNode(kind);
    const { peerId, port } = node;
    const connection = await host.dial({ host: '127.0.0.1', port, peerId, signal: forever });
    expect(connection.peer).toBe('{"relay":"js"}');
    await expect(connection.openStream('/unknown/1.0.0', { signal: forever })).rejects.toThrow(
      expect.objectContaining({ code: 'not_supported' }),
    );
  });
});

describe('frames and streams with js-libp2p', () => {
  test.each(sizes)('07 §B6: frames of %i bytes pass in both directions', async (size) => {
    await using host = hostOf(1);
    await using node = await startJsNode();
    await node.serveEcho(echoProtocol);
    const { port } = await host.listen(anyPort);
    const toUs = await node.dial(port, ownId);
    const message = Buffer.alloc(size, 'frames of any size ');
    const answer = await echoFrame(await toUs.newStream(echoProtocol), message);
    expect(Buffer.compare(answer, message)).toBe(0);

    const [connection] = host.connections;
    const stream = await connection?.openStream(echoProtocol, { signal: forever });
    const written = stream?.writeFrame(message).then(() => stream.end());
    const echoed = await stream?.readFrame();
    await written;
    expect(Buffer.compare(echoed ?? Buffer.from('none'), message)).toBe(0);
    expect(await stream?.readFrame()).toBeUndefined();
  });

  test('07 §C2: 300 calls, 16 at once, each on a stream of its own', async () => {
    await using host = hostOf(1);
    await using node = await startJsNode();
    await node.serveEcho(echoProtocol);
    const { peerId, port } = node;
    const connection = await host.dial({ host: '127.0.0.1', port, peerId, signal: forever });
    let calls = 0;
    const worker = async () => {
      while (calls < 300) {
        calls += 1;
        const message = Buffer.from(`call ${calls}`);
        const stream = await connection.openStream(echoProtocol, { signal: forever });
        await stream.writeFrame(message);
        stream.end();
        expect(Buffer.from((await stream.readFrame()) ?? []).toString()).toBe(message.toString());
        expect(await stream.readFrame()).toBeUndefined();
      }
    };
    await Promise.all(Array.from({ length: 16 }, worker));
    expect(connection.streams).toBe(0);
  });

  test('07 §C2: 10 requests of 1 MiB at once, more than may be held, are all answered', async () => {
    await using host = hostOf(1);
    await using node = await startJsNode();
    const { port } = await host.listen(anyPort);
    const toUs = await node.dial(port, ownId);
    const message = Buffer.alloc(1_048_576, 'a large request ');
    const [connection] = host.connections;
    let most = 0;
    const call = async () => {
      const answer = await echoFrame(await toUs.newStream(echoProtocol), message);
      most = Math.max(most, connection?.heldBytes ?? 0);
      expect(Buffer.compare(answer, message)).toBe(0);
    };
    await Promise.all(Array.from({ length: 10 }, call));
    expect(most).toBeLessThanOrEqual(8_388_608);
  });

  test('07 §B3: a peer without descriptor is refused on both sides', async () => {
    setDescriptor(undefined);
    const refused = Promise.withResolvers<unknown>();
    await using host = hostOf(1, { observer: { refused: (_, error) => refused.resolve(error) } });
    await using node = await startJsNode();
    const { port } = await host.listen(anyPort);
    const dialled = node.dial(port, ownId);
    await expect(refused.promise).resolves.toMatchObject({
      code: 'protocol',
      message: expect.stringContaining('relay_descriptor'),
    });
    await expect(dialled).rejects.toThrow();
    const { peerId } = node;
    await expect(
      host.dial({ host: '127.0.0.1', port: node.port, peerId, signal: forever }),
    ).rejects.toThrow('relay_descriptor');
    expect(host.connections.size).toBe(0);
  });

  test('07 §B4: a peer that is not admitted opens no stream, and sees the connection close', async () => {
    const served: string[] = [];
    await using host = hostOf(1, {
      admit: async () => {
        throw new Error('not a relay');
      },
      protocols: new Map([
        [echoProtocol, { streams: 1, serve: async (stream) => void served.push(stream.protocol) }],
      ]),
    });
    await using node = await startJsNode();
    const { port } = await host.listen(anyPort);
    const call = node.dial(port, ownId).then((connection) => connection.newStream(echoProtocol));
    await expect(call).rejects.toThrow();
    expect(served).toEqual([]);
    expect(host.connections.size).toBe(0);
  });
});
