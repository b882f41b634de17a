/** What decrypted objects may do, and to whom (04 §7, 03 §15 to §18). */
import {
  addGrantSignature,
  type ContactGrant,
  signDeviceState,
  signGrant,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, MemoryStore } from '../src/index.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { RawSender } from './support/raw-sender.ts';
import { befriend, network, texts, withoutStatus } from './support/relay-with-clients.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start();
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

interface Pair {
  readonly ann: Account;
  readonly bob: Account;
  /** Sends as Bob's device. */
  readonly raw: RawSender;
}

/** Ann and Bob, contacts; Bob may send anything. */
async function pair(): Promise<Pair> {
  const store = new MemoryStore();
  const [ann, bob] = [await relay.world.person(), await relay.world.person({ store })];
  await befriend(ann, bob);
  await bob.messages.send(ann.id, { text: 'first' });
  await ann.sync();
  return { ann, bob, raw: new RawSender(relay.world, store) };
}

const text = (it: string) => ({ content_type: 'text/plain', text: it });
const refused = (reason: unknown) => [{ kind: 'message-refused', message: { reason } }];
const incoming = async (account: Account, from: Account) =>
  (await account.contacts.get(from.id)).record?.grant_from_contact;

describe('04 §7: types', () => {
  test('an unknown type is kept and shown, and changes nothing', async () => {
    const { ann, bob, raw } = await pair();
    const content = { $type: 'example.poll', question: 'Tea?' };
    await raw.send(ann.id, content);
    expect(await ann.sync()).toMatchObject([{ kind: 'message', message: { content } }]);
    expect((await ann.contacts.get(bob.id)).status).toBe('active');
  });

  test.each<[string, JsonObject]>([
    ['no type', { text: 'hello' }],
    ['a type that is no text', { $type: 5 }],
    ['a message of nothing', { $type: network.type('message.direct') }],
    ['a message with null', { $type: network.type('message.direct'), body: null }],
  ])('%s is refused', async (_, content) => {
    const { ann, raw } = await pair();
    await raw.send(ann.id, content);
    expect(await ann.sync()).toMatchObject(refused(expect.any(String)));
    expect(await texts(ann)).toEqual(['first']);
  });

  test('04 §7.2: objects for the own devices are refused from others', async () => {
    const { ann, bob, raw } = await pair();
    const record = { account: bob.id, status: 'deleted', updated_at: 4_000_000_000 };
    await raw.send(ann.id, { $type: network.type('account.contacts.sync'), records: [record] });
    expect(await ann.sync()).toMatchObject(refused('not_permitted'));
    expect((await ann.contacts.get(bob.id)).status).toBe('active');
  });

  test('04 §7.2: a consent to oneself is refused', async () => {
    const { bob, raw } = await pair();
    await bob.messages.send(bob.id, { text: 'note' });
    const grant = await raw.grantOf((await bob.contacts.list())[0]?.account as string);
    const content = {
      $type: network.type('contact.consent'),
      device_state: relay.honest.get('device.state.resolve'),
      grant,
    };
    await raw.send(bob.id, content);
    const events = withoutStatus(await bob.sync());
    expect(events).toMatchObject(refused(expect.stringMatching(/not_permitted/)));
  });
});

describe('03 §16.4: grants a contact sends', () => {
  async function sendGrant(make: (held: ContactGrant, raw: RawSender) => Promise<ContactGrant>) {
    const { ann, bob, raw } = await pair();
    const before = (await incoming(ann, bob)) as ContactGrant;
    const candidate = await make(before, raw);
    await raw.send(ann.id, candidate);
    const events = await ann.sync();
    return { before, candidate, after: await incoming(ann, bob), events };
  }

  test('one that ends is not taken for one that does not', async () => {
    const { before, after, events } = await sendGrant(async (held, raw) =>
      signGrant(network, await raw.signing(), { grantee: held.grantee, expires_at: 4_000_000_000 }),
    );
    expect(events).toEqual([]);
    expect(after).toEqual(before);
  });

  test('a grant to another account is refused', async () => {
    const carl = await relay.world.person();
    const { before, after, events } = await sendGrant(async (_, raw) =>
      signGrant(network, await raw.signing(), { grantee: carl.id }),
    );
    expect(events).toMatchObject(refused(expect.any(String)));
    expect(after).toEqual(before);
  });

  test('a grant signed by an unknown device is not used, before or after reading the device state', async () => {
    const stranger = new MemoryStore();
    await relay.world.person({ store: stranger });
    const forger = await new RawSender(relay.world, stranger).signing();
    const { before, after } = await sendGrant(async (held) => {
      const { signatures: _, ...body } = held;
      const account = held.grantor;
      const signed = addGrantSignature(
        network,
        { ...body, note: 'forged', signatures: {} } as ContactGrant,
        { ...forger, account },
      );
      return signed;
    });
    expect(after).toEqual(before);
  });
});

describe('04 §7.4: hints of device changes', () => {
  test('a hint leads to a read, and to no more than the rate allows', async () => {
    const { ann, bob, raw } = await pair();
    relay.world.clock.advance(120);
    const hint = (revision: number) => ({ $type: network.type('device.state.changed'), revision });
    const now = relay.world.clock.milliseconds();
    const asked = () => relay.asked.get('device.state.resolve') ?? 0;
    // One read of the own state belongs to each synchronization.
    const before = asked();
    await raw.send(ann.id, hint(now));
    await ann.sync();
    expect(asked() - before).toBe(2);
    await raw.send(ann.id, hint(now + 1));
    await ann.sync();
    expect(asked() - before).toBe(3);
    // The hint, though never true, keeps Ann from trusting what she has: she asks before she sends.
    await ann.messages.send(bob.id, { text: 'to whatever devices there are' });
    expect(asked() - before).toBe(4);
  });

  test('a contact whose relay knows less than the contact signed holds up nothing', async () => {
    const { ann, bob, raw } = await pair();
    const { state, signer } = await raw.account();
    const certificates = state.certificates;
    const future = await signDeviceState(network, signer, {
      revision: state.revision + 1_000_000,
      certificates,
    });
    const grant = signGrant(network, await raw.signing(), { grantee: ann.id });
    await raw.send(ann.id, {
      $type: network.type('contact.consent'),
      device_state: future,
      grant,
    });
    const revision = future.revision + 1;
    await raw.send(ann.id, { $type: network.type('device.state.changed'), revision });
    relay.world.clock.advance(120);
    await ann.sync();
    relay.world.clock.advance(120);
    await raw.send(ann.id, { $type: network.type('message.direct'), body: text('still here') });
    expect(await ann.sync()).toMatchObject([{ kind: 'message' }]);
    expect(await ann.status()).toMatchObject({ pendingTasks: 1 });
    expect((await ann.contacts.get(bob.id)).status).toBe('active');
  });

  test('a hint that tells nothing new leads to nothing', async () => {
    const { ann, raw } = await pair();
    await raw.send(ann.id, { $type: network.type('device.state.changed'), revision: 1 });
    const before = relay.asked.get('device.state.resolve') ?? 0;
    await ann.sync();
    expect((relay.asked.get('device.state.resolve') ?? 0) - before).toBe(1);
  });
});

describe('04 §18.2: one message, once', () => {
  test('another content under a known message ID is refused', async () => {
    const { ann, bob, raw } = await pair();
    const [first] = await ann.messages.list();
    const direct = (text: string) => ({
      $type: network.type('message.direct'),
      body: { content_type: 'text/plain', text },
    });
    await raw.send(ann.id, direct('second'));
    const forged = await raw.seal(ann.id, direct('first, but not as it was'), {
      messageId: first?.messageId as string,
    });
    relay.lie('message.timeline.sync', (page) => ({
      ...page,
      items: page.items.map((item: object) => ({
        ...item,
        envelope: forged.envelope,
        key_box: forged.recipient_boxes[0],
      })),
    }));
    expect(await ann.sync()).toEqual([
      { kind: 'message-conflict', from: bob.id, messageId: first?.messageId },
    ]);
    expect(await texts(ann)).toEqual(['first']);
  });

  test('a record that could not be opened is replaced by a sound copy', async () => {
    const { ann, bob } = await pair();
    await bob.messages.send(ann.id, { text: 'damaged on the way' });
    relay.lie('message.timeline.sync', (page) => ({
      ...page,
      items: page.items.map((item: { key_box: { sealed_key: string } }) => ({
        ...item,
        key_box: { ...item.key_box, sealed_key: 'A'.repeat(80) },
      })),
    }));
    expect(await ann.sync()).toMatchObject(refused('not_decryptable'));
    const honest = relay.honest.get('message.timeline.sync');
    relay.lie('message.timeline.sync', (page) => ({
      ...page,
      ...honest,
      items: honest.items.map((item: { sequence: number }) => ({
        ...item,
        sequence: item.sequence + 100,
      })),
    }));
    expect(await ann.sync()).toMatchObject([{ kind: 'message' }]);
    expect(await texts(ann)).toEqual(['first', 'damaged on the way']);
  });
});

test('04 §17.4: what the relay kept no longer is reported as lost', async () => {
  const { ann, bob } = await pair();
  await bob.messages.send(ann.id, { text: 'too old by then' });
  relay.world.clock.advance(2_592_000 + 60);
  const { storage } = relay.world.relay.context;
  const records = 'SELECT sequence FROM timeline_records LIMIT 1';
  while (await storage.read((tx) => tx.get(records))) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  await bob.messages.send(ann.id, { text: 'fresh' });
  const events = await ann.sync();
  expect(events.map(({ kind }) => kind)).toEqual(['timeline-gap', 'message']);
  expect(await texts(ann)).toEqual(['first', 'fresh']);
});
