/** Relays whose clocks are ten minutes apart: what is `clock_skew`, and what is not. */
import { expect, test } from 'vitest';
import { fateOf, relayNetwork, send } from './relay-network.ts';

// A relay stores no route that its clock finds to be of the future.
const network = relayNetwork(() => ({ limits: { dhtReplicas: 0 } }));
const tenMinutes = 600;

test('07 §C8: clocks ten minutes apart', async () => {
  const { a, b, c } = network;
  const ann = await network.register('ann', a);
  const ben = await network.register('ben', b);
  // Their routes are old enough for a clock that is late.
  network.advance(tenMinutes);
  c.clock.advance(-tenMinutes);
  const cem = await network.register('cem', c);

  // A message from the future of its target ends with clock_skew, at once.
  const ahead = ann.message(cem, { authorization: cem.grant(ann) });
  await send(a, { from: ann, message: ahead });
  expect(await network.fateAfterRetries(a, { from: ann, message: ahead })).toBe('clock_skew');
  // Within the tolerance of 300 s it is delivered.
  const createdAt = c.clock.now() + 300;
  const within = ann.message(cem, { authorization: cem.grant(ann), createdAt });
  await send(a, { from: ann, message: within });
  expect(await fateOf(a, { from: ann, message: within })).toBe('ok');
  // A message from the past is delivered.
  const late = cem.message(ann, { authorization: ann.grant(cem) });
  await send(c, { from: cem, message: late });
  expect(await fateOf(c, { from: cem, message: late })).toBe('ok');

  // Relays go on to connect with each other, and to find accounts whose routes are old enough.
  for (const cable of Object.values(network.cables)) cable.drop();
  await network.heal();
  expect(await relayOf(c, ben.account)).toBe(b.relayId);
  // A route that is younger than the difference of the clocks is not valid there yet.
  const dan = await network.register('dan', b);
  expect(await relayOf(c, dan.account)).toBe('not_found');
  network.advance(tenMinutes);
  expect(await relayOf(c, dan.account)).toBe(b.relayId);
});

/** The relay that a relay names as an account's home, or the code of its refusal. */
async function relayOf(relay: typeof network.a, account: string): Promise<string> {
  const { text } = await relay.http().call('account.route.resolve', { account });
  const { relay_id, code } = JSON.parse(text) as { relay_id?: string; code?: string };
  return relay_id ?? code ?? '';
}
