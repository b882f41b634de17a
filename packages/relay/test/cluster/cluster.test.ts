/**
 * Three relay processes on one PostgreSQL and one NATS with a balancer, under steady load, while
 * one part after another fails. What is right is decided by `checker.ts` from what clients saw.
 */
import { TestContext } from '@posthouse/conformance';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { chanceOf, seed } from '../support/chance.ts';
import { withoutNats } from '../support/nats.ts';
import { check } from './checker.ts';
import { Cluster } from './cluster.ts';
import { describeFigures, figuresOf } from './figures.ts';
import { Debts, Load } from './load.ts';
import { Log, type LogEntry } from './log.ts';
import { type Ground, Line, Member } from './member.ts';
import { type Person, type Phone, settlePerson, writeLetter } from './people.ts';

const processes = 3;

const title =
  withoutNats === undefined
    ? 'a cluster of three processes'
    : `a cluster of three processes (skipped: ${withoutNats})`;

describe.skipIf(withoutNats !== undefined)(title, () => {
  const parts = new AsyncDisposableStack();
  const log = new Log();
  const debts = new Debts(log);
  /** Choices of the load; the order in which parts answer is not ours to repeat. */
  const chance = chanceOf(seed);
  let cluster: Cluster;
  let ground: Ground;
  let load: Load;
  let members: readonly Member[];
  const people: Record<string, Person> = {};

  beforeAll(async () => {
    console.log(`seed ${seed}`);
    cluster = parts.use(await Cluster.start({ processes }));
    const stage = parts.use(await TestContext.open(cluster.target, 'wss'));
    ground = { stage, log, chance };
    const transports = {
      ann: ['wss', 'wss'],
      bob: ['wss', 'https'],
      cat: ['wss'],
      dan: ['https'],
      eve: ['wss', 'wss'],
      // Their second devices are removed on the way, and belong to no steady client.
      vic: ['wss', undefined],
      wim: ['wss', undefined],
      xan: ['wss', undefined],
      yve: ['wss', undefined],
    } as const;
    for (const [name, kinds] of Object.entries(transports)) {
      people[name] = await settlePerson(stage, name, kinds);
    }
    members = Object.values(people)
      .flatMap(({ phones }) => phones)
      .filter(({ transport }) => transport !== undefined)
      .map((phone) => parts.use(new Member(phone, ground)));
    load = parts.use(new Load(members, Object.values(people), { chance }));
  }, 60_000);

  afterAll(async () => {
    await parts.disposeAsync();
    const lines = describeFigures(figuresOf(log.entries, check(log.entries)));
    console.log([`seed ${seed}`, ...lines].join('\n'));
  }, 60_000);

  // Otherwise every later test would report the same failure again.
  let hasFailed = false;
  beforeEach((context) => {
    if (hasFailed) context.skip('a test before failed');
  });
  afterEach(({ task }) => {
    if (task.result?.state !== 'fail') return;
    hasFailed = true;
    console.log(['the relays said:', ...cluster.warnings.slice(-30)].join('\n'));
  });

  /** What the checker says of everything so far, the first of it. */
  function findings(): string[] {
    const problems = check(log.entries).map(({ rule, text }) => `${rule}: ${text}`);
    return problems.slice(0, 20);
  }

  /** A fault under load: what it does, and what undoes it. */
  async function suffer(name: string, fault: () => Promise<void>, cure: () => Promise<void>) {
    load.resume();
    await debts.progress(20 + Math.floor(chance() * 40));
    log.add({ kind: 'fault', name });
    await fault();
    await cure();
    await debts.progress(30);
    await debts.settled(load);
    log.add({ kind: 'recovered', name });
    expect(findings()).toEqual([]);
  }

  test('clients of different processes see each other’s messages and hints', async () => {
    await debts.progress(60);
    await debts.settled(load);
    expect(findings()).toEqual([]);
  });

  test.each([0, 1, 2])('process %i is killed and started again', async (index) => {
    const killed = () => cluster.kill(index);
    await suffer(`SIGKILL of process ${index}`, killed, async () => {
      await debts.progress(30);
      await cluster.revive(index);
    });
  });

  test('NATS is away: messages are accepted, and their hints come when it is back', async () => {
    const stopped = () => cluster.nats.stop();
    await suffer('NATS stopped', stopped, async () => {
      await debts.progress(60);
      // Nothing that is sent later tells of what was sent meanwhile.
      await load.pause();
      await cluster.nats.start();
      await debts.settled(load);
      load.resume();
    });
  });

  test('connections are cut again and again, in the middle of calls', async () => {
    const cut = async () => {
      for (let time = 0; time < 10; time += 1) {
        cluster.balancer.cut();
        await debts.progress(5 + Math.floor(chance() * 15));
      }
    };
    await suffer('connections cut', cut, async () => {});
  });

  test('PostgreSQL is restarted', async () => {
    const restarted = () => cluster.postgres.restart();
    await suffer('PostgreSQL restarted', restarted, async () => {});
  });

  test.each([1, 2])('PostgreSQL crashes and recovers (%i)', async (time) => {
    const crashed = () => cluster.postgres.crash();
    await suffer(`PostgreSQL crashed (${time})`, crashed, () => cluster.postgres.start());
  });

  test('PostgreSQL stays away until clients are told so', async () => {
    const told = () => log.entries.filter(isUnavailable).length;
    const before = told();
    const crashed = () => cluster.postgres.crash();
    await suffer('PostgreSQL away', crashed, async () => {
      await log.until(
        () => 'a client to get temporarily_unavailable',
        () => told() > before,
      );
      await cluster.postgres.start();
      // The load goes on at the first process that reaches it again.
      await servedEverywhere();
    });
  });

  /** Waits until each process, asked itself, opens a session. */
  async function servedEverywhere(): Promise<void> {
    const phone = people.ann?.phones[0] as Phone;
    for (const port of cluster.ports) {
      using line = Line.https(phone, ground, { port });
      await vi.waitFor(async () => expect(await line.enter()).toBe('ok'), 20_000);
    }
  }

  test('a nonce that is used at all processes at once succeeds at one of them', async () => {
    for (let round = 0; round < 5; round += 1) {
      using lines = new DisposableStack();
      const phone = people.ann?.phones[0] as Phone;
      const everywhere = cluster.ports.map((port) =>
        lines.use(Line.https(phone, ground, { port })),
      ) as [Line, ...Line[]];
      const account = phone.owner.account.id;
      const { result } = await everywhere[0].link.call('auth.challenge', { account });
      const { nonce } = result as { nonce: string };
      const proof = ground.stage.deviceProof(phone.device, nonce);
      const outcomes = await Promise.all(everywhere.map((line) => line.verify(proof)));
      expect(outcomes.sort()).toEqual(['ok', 'unauthorized', 'unauthorized']);
    }
    expect(findings()).toEqual([]);
  });

  test('a message that is sent at all processes at once is one message', async () => {
    using lines = new DisposableStack();
    const phone = people.cat?.phones[0] as Phone;
    const everywhere = await connectEverywhere(phone, lines);
    load.resume();
    for (let round = 0; round < 8; round += 1) {
      const { params, sending } = writeLetter(phone, people.eve as Person);
      log.add(sending);
      const replies = await Promise.all(
        everywhere.map((line) => line.call('message.send', params, { content: sending.content })),
      );
      expect(new Set(replies.map(({ outcome }) => outcome))).toEqual(new Set(['ok']));
      expect(new Set(replies.map(({ result }) => JSON.stringify(result))).size).toBe(1);
    }
    await debts.settled(load);
    expect(findings()).toEqual([]);
  });

  /** A device on a connection and with a token at each process, and what they still can. */
  async function connectEverywhere(phone: Phone, lines: DisposableStack): Promise<Line[]> {
    const opened: Line[] = [];
    for (const port of cluster.ports) {
      opened.push(lines.use(await Line.socket(phone, ground, { port })));
      opened.push(lines.use(Line.https(phone, ground, { port })));
    }
    for (const line of opened) expect(await line.enter()).toBe('ok');
    return opened;
  }

  /** Every session of a removed device is asked for something, and refused. */
  async function refusedEverywhere(phone: Phone, lines: readonly Line[]): Promise<void> {
    const account = phone.owner.account.id;
    const asked = lines.flatMap((line) => [
      line.read('on', -1),
      line.call('device.state.resolve', { account }),
    ]);
    for (const { outcome } of await Promise.all(asked)) {
      expect(['unauthorized', 'lost']).toContain(outcome);
    }
  }

  /** Removes the second device of a person, which is connected everywhere, under load. */
  async function removeDevice(person: Person, meanwhile: () => Promise<void>): Promise<void> {
    using lines = new DisposableStack();
    const [kept, removed] = person.phones as [Phone, Phone];
    const sessions = await connectEverywhere(removed, lines);
    const sender = people.ann?.phones[0] as Phone;
    const senders = (await connectEverywhere(sender, lines)).filter((_, index) => index % 2 === 0);
    load.resume();
    await debts.progress(20 + Math.floor(chance() * 40));
    await removal(person, { kept, removed });
    await refusedEverywhere(removed, sessions);
    for (const line of senders) {
      const { params, sending } = writeLetter(sender, person);
      log.add(sending);
      const reply = await line.call('message.send', params, { content: sending.content });
      expect(reply.outcome).toBe('ok');
    }
    await debts.progress(20);
    await meanwhile();
    await debts.settled(load);
    // On a connection, what was sent before stands before the answer.
    await refusedEverywhere(removed, sessions);
    expect(findings()).toEqual([]);
  }

  /** The first device publishes a state without the second. */
  async function removal(
    person: Person,
    { kept, removed }: { readonly kept: Phone; readonly removed: Phone },
  ): Promise<void> {
    const member = members.find(({ phone }) => phone === kept) as Member;
    const state = await person.account.state([kept.device]);
    const facts = {
      account: person.account.id,
      device: removed.name,
      revision: state.revision,
    };
    person.phones = [kept];
    log.add({ kind: 'removing', ...facts });
    const reply = await member.request('device.state.publish', state);
    expect(reply?.outcome).toBe('ok');
    log.add({ kind: 'removed', ...facts });
  }

  test.each(['vic', 'wim'])(
    'a device (of %s) that is removed is cut off everywhere',
    async (name) => {
      await removeDevice(people[name] as Person, async () => {});
    },
  );

  test.each(['xan', 'yve'])('so it is while NATS is away (device of %s)', async (name) => {
    await cluster.nats.stop();
    await removeDevice(people[name] as Person, () => cluster.nats.start());
  });

  test('reading everything again gives the same result', async () => {
    await debts.settled(load);
    await Promise.all(members.map((member) => member.readAgain()));
    expect(findings()).toEqual([]);
    const { accepted, refused, heads } = figuresOf(log.entries, []);
    for (const count of [accepted, refused, heads]) expect(count).toBeGreaterThan(0);
  });
});

function isUnavailable(seen: LogEntry): boolean {
  return seen.kind === 'answer' && seen.outcome === 'temporarily_unavailable';
}
