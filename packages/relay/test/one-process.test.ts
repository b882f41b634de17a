import { expect, test } from 'vitest';
import { ServedRelay } from './support/served-relay.ts';

test('a relay with one process never resyncs: it gets no notices of other processes', async () => {
  await using door = await ServedRelay.start();
  const ann = await door.register('ann');
  const socket = await door.socket();
  await door.bindDevice(socket, ann.device());
  const { bus, metrics } = door.server.context;
  bus.publish([{ kind: 'gap' }]);
  for (let hour = 0; hour < 24; hour += 1) {
    door.clock.advance(3_600);
    await socket.notificationsSoFar();
  }
  expect(metrics.value('resyncs')).toBe(0);
  expect(bus).toMatchObject({ isShared: false, isConnected: true });
});
