import { checkRelayInfo, type JsonObject } from '@posthouse/protocol';
import { demand } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';

const info = checksOf('relay.info');

info.check(
  'shape',
  { source: '02 §11.2', title: 'answers identity, name, time and limits without a session' },
  async (stage) => {
    const result = await stage.succeed(await stage.visitor(), 'relay.info');
    checkRelayInfo(result, stage.descriptor);
  },
);

info.check(
  'clock',
  { source: '02 §11.2', title: 'server_time is the current Unix second' },
  async (stage) => {
    const before = unixSeconds();
    const result = (await stage.succeed(await stage.visitor(), 'relay.info')) as JsonObject;
    const distance = Math.abs(Number(result.server_time) - before);
    demand(
      distance <= 300,
      `server_time at most 300 seconds from this machine's clock, not ${distance}`,
    );
  },
);

info.check(
  'unknown-parameters',
  { source: '02 §2.5', title: 'ignores parameters it does not define' },
  async (stage) => {
    const caller = await stage.visitor();
    await stage.succeed(caller, 'relay.info', caller.transport === 'wss' ? { future: 1 } : {});
  },
);

const descriptor = checksOf('relay.descriptor');

descriptor.check(
  'verifies',
  { source: '01 §13.3', title: 'serves a descriptor that verifies against the registry' },
  async (stage) => {
    // Opening the stage verified the one over HTTPS; over WSS it must be the same object.
    const first = await stage.succeed(await stage.visitor('https'), 'relay.descriptor');
    const second = await stage.succeed(await stage.visitor(), 'relay.descriptor');
    demand(
      JSON.stringify(first) === JSON.stringify(second),
      'both transports serve one descriptor',
    );
  },
);

export const relayChecks = [...info.list, ...descriptor.list];
