/** What `courier` says of a message that a relay refuses for now. */
import { expect, test } from 'vitest';
import { contactsOfCourier } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients({ limits: { accountDailyBytes: 100_000 } });

test('a refused message that is kept is said to be stored, to people and to programs', async () => {
  const [ann] = await contactsOfCourier(world);
  const send = (text: string, ...flags: string[]) => ann.run(['send', 'bob', text, ...flags]);
  expect(await send('x'.repeat(90_000))).toMatchObject({ exit: 0 });
  const refused = await send('once');
  expect(refused.exit).not.toBe(0);
  expect(refused.error).toMatch(/stored; the next command that reaches the relay sends it\.\n$/);
  const { error } = await send('once more', '--json');
  expect(JSON.parse(error)).toMatchObject({ error: { code: 'relay_refused', kept: true } });
  const unknown = await ann.run(['send', 'carol', 'never', '--json']);
  expect(JSON.parse(unknown.error).error).not.toHaveProperty('kept');
});
