import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import type { RelayAnswer } from '../../../src/context.ts';
import { Person } from '../../fixtures/person.ts';
import type { InProcessRelay } from '../../support/in-process-relay.ts';
import { wiredRelays } from '../../support/wired-relays.ts';

const wired = wiredRelays(2);
const [home, host] = wired.relays as [InProcessRelay, InProcessRelay];
const ann = home.person('ann', ['phone', 'laptop']);

const ask = (changes: JsonObject = {}): Promise<RelayAnswer> =>
  host.context.relayClient.call(home.relayId, 'device.status', {
    account: ann.account,
    device_id: ann.device('phone').deviceId,
    ...changes,
  });

describe('07 §C5: the home relay answers device.status', () => {
  test('a current device is active until its certificate ends', async () => {
    const tom = new Person(home, 'tom');
    const expires_at = home.clock.now() + 100;
    const { deviceId: device_id } = await tom.addDevice('phone', { expiresAt: expires_at });
    await tom.moveIn();
    const tomsPhone = { account: tom.account, device_id };
    const active = { kind: 'result', value: { status: 'active', expires_at } };
    expect(await ask(tomsPhone)).toEqual(active);
    home.clock.advance(99);
    expect(await ask(tomsPhone)).toEqual(active);
    home.clock.advance(1);
    expect(await ask(tomsPhone)).toEqual({ kind: 'result', value: { status: 'inactive' } });
  });

  test('an unknown device is inactive without a reason', async () => {
    expect(await ask({ device_id: `dev_${'A'.repeat(22)}` })).toEqual({
      kind: 'result',
      value: { status: 'inactive' },
    });
  });

  test('an account of which no route is known is not at home here', async () => {
    const eve = host.person('eve');
    expect(await ask({ account: eve.account })).toMatchObject({ code: 'target_not_local' });
  });

  test('an account at home elsewhere has a stale route here', async () => {
    const bob = await host.register('bob');
    expect(await ask({ account: bob.account })).toMatchObject({ code: 'route_stale' });
  });

  test('a malformed account or device is refused', async () => {
    expect(await ask({ account: 'bob' })).toMatchObject({ code: 'bad_request' });
    expect(await ask({ device_id: 'phone' })).toMatchObject({ code: 'bad_request' });
  });
});
