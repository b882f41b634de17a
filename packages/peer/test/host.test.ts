import { describe, expect, test } from 'vitest';
import { hex } from './support/bytes.ts';
import { echoProtocol, forever, identityOf } from './support/hosts.ts';
import { HostPair } from './support/pair.ts';

const sizes = [0, 1, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145, 1_048_575, 1_048_576];

describe('two hosts', () => {
  test('07 §B3: both sides learn Peer ID and descriptor', async () => {
    await using pair = await HostPair.start();
    const { connection, other } = pair;
    expect(connection.peer).toBe('{"relay":1}');
    expect(connection.remote).toEqual({
      peerId: identityOf(1).peerId,
      descriptor: '{"relay":1}',
      address: '127.0.0.1',
      direction: 'outbound',
    });
    expect(other.peer).toBe('{"relay":2}');
    expect(hex(other.remote.peerId)).toBe(hex(identityOf(2).peerId));
  });

  test.each(sizes)('07 §B6: a frame of %i bytes is echoed in both directions', async (size) => {
    await using pair = await HostPair.start();
    const message = Buffer.alloc(size, 'frames of any size ');
    for (const connection of [pair.connection, pair.other]) {
      const stream = await connection.openStream(echoProtocol, { signal: forever });
      const written = stream.writeFrame(message).then(() => stream.end());
      const answer = await stream.readFrame();
      await written;
      expect(Buffer.compare(answer ?? Buffer.from('none'), message)).toBe(0);
      expect(await stream.readFrame()).toBeUndefined();
    }
  });
});
