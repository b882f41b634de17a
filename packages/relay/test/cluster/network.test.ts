/**
 * Relay A as two processes, past balancers, and relay B as one: people of both write to each other
 * while processes of A are killed and started again. What is right is decided by `checker.ts`.
 */
import { join } from 'node:path';
import { loadTarget, TestContext } from '@posthouse/conformance';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { Relay } from '../../src/index.ts';
import { chanceOf, seed } from '../support/chance.ts';
import { temporaryFolder } from '../support/folder.ts';
import { withoutNats } from '../support/nats.ts';
import { check } from './checker.ts';
import { Cluster } from './cluster.ts';
import { Debts, Load } from './load.ts';
import { Log } from './log.ts';
import { Member } from './member.ts';
import { type Person, settlePerson } from './people.ts';

/** A process that was killed holds its deliveries for so long. */
const limits = { deliveryLease: 4, relayCallTimeout: 3_000 };

describe.skipIf(withoutNats !== undefined)(
  `a relay of two processes in a network (${withoutNats ?? 'real'})`,
  () => {
    const parts = new AsyncDisposableStack();
    const log = new Log();
    const debts = new Debts(log);
    const chance = chanceOf(seed);
    let cluster: Cluster;
    let b: Relay;
    let load: Load;

    beforeAll(async () => {
      cluster = parts.use(await Cluster.start({ processes: 2, limits }));
      const { folder } = cluster;
      const registry = join(folder, 'registry.json');
      const authority = join(folder, 'tls');
      const config = {
        ...{ dev: true, data: parts.use(temporaryFolder()).path, listen: '127.0.0.1:0', registry },
        ...{ tls: { authority }, limits },
      };
      b = parts.use(await Relay.start(config, { log: pino({ level: 'silent' }) }));
      const relay = b.https[0] as string;
      const target = await loadTarget({ relay, registry, ca: join(authority, 'ca.pem') });
      const people: Person[] = [];
      const members: Member[] = [];
      for (const [at, names] of [
        [cluster.target, ['ann', 'ada']],
        [target, ['bob', 'ben']],
      ] as const) {
        const stage = parts.use(await TestContext.open(at, 'wss'));
        for (const name of names) {
          const person = await settlePerson(stage, name, ['wss']);
          people.push(person);
          for (const phone of person.phones) {
            members.push(parts.use(new Member(phone, { stage, log, chance })));
          }
        }
      }
      load = parts.use(new Load(members, people, { chance, refused: false }));
    }, 60_000);
    afterAll(() => parts.disposeAsync(), 60_000);
    afterEach(({ task }) => {
      if (task.result?.state === 'fail') console.log(cluster.warnings.slice(-30).join('\n'));
    });

    const isConnected = () => b.context.metrics.value('peers', { state: 'connected' }) === 1;

    /** Every message is read by every device that it is for, once. */
    async function settled(): Promise<void> {
      await debts.settled(load);
      // Messages of another relay stand in the order of their arrival here.
      const problems = check(log.entries).filter(({ rule }) => rule !== 'swapped');
      expect(problems.slice(0, 20)).toEqual([]);
    }

    test('07 §C8: messages of both relays arrive once', async () => {
      await vi.waitFor(() => expect(isConnected()).toBe(true), 20_000);
      await debts.progress(40);
      await settled();
    });

    test.each([0, 1])('07 §C8: also if process %i is killed and started again', async (index) => {
      const before = b.context.metrics.value('relays_failed');
      load.resume();
      await debts.progress(20);
      await cluster.kill(index);
      await debts.progress(20);
      await cluster.revive(index);
      await debts.progress(20);
      await settled();
      // On a busy machine, a kill may come before B is connected with the other process too.
      const failures = b.context.metrics.value('relays_failed') - before;
      expect(failures).toBeLessThanOrEqual(1);
      expect(isConnected()).toBe(true);
    });
  },
);
