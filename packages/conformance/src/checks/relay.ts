import { checkRelayInfo } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';

const info = checksOf('relay.info');

info.check(
  'shape',
  { source: '02 §11.2', title: 'answers identity, name, time and limits without a session' },
  async (context) => {
    const result = await context.expectOk(await context.anonymous(), 'relay.info');
    checkRelayInfo(result, context.descriptor);
  },
);

info.check(
  'clock',
  { source: '02 §11.2', title: 'server_time is the current Unix second' },
  async (context) => {
    const before = unixSeconds();
    const result = (await context.expectOk(await context.anonymous(), 'relay.info')) as JsonObject;
    const distance = Math.abs(Number(result.server_time) - before);
    assertConforms(
      distance <= 300,
      `server_time at most 300 seconds from this machine's clock, not ${distance}`,
    );
  },
);

info.check(
  'unknown-parameters',
  { source: '02 §2.5', title: 'ignores parameters it does not define' },
  async (context) => {
    const caller = await context.anonymous();
    await context.expectOk(caller, 'relay.info', caller.transport === 'wss' ? { future: 1 } : {});
  },
);

const descriptor = checksOf('relay.descriptor');

descriptor.check(
  'verifies',
  { source: '01 §13.3', title: 'serves a descriptor that verifies against the registry' },
  async (context) => {
    // Opening the context verified the descriptor over HTTPS; WSS must serve the same object.
    const first = await context.expectOk(await context.anonymous('https'), 'relay.descriptor');
    const second = await context.expectOk(await context.anonymous(), 'relay.descriptor');
    assertEqual(
      JSON.stringify(first),
      JSON.stringify(second),
      'the same descriptor on both transports',
    );
  },
);

export const relayChecks = [...info.list, ...descriptor.list];
