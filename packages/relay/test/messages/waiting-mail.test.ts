import { beforeEach, expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
let ben: Person;

beforeEach(async () => {
  ben = new Person(relay, 'ben');
  await ben.addDevice('phone');
});

const send = () =>
  relay.call('message.send', ann.message(ben, { authorization: ben.grant(ann) }), {
    session: ann.session(),
  });

/** Runs the job; returns the number of waiting messages and the age of the oldest. */
async function counted(): Promise<number[]> {
  const { metrics } = relay.context;
  expect(await relay.runJob('messages.waiting-mail')).toBe(relay.clock.now() + 60);
  return [metrics.value('deliveries_waiting'), metrics.value('delivery_age_seconds')];
}

test('04 §16: the metrics have the number of waiting messages and the age of the oldest', async () => {
  expect(await counted()).toEqual([0, 0]);
  for (let sent = 0; sent < 3; sent += 1) {
    await send();
    relay.clock.advance(10);
  }
  expect(await counted()).toEqual([3, 30]);
  const exposition = relay.context.metrics.exposition();
  expect(exposition).toContain('posthouse_deliveries_waiting 3\n');
  expect(exposition).toContain('posthouse_delivery_age_seconds 30\n');
  await ben.moveIn();
  relay.clock.advance(60);
  await relay.runJob('messages.delivery');
  expect(await counted()).toEqual([0, 0]);
});

test('04 §16: waiting messages are counted up to a limit', async () => {
  await relay.restart({ countedDeliveries: 2 });
  for (let sent = 0; sent < 3; sent += 1) await send();
  expect((await counted())[0]).toBe(2);
});
