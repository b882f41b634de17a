import { setTimeout } from 'node:timers/promises';
import { grantedMessage, type TestAccount } from '@posthouse/conformance';
import { type Attack, openKit, openSession } from './attack.ts';
import { withoutBus } from './relays.ts';

const accounts = 12;
/** Milliseconds between two messages of one account. */
const interval = 200;

export const natsCut: Attack = {
  title: 'NATS ends, while 12 accounts at 3 processes send each other 60 messages a second',
  hasPreparation: true,
  relay: withoutBus,
  async run(target, signal, begun) {
    await using context = await openKit(target);
    const sessions: Pick<TestAccount, 'caller' | 'device'>[] = [];
    while (sessions.length < accounts && !signal.aborted) sessions.push(await openSession(context));
    begun();
    const send = async (index: number) => {
      const { caller, device } = sessions[index] as (typeof sessions)[number];
      const to = sessions[(index + 1) % sessions.length] as (typeof sessions)[number];
      while (!signal.aborted) {
        await caller.call('message.send', grantedMessage(device, [to.device]));
        await setTimeout(interval);
      }
    };
    // A process that cannot check its sessions may end their connections.
    await Promise.all(sessions.map((_, index) => send(index).catch(() => {})));
  },
};
