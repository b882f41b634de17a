import { canonicalJson } from '@posthouse/protocol/json';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { observeRoute } from '../../src/accounts/index.ts';
import { digest } from '../../src/digest.ts';
import { envelopeId } from '../../src/messages/message-parts.ts';
import { Person, type SendParams } from '../fixtures/person.ts';
import { engine } from '../support/engine.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { WiredRelays } from '../support/wired-relays.ts';

const job = 'messages.delivery';
/** A run takes a second with PostgreSQL. */
const numRuns = engine === 'postgres' ? 4 : 12;
/** Longer than any run, so that no delivery ends at its deadline. */
const lifetime = 1_000_000;
const limits = {
  ...{ messageRetention: lifetime, deliveryAgeLimit: lifetime },
  ...{ relayRate: 1e9, relayBurst: 1e9, relayAccountRate: 1e9, relayAccountBurst: 1e9 },
};

const index = fc.nat(1);
const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('send' as const), from: index }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('repeat' as const), which: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('move' as const), who: index, to: index }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('lose' as const),
      what: fc.constantFrom('request' as const, 'answer' as const),
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('cut' as const), from: index }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'heal' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), which: index }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('step' as const),
      which: index,
      seconds: fc.integer({ min: -100, max: 400 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), seconds: fc.nat(2_000) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('run' as const), which: index }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      which: index,
      runs: index,
      writes: fc.nat(10),
    }),
  },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

test('04 §16, 07 §C8: each accepted message is in each timeline once, and relays agree', async () => {
  const finished: string[] = [];
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 15, maxLength: 40 }), async (commands) => {
      await using wired = new WiredRelays(2, limits);
      await wired.start();
      const model = new Model(wired);
      await model.settle();
      for (const one of commands) {
        await model.apply(one);
        await model.checkTerminal();
      }
      await model.heal();
      finished.push(...(await model.checkAll()));
    }),
    { numRuns },
  );
  // The runs are about something: messages got across.
  expect(finished.filter((status) => status === 'target_accepted').length).toBeGreaterThan(numRuns);
});

interface Sent {
  readonly params: SendParams;
  readonly from: Person;
  readonly to: Person;
  /** The relay that accepted it. */
  readonly relay: InProcessRelay;
}

class Model {
  readonly #wired: WiredRelays;
  readonly #people: Person[] = [];
  /** Where each person is at home. */
  readonly #homes = [0, 1];
  readonly #sent: Sent[] = [];
  readonly #cut = new Set<number>();
  readonly #lost: ('request' | 'answer')[] = [];
  /** The terminal results seen, by message. */
  readonly #terminal = new Map<string, unknown>();

  constructor(wired: WiredRelays) {
    this.#wired = wired;
  }

  async settle(): Promise<void> {
    this.#people.push(await Person.register(this.#relay(0), 'ann'));
    this.#people.push(await Person.register(this.#relay(1), 'ben'));
    // Clocks can be set back from here without a certificate becoming invalid.
    this.#wired.advance(10_000);
    this.#wired.intercept = async (_call, forward) => {
      const loss = this.#lost.shift();
      if (loss === 'request') return { kind: 'unknown' };
      const answer = await forward();
      return loss === 'answer' && answer.kind !== 'unreachable' ? { kind: 'unknown' } : answer;
    };
  }

  async apply(one: Command): Promise<void> {
    switch (one.kind) {
      case 'send':
        return await this.#send(one.from);
      case 'repeat':
        return await this.#repeat(one.which);
      case 'move':
        return await this.#move(one.who, one.to);
      case 'lose':
        this.#lost.push(...Array.from({ length: one.count }, () => one.what));
        return;
      case 'cut':
        this.#cut.add(one.from);
        this.#wired.cut(this.#relay(one.from), this.#relay(1 - one.from));
        return;
      case 'heal':
        this.#cut.clear();
        this.#wired.heal();
        return;
      case 'restart':
        return await this.#relay(one.which).restart();
      case 'step':
        return this.#relay(one.which).clock.advance(one.seconds);
      case 'wait':
        return this.#wired.advance(one.seconds);
      case 'run':
        return void (await this.#relay(one.which).runJob(job));
      case 'fault':
        return await this.#fault(one);
    }
  }

  /** A terminal status does not change. */
  async checkTerminal(): Promise<void> {
    for (const { relayId, context } of this.#wired.relays) {
      const rows = await context.storage.read((tx) =>
        tx.all<Record<string, string>>("SELECT * FROM sent_results WHERE status <> 'delivering'"),
      );
      for (const row of rows) {
        const key = `${relayId} ${row.message_id}`;
        expect(row).toEqual(this.#terminal.get(key) ?? row);
        this.#terminal.set(key, row);
      }
    }
  }

  /** Ends every disturbance and lets both relays deliver until nothing is queued. */
  async heal(): Promise<void> {
    this.#cut.clear();
    this.#wired.heal();
    this.#lost.length = 0;
    const now = Math.max(...this.#wired.relays.map(({ clock }) => clock.now()));
    for (const { clock } of this.#wired.relays) clock.advance(now - clock.now());
    for (const who of [0, 1]) await this.#inform(who, this.#relay(1 - this.#home(who)));
    for (let round = 0; round < 30; round += 1) {
      for (const relay of this.#wired.relays) await relay.runJob(job);
      await this.checkTerminal();
      const waiting = (await Promise.all(this.#wired.relays.map((one) => one.rows('deliveries'))))
        .flat()
        .map((row) => Number(row.next_attempt_at));
      if (waiting.length === 0) return;
      this.#wired.advance(Math.max(1, Math.min(...waiting) - this.#relay(0).clock.now()));
    }
    expect.fail('the relays do not come to an end');
  }

  /** @returns the terminal status of each message */
  async checkAll(): Promise<string[]> {
    const statuses: string[] = [];
    for (const { params, from, to, relay } of this.#sent) {
      const { message_id: id } = params.envelope;
      const [result] = (await relay.rows('sent_results')).filter((row) => row.message_id === id);
      const received = await this.#recordsOf(to, params);
      if (result?.status === 'failed') {
        expect([result.error_code, received.length]).toEqual(['clock_skew', 0]);
      } else {
        expect([result?.status, received.length]).toEqual(['target_accepted', 1]);
      }
      expect((await this.#recordsOf(from, params)).map((row) => row.at)).toEqual(
        params.sender_boxes === undefined ? [] : [relay.relayId],
      );
      statuses.push(String(result?.status));
    }
    return statuses;
  }

  async #recordsOf(person: Person, { envelope }: SendParams) {
    const id = envelopeId(envelope.created_at, digest(canonicalJson(envelope)));
    const found = this.#wired.relays.map(async (relay) =>
      (await relay.rows('timeline_records'))
        .filter((row) => row.account === person.account && row.envelope_id === id)
        .map(() => ({ at: relay.relayId })),
    );
    return (await Promise.all(found)).flat();
  }

  #relay(which: number): InProcessRelay {
    return this.#wired.relays[which] as InProcessRelay;
  }

  #person(who: number): Person {
    return this.#people[who] as Person;
  }

  #home(who: number): number {
    return this.#homes[who] as number;
  }

  async #send(who: number): Promise<void> {
    const [from, to] = [this.#person(who), this.#person(1 - who)];
    const relay = this.#relay(this.#home(who));
    const params = from.message(to, {
      createdAt: relay.clock.now(),
      authorization: to.grant(from),
      senders: this.#sent.length % 2 === 0 ? ['phone'] : [],
    });
    expect(await relay.codeOf('message.send', params, { session: from.session() })).toBe('ok');
    this.#sent.push({ params, from, to, relay });
  }

  async #repeat(which: number): Promise<void> {
    const sent = this.#sent[which % Math.max(1, this.#sent.length)];
    if (sent === undefined) return;
    const { params, from, relay } = sent;
    const code = await relay.codeOf('message.send', params, { session: from.session() });
    const isHome = this.#relay(this.#home(this.#people.indexOf(from))) === relay;
    if (isHome) expect(code).toBe('ok');
    else expect(['ok', 'route_stale', 'unauthorized']).toContain(code);
  }

  /** Runs the job of one relay while storage of the same or the other one fails at a write. */
  async #fault({ which, runs, writes }: Extract<Command, { kind: 'fault' }>): Promise<void> {
    const { faults } = this.#relay(which);
    let left = writes;
    faults.beforeStatement = (sql) => {
      if (!/^\s*(INSERT|UPDATE|DELETE)/.test(sql)) return;
      left -= 1;
      if (left === -1) throw new Error('fault of the test');
    };
    await this.#relay(runs)
      .runJob(job)
      .catch(() => undefined);
    delete faults.beforeStatement;
  }

  async #move(who: number, to: number): Promise<void> {
    const left = this.#home(who);
    if (left === to) return;
    const [person, relay] = [this.#person(who), this.#relay(to)];
    const session = person.accountSession();
    await relay.call('device.state.publish', await person.state(), { session });
    const now = relay.clock.now();
    const route = { relay_id: relay.relayId, updated_at: now, expires_at: now + 10 * lifetime };
    await relay.call('account.route.publish', await person.route(route), { session });
    this.#homes[who] = to;
    // The relay that was left learns of it at once if it can be reached.
    if (!this.#cut.has(to)) await this.#inform(who, this.#relay(left));
  }

  async #inform(who: number, relay: InProcessRelay): Promise<void> {
    const rows = await this.#relay(this.#home(who)).rows('account_routes');
    const row = rows.find(({ account }) => account === this.#person(who).account);
    await observeRoute(relay.context, JSON.parse(String(row?.route)));
  }
}
