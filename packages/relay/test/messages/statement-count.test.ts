/**
 * What calls that every message passes cost storage. Counts, because times say nothing on a busy
 * machine: a change that makes one larger shows here. BEGIN, COMMIT and savepoints are not counted.
 */
import { describe, expect, test } from 'vitest';
import { engine } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');

const messages = 20;

/** Counts the statements of some work. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  let statements = 0;
  relay.faults.beforeStatement = () => {
    statements += 1;
  };
  try {
    await work();
  } finally {
    delete relay.faults.beforeStatement;
  }
  return statements;
}

function send(senders: readonly string[]): Promise<unknown> {
  const message = ann.message(ben, { authorization: ben.grant(ann), senders });
  return relay.call('message.send', message, { session: ann.session() });
}

/** On PostgreSQL, a batch of any number of messages has as many as a message that comes alone. */
const ofMessage = engine === 'postgres' ? { without: 6, with: 6 } : { without: 5, with: 8 };
const ofPage = 5;

describe('statements of calls between accounts of one relay', () => {
  test.each([
    ['without boxes of the sender', [], ofMessage.without],
    ['with a box of the sending device', ['phone'], ofMessage.with],
  ])('04 §12: a message %s', async (_, senders, each) => {
    // From here on the grant is verified and the certificate stored.
    await send(senders);
    const counted = await statementsOf(async () => {
      for (let sent = 0; sent < messages; sent += 1) await send(senders);
    });
    expect(counted).toBe(each * messages);
    expect(await relay.rows('sent_results')).toHaveLength(messages + 1);
  });

  test('04 §18: a page of a timeline costs the same for 2 records and for 21', async () => {
    const page = (limit: number) => () =>
      relay.call('message.timeline.sync', { limit }, { session: ben.session() });
    for (let sent = 0; sent <= messages; sent += 1) await send([]);
    const small = await statementsOf(page(2));
    const large = await statementsOf(page(50));
    expect({ small, large }).toEqual({ small: ofPage, large: ofPage });
  });

  test('04 §17.4: as many statements remove 16 records of an account as 2', async () => {
    const removal = async (count: number) => {
      for (let sent = 0; sent < count; sent += 1) await send([]);
      relay.clock.advance(relay.context.limits.messageRetention);
      const statements = await statementsOf(() => relay.runJob('messages.retention'));
      expect(await relay.rows('timeline_records')).toEqual([]);
      expect(await relay.rows('timeline_boxes')).toEqual([]);
      return statements;
    };
    expect(await removal(2)).toBe(await removal(16));
  });
});
