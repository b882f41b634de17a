import type { TimelinePage } from '@posthouse/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';

const deviceNames = ['a', 'b', 'c'] as const;
const people = ['ann', 'ben'] as const;

/** The simplest model of a timeline: a list that is searched from end to end. */
interface ModelRecord {
  readonly sequence: number;
  readonly messageId: string;
  readonly visibleTo: ReadonlySet<string>;
  readonly keepUntil: number;
  isGone: boolean;
}
interface ModelAccount {
  readonly person: Person;
  readonly records: ModelRecord[];
  enabled: ReadonlySet<string>;
  head: number;
}

const devices = fc.subarray([...deviceNames], { minLength: 1 });
const command = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      from: fc.nat(1),
      to: fc.nat(1),
      by: fc.constantFrom(...deviceNames),
      boxes: devices,
      senders: fc.option(devices),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('devices' as const),
      whose: fc.nat(1),
      enabled: devices,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), seconds: fc.nat(600) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'clean' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      whose: fc.nat(1),
      by: fc.constantFrom(...deviceNames),
      after: fc.integer({ min: -1, max: 12 }),
      limit: fc.option(fc.integer({ min: 1, max: 5 })),
    }),
  },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

test('04 §17, §18: timelines equal those of a simple model', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 60 }), async (commands) => {
      await using relay = await InProcessRelay.start({
        messageRetention: 1_000,
        deliveryAgeLimit: 1_000,
      });
      const model = new Model(relay);
      await model.settle();
      for (const one of commands) await model.apply(one);
      await model.readEverything();
    }),
    { numRuns: 12 },
  );
});

class Model {
  readonly #relay: InProcessRelay;
  readonly #accounts: ModelAccount[] = [];

  constructor(relay: InProcessRelay) {
    this.#relay = relay;
  }

  async settle(): Promise<void> {
    for (const name of people) {
      const person = await Person.register(this.#relay, name, [...deviceNames]);
      this.#accounts.push({ person, records: [], enabled: new Set(deviceNames), head: -1 });
    }
  }

  async apply(one: Command): Promise<void> {
    switch (one.kind) {
      case 'send':
        return this.#send(one);
      case 'devices':
        return this.#enable(this.#account(one.whose), one.enabled);
      case 'wait':
        return this.#relay.clock.advance(one.seconds);
      case 'clean':
        return this.#clean();
      case 'restart':
        return this.#relay.restart();
      case 'read':
        return this.#read(one);
    }
  }

  async readEverything(): Promise<void> {
    for (const whose of this.#accounts.keys()) {
      for (const by of deviceNames) {
        await this.#read({ kind: 'read', whose, by, after: -1, limit: null });
      }
    }
  }

  #account(index: number): ModelAccount {
    return this.#accounts[index] as ModelAccount;
  }

  async #send(one: Extract<Command, { kind: 'send' }>): Promise<void> {
    const from = this.#account(one.from);
    const to = this.#account(one.to);
    const isSelf = from === to;
    const senders = isSelf ? [] : (one.senders ?? []);
    const [signer] = to.enabled;
    const message = from.person.message(to.person, {
      device: one.by,
      boxes: one.boxes,
      senders,
      ...(isSelf ? {} : { authorization: to.person.grant(from.person, {}, signer) }),
    });
    const code = await this.#relay.codeOf('message.send', message, {
      session: from.person.session(one.by),
    });
    const received = one.boxes.filter((name) => to.enabled.has(name));
    const kept = senders.filter((name) => from.enabled.has(name));
    if (!from.enabled.has(one.by)) expect(code).toBe('unauthorized');
    else if (received.length === 0) expect(code).toBe('device_unknown');
    else if (senders.length > 0 && kept.length === 0) expect(code).toBe('device_unknown');
    else {
      expect(code).toBe('ok');
      if (kept.length > 0) this.#append(from, kept, message.envelope.message_id);
      this.#append(to, received, message.envelope.message_id);
    }
  }

  #append(account: ModelAccount, visibleTo: readonly string[], messageId: string): void {
    account.head += 1;
    account.records.push({
      sequence: account.head,
      messageId,
      visibleTo: new Set(visibleTo),
      keepUntil: this.#relay.clock.now() + 1_000,
      isGone: false,
    });
  }

  async #enable(account: ModelAccount, enabled: readonly string[]): Promise<void> {
    await account.person.publishState(await account.person.state({ devices: enabled }));
    account.enabled = new Set(enabled);
  }

  async #clean(): Promise<void> {
    const next = await this.#relay.runJob('messages.retention');
    const now = this.#relay.clock.now();
    expect(next ?? now + 1).toBeGreaterThan(now);
    for (const { records } of this.#accounts) {
      for (const record of records) record.isGone ||= record.keepUntil <= now;
    }
  }

  async #read({ whose, by, after, limit }: Extract<Command, { kind: 'read' }>): Promise<void> {
    const { person, records, enabled, head } = this.#account(whose);
    const params = { after, ...(limit === null ? {} : { limit }) };
    const options = { session: person.session(by) };
    if (!enabled.has(by) || after > head) {
      const code = await this.#relay.codeOf('message.timeline.sync', params, options);
      expect(code).toBe(enabled.has(by) ? 'bad_request' : 'unauthorized');
      return;
    }
    const answer = await this.#relay.call('message.timeline.sync', params, options);
    const page = answer as unknown as TimelinePage;
    const visible = records.filter(
      ({ sequence, visibleTo }) => sequence > after && visibleTo.has(by),
    );
    const there = visible.filter(({ isGone }) => !isGone);
    const expected = there.slice(0, limit ?? 100);
    expect(page.items.map(({ sequence }) => sequence)).toEqual(
      expected.map(({ sequence }) => sequence),
    );
    expect(page.items.map(({ envelope }) => envelope.message_id)).toEqual(
      expected.map(({ messageId }) => messageId),
    );
    expect(page.has_more).toBe(there.length > expected.length);
    expect(page.has_retention_gap ?? false).toBe(visible.some(({ isGone }) => isGone));
    const senders = new Set(page.items.map(({ envelope }) => envelope.from_device_id));
    expect(page.certificates).toHaveLength(senders.size);
  }
}
