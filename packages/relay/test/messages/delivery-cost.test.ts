import { expect, test } from 'vitest';
import { engine } from '../support/engine.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const wired = wiredRelays(2);
const [source, target] = wired.relays as [InProcessRelay, InProcessRelay];
const ann = source.person('ann');
const ben = target.person('ben');

/** SQLite receives by one append, by what is remembered of the recipient. */
const ofReceived = (messages: number) =>
  engine === 'sqlite'
    ? { statements: 7 * messages, writes: 0 }
    : { statements: 12 * messages, writes: messages };

async function send(): Promise<void> {
  const message = ann.message(ben, { authorization: ben.grant(ann), senders: ['phone'] });
  await source.call('message.send', message, { session: ann.session() });
}

/** Counts a relay's statements and write transactions from now on. */
function counting({ context: { storage }, faults }: InProcessRelay) {
  const counted = { statements: 0, writes: 0 };
  faults.beforeStatement = () => {
    counted.statements += 1;
  };
  const write = storage.write.bind(storage);
  storage.write = (...args) => {
    counted.writes += 1;
    return write(...args);
  };
  return counted;
}

test('statements and transactions of a delivered message stay few at both relays', async () => {
  const messages = 20;
  // From here on the source knows the recipient's home, and remembers it.
  await send();
  await source.runJob('messages.delivery');
  await send();
  await source.runJob('messages.delivery');
  const atSource = counting(source);
  for (let sent = 0; sent < messages; sent += 1) await send();
  const accepted = { ...atSource };
  const atTarget = counting(target);
  await source.runJob('messages.delivery');
  const run = atSource.statements - accepted.statements;
  const writes = atSource.writes - accepted.writes;
  const received = { ...atTarget };
  expect(accepted).toEqual({ statements: 17 * messages, writes: messages });
  // To claim: an update. To end: a deletion and an update. A few reads of the lanes.
  expect(run).toBeGreaterThanOrEqual(3 * messages);
  expect(run).toBeLessThanOrEqual(4 * messages);
  expect(writes).toBeLessThanOrEqual(messages / 4);
  expect(received).toEqual(ofReceived(messages));
  expect(await source.rows('deliveries')).toEqual([]);
  expect(await target.rows('timeline_records')).toHaveLength(messages + 2);
});
