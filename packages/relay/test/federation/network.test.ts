import { expect, test } from 'vitest';
import { ServedNetwork } from '../support/served-network.ts';

test('07 §C5: a relay asks another one over real sockets', async () => {
  await using network = await ServedNetwork.start(2);
  const [a, b] = network.pair;
  const ann = await a.register('ann');
  const { context } = b.server;
  const device_id = ann.device().deviceId;
  const answer = await context.relayClient.call(a.relayId, 'device.status', {
    account: ann.account,
    device_id,
  });
  expect(answer).toEqual({
    kind: 'result',
    value: { status: 'active', expires_at: ann.device().certificate.expires_at },
  });
  const routes = await context.routeDirectory.resolveRemote(ann.account);
  expect(routes.map((route) => route.relay_id)).toEqual([a.relayId]);
});
