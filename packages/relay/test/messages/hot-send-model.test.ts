/**
 * The short way of `message.send` against the general one: the same calls, at two relays of which
 * one remembers no facts, have the same answers and leave the same rows (decision 0024).
 */
import type { ProtocolError } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digest } from '../../src/digest.ts';
import { contentDigest } from '../../src/messages/message-parts.ts';
import { insertReceived } from '../../src/messages/received-store.ts';
import type { Session } from '../../src/sessions/session.ts';
import { migrationsTable } from '../../src/storage/migrations.ts';
import { type HomeRelay, Person, type SendParams } from '../fixtures/person.ts';
import { seed } from '../support/chance.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';

/** Two relays with the same keys, people and time; each call is made at both. */
class Twins implements HomeRelay, AsyncDisposable {
  readonly hot: InProcessRelay;
  readonly general: InProcessRelay;
  /** Messages that took the short way. */
  appended = 0;

  private constructor(hot: InProcessRelay, general: InProcessRelay) {
    this.hot = hot;
    this.general = general;
    this.watch();
  }

  static async start(): Promise<Twins> {
    return new Twins(await InProcessRelay.start(), await InProcessRelay.start());
  }

  get clock() {
    return this.hot.clock;
  }

  get relayId() {
    return this.hot.relayId;
  }

  get relays() {
    return [this.hot, this.general] as const;
  }

  /** Lets one relay find no facts, and counts what the other one appends. */
  watch(): void {
    this.general.context.knownAccounts.find = async () => undefined;
    const { storage } = this.hot.context;
    const { append } = storage;
    storage.append = async (kind, input) => {
      const output = await append.call(storage, kind, input);
      if (output !== undefined) this.appended += 1;
      return output as never;
    };
  }

  async call(method: string, params: unknown, options: { session?: Session | undefined } = {}) {
    const [one, other] = await this.onBoth((relay) => answerOf(relay, method, params, options));
    expect(one).toEqual(other);
    expect(this.hot.takeNotices()).toEqual(this.general.takeNotices());
    if ('code' in one) throw Object.assign(new Error(one.code), one);
    return one.result;
  }

  async onBoth<T>(work: (relay: InProcessRelay) => Promise<T>): Promise<[T, T]> {
    return [await work(this.hot), await work(this.general)];
  }

  async [Symbol.asyncDispose]() {
    await this.hot[Symbol.asyncDispose]();
    await this.general[Symbol.asyncDispose]();
  }
}

async function answerOf(
  relay: InProcessRelay,
  method: string,
  params: unknown,
  options: { session?: Session | undefined },
) {
  try {
    return { result: await relay.call(method, params, options) };
  } catch (error) {
    const { code, message } = error as ProtocolError;
    return { code, message };
  }
}

const names = ['phone', 'laptop'] as const;
const device = fc.constantFrom(...names);
const devices = fc.subarray([...names], { minLength: 1 });
const who = fc.constantFrom('ann' as const, 'ben' as const);

/** What changes the facts of an account. */
const change = fc.oneof(
  fc.record({ kind: fc.constant('devices' as const), whose: who, devices }),
  fc.record({ kind: fc.constant('discovery' as const), whose: who, isOn: fc.boolean() }),
  fc.record({ kind: fc.constant('move' as const), whose: who, isHere: fc.boolean() }),
  fc.record({ kind: fc.constant('wait' as const), seconds: fc.constantFrom(1, 40_000, 700_000) }),
);
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;

const sending = fc.record({
  kind: fc.constant('send' as const),
  from: who,
  to: who,
  device,
  boxes: devices,
  senders: fc.option(devices, { nil: undefined }),
  credential: fc.constantFrom('grant', 'invite', 'none', 'expired', 'foreign', 'forged'),
  signer: device,
  /** Seconds before now at which it was made. */
  age: fc.constantFrom(0, 0, 0, -400, 604_000, 605_000),
  flaw: fc.constantFrom(
    ...(['none', 'none', 'none', 'none', 'signature', 'null', 'device'] as const),
  ),
  /** Whether another relay delivered a message of its key before. */
  received: fc.constantFrom(...(['not', 'not', 'not', 'not', 'same', 'other'] as const)),
  /** What happens once, while the first signature is verified. */
  meanwhile: fc.option(change, { nil: undefined, freq: 1 }),
});
type Sending = typeof sending extends fc.Arbitrary<infer T> ? T : never;

const command = fc.oneof(
  { weight: 10, arbitrary: sending },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('again' as const), which: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('other' as const), which: fc.nat(5) }) },
  { weight: 4, arbitrary: change },
  { weight: 1, arbitrary: fc.constant({ kind: 'clean' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

test('04 §12: remembered facts change neither answers nor rows', async () => {
  let appended = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(command, { minLength: 20, maxLength: 40 }), async (commands) => {
      await using twins = await Twins.start();
      const story = new Story(twins);
      await story.begin();
      for (const one of commands) await story.apply(one);
      const [hot, general] = await twins.onBoth(rowsOf);
      expect(hot).toEqual(general);
      appended += twins.appended;
    }),
    { seed, numRuns: 15, endOnFailure: true },
  );
  // So that this does not compare the general way with itself.
  expect(appended).toBeGreaterThan(20);
});

/** All rows but those that say when the tables were made. */
async function rowsOf(relay: InProcessRelay): Promise<Record<string, unknown[]>> {
  const { [migrationsTable]: _, ...rows } = await relay.dump();
  return rows;
}

interface Sent {
  readonly params: SendParams;
  readonly session: Session;
}

/** Makes calls of two people. */
class Story {
  readonly #twins: Twins;
  readonly #people: { readonly ann: Person; readonly ben: Person };
  readonly #sent: Sent[] = [];

  constructor(twins: Twins) {
    this.#twins = twins;
    this.#people = { ann: new Person(twins, 'ann'), ben: new Person(twins, 'ben') };
  }

  async begin(): Promise<void> {
    const soon = this.#twins.clock.now() + 1_000_000;
    for (const person of Object.values(this.#people)) {
      await person.addDevice('phone');
      await person.addDevice('laptop', { expiresAt: soon });
      await person.moveIn();
    }
  }

  async apply(one: Command): Promise<void> {
    switch (one.kind) {
      case 'send':
        return await this.#send(one);
      case 'again':
        return await this.#call(this.#sent.at(-1 - one.which));
      case 'other':
        return await this.#conflict(this.#sent.at(-1 - one.which));
      case 'clean':
        await this.#twins.onBoth((relay) => relay.runJob('messages.retention'));
        return;
      case 'restart':
        await this.#twins.onBoth((relay) => relay.restart());
        return this.#twins.watch();
      default: {
        const make = await this.#change(one);
        await this.#twins.onBoth(make);
      }
    }
  }

  /** Returns what makes a change at one relay. */
  async #change(one: Change): Promise<(relay: InProcessRelay) => Promise<unknown>> {
    if (one.kind === 'wait') return async (relay) => relay.clock.advance(one.seconds);
    const person = this.#people[one.whose];
    const { account } = person;
    if (one.kind === 'move') {
      const relayId = one.isHere ? this.#twins.relayId : `0x${'0'.repeat(40)}`;
      const sql = 'UPDATE account_routes SET relay_id = ? WHERE account = ?';
      return ({ context }) =>
        context.storage.write(`account:${account}`, (tx) => tx.run(sql, relayId, account));
    }
    if (one.kind === 'discovery') {
      const profile = person.profile({ public_discovery: one.isOn });
      const session = person.session();
      return (relay) => answerOf(relay, 'profile.publish', profile, { session });
    }
    const state = await person.state({ devices: one.devices });
    const session = person.accountSession();
    return (relay) => answerOf(relay, 'device.state.publish', state, { session });
  }

  async #send(one: Sending): Promise<void> {
    const [from, to] = [this.#people[one.from], this.#people[one.to]];
    const session = from.session(one.flaw === 'device' ? otherThan(one.device) : one.device);
    const authorization = from === to ? undefined : this.#credential(one, from, to);
    const made = from.message(to, {
      ...{ device: one.device, boxes: one.boxes, createdAt: this.#twins.clock.now() - one.age },
      ...(one.senders !== undefined && from !== to && { senders: one.senders }),
      ...(authorization !== undefined && { authorization }),
    });
    const params = withFlaw(made, one.flaw);
    if (one.received !== 'not') await this.#receive(params, one.received);
    if (one.meanwhile !== undefined) {
      const make = await this.#change(one.meanwhile);
      await this.#twins.onBoth(async (relay) => {
        relay.meanwhile = async () => void (await make(relay));
      });
    }
    await this.#call({ params, session });
    this.#sent.push({ params, session });
    await this.#twins.onBoth(async (relay) => {
      // If no signature was verified.
      await relay.meanwhile?.();
      relay.meanwhile = undefined;
    });
  }

  #credential(one: Sending, from: Person, to: Person): SendParams['authorization'] {
    const now = this.#twins.clock.now();
    switch (one.credential) {
      case 'grant':
        return to.grant(from, {}, one.signer);
      case 'invite':
        return to.invite(undefined, one.signer);
      case 'expired':
        return to.invite(now, one.signer);
      case 'foreign':
        return to.grant(new Person(this.#twins, 'eve'));
      case 'forged':
        return { ...to.invite(), device_signature: from.invite().device_signature };
      default:
        return undefined;
    }
  }

  async #conflict(sent: Sent | undefined): Promise<void> {
    if (sent === undefined) return;
    const { message_id: messageId, from, to } = sent.params.envelope;
    const [sender, recipient] = [from, to].map((account) =>
      Object.values(this.#people).find((person) => person.account === account),
    ) as [Person, Person];
    const params = sender.message(recipient, { messageId, text: 'other' });
    await this.#call({ params, session: sender.session() });
  }

  /** Lets another relay have delivered a message of this key, the same or another one. */
  async #receive(params: SendParams, which: 'same' | 'other'): Promise<void> {
    const { envelope, recipient_boxes: boxes } = params;
    const id = digest(canonicalJson(envelope));
    const content = which === 'same' ? contentDigest(id, canonicalJson(boxes)) : 'other';
    const key = { sender: envelope.from, messageId: envelope.message_id };
    const acceptedAt = this.#twins.clock.now();
    const result = { request: 'r', content, acceptedAt, keepUntil: 2_000_000_000 };
    await this.#twins.onBoth(({ context }) =>
      context.storage.write(`account:${key.sender}`, (tx) =>
        tx.run(...insertReceived(key, result)),
      ),
    );
  }

  async #call(sent: Sent | undefined): Promise<void> {
    if (sent === undefined) return;
    const { params, session } = sent;
    await this.#twins.call('message.send', params, { session }).catch((error: ProtocolError) => {
      if (error.code === undefined) throw error;
    });
  }
}

const otherThan = (name: string) => (name === 'phone' ? 'laptop' : 'phone');

function withFlaw(params: SendParams, flaw: Sending['flaw']): SendParams {
  const { envelope } = params;
  const changed: JsonObject | undefined =
    flaw === 'signature'
      ? { device_signature: 'A'.repeat(86) }
      : flaw === 'null'
        ? { note: null }
        : undefined;
  return changed === undefined
    ? params
    : { ...params, envelope: { ...envelope, ...changed } as SendParams['envelope'] };
}
