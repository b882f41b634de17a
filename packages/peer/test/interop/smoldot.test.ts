/** smoldot as a further opinion: an implementation in Rust, which dials only and has no descriptor. */
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { defaultPeerLimits, type PeerProtocol } from '../../src/index.ts';
import { pingProtocol, servePing } from '../../src/ping.ts';
import { TokenBucket } from '../../src/token-bucket.ts';
import { anyPort, echoProtocol, hostOf } from '../support/hosts.ts';
import { acceptWithoutDescriptor, startSmoldot } from '../support/smoldot.ts';

test('07 §B2: it agrees on Noise and Yamux, is answered na and pings, and stays', async () => {
  let pings = 0;
  const { pingRate: rate, pingBurst: burst } = defaultPeerLimits;
  const bucket = new TokenBucket({ rate, burst, clock: systemClock });
  const ping: PeerProtocol<undefined> = {
    streams: 2,
    serve: (stream) => {
      const write = stream.write.bind(stream);
      vi.spyOn(stream, 'write').mockImplementation(async (bytes) => {
        await write(bytes);
        pings += 1;
      });
      return servePing(stream, bucket);
    },
  };
  using listener = await acceptWithoutDescriptor(1, new Map([[pingProtocol, ping]]));
  await using smoldot = await startSmoldot(1, listener.port);
  await smoldot.logged('connection-started');
  const connection = await listener.connected;
  await smoldot.logged('gossip-open-error', 'ProtocolNotAvailable');
  await smoldot.logged('pong');
  await smoldot.until(() => pings === 4);
  expect(connection.isOpen).toBe(true);
});

test('07 §B3: through a host it is refused, since it sends no descriptor', async () => {
  const refused: unknown[] = [];
  const admit = vi.fn(async () => 'admitted');
  const serve = vi.fn(async () => {});
  await using host = hostOf(1, {
    admit,
    observer: { refused: (_, error) => void refused.push(error) },
    protocols: new Map([[echoProtocol, { streams: 1, serve }]]),
  });
  const { port } = await host.listen(anyPort);
  await using smoldot = await startSmoldot(1, port);
  await smoldot.logged('connection-shutdown', 'handshake_finished=false');
  expect(refused[0]).toMatchObject({
    code: 'protocol',
    message: expect.stringContaining('relay_descriptor'),
  });
  expect(admit).not.toHaveBeenCalled();
  expect(serve).not.toHaveBeenCalled();
  expect(host.connections.size).toBe(0);
});
