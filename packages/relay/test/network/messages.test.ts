/** Direct messages between accounts of three relays, as their clients see them. */
import { afterEach, describe, expect, test } from 'vitest';
import type { MessageOptions, Person } from '../fixtures/person.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { differences, type SentMessage } from './received.ts';
import { fateOf, relayNetwork, send, statusOf, until } from './relay-network.ts';

const few = { relayStreams: 8, relayCallsAtOnce: 8, relayCallsFirst: 8 };

const network = relayNetwork((name) => ({
  limits: name === 'c' ? { keyBoxBytes: 400, ...few } : {},
}));

/** A message that its home relay has accepted. */
async function sendTo(home: ServedRelay, from: Person, to: Person, options: MessageOptions = {}) {
  const message = from.message(to, { authorization: to.grant(from), ...options });
  await send(home, { from, message });
  return { from, to, message };
}

/** An account at home at A that writes to one at B. */
async function pair() {
  const { a, b } = network;
  return {
    ann: await network.register('ann', a),
    ben: await network.register('ben', b, ['phone', 'laptop']),
  };
}

describe('delivered', () => {
  test('07 §C8: messages between three relays arrive in all directions, once', async () => {
    const { a, b, c } = network;
    const homes = new Map([
      [await network.register('ann', a), [a]],
      [await network.register('ben', b), [b]],
      [await network.register('cem', c), [c]],
    ]);
    const sent: SentMessage[] = [];
    for (const [from, [home]] of homes) {
      for (const to of homes.keys()) {
        if (to !== from) sent.push(await sendTo(home!, from, to, { senders: ['phone'] }));
      }
    }
    for (const one of sent) expect(await fateOf(homes.get(one.from)![0]!, one)).toBe('ok');
    expect(await differences(sent, homes)).toEqual([]);
  });

  test('07 §C2, §C8: mail for a relay that resets streams above 8 arrives at once, and once', async () => {
    const { a, c } = network;
    const ann = await network.register('ann', a);
    const cem = await network.register('cem', c);
    const first = await sendTo(a, ann, cem);
    expect(await fateOf(a, first)).toBe('ok');
    network.cables.c.hang();
    network.cables.a.hang();
    const sent = await Promise.all(Array.from({ length: 30 }, () => sendTo(a, ann, cem)));
    const { metrics } = a.server.context;
    const count = (name: 'relay_call_resets' | 'relays_failed') => metrics.value(name) ?? 0;
    const before = { resets: count('relay_call_resets'), failed: count('relays_failed') };
    network.cables.c.resume();
    network.cables.a.resume();
    for (const one of sent) expect(await fateOf(a, one)).toBe('ok');
    // Of the 28 that were sent at once.
    const resets = count('relay_call_resets') - before.resets;
    expect(resets).toBeGreaterThan(0);
    expect(resets).toBeLessThanOrEqual(20);
    expect(count('relays_failed')).toBe(before.failed);
    expect(await differences([first, ...sent], new Map([[cem, [c]]]))).toEqual([]);
  });

  test('04 §19: over WebSocket, the recipient is notified and the sender sees the status', async () => {
    const { a, b } = network;
    const { ann, ben } = await pair();
    const [sender, receiver] = [await a.socket(), await b.socket()];
    await a.bindDevice(sender, ann.device());
    await b.bindDevice(receiver, ben.device());
    const message = ann.message(ben, { authorization: ben.grant(ann) });
    const accepted = await sender.call('message.send', message);
    expect(accepted.result).toMatchObject({ accepted_at: a.clock.now() });
    expect(await receiver.notification()).toMatchObject({
      method: 'message.timeline.changed',
      params: { head: 0 },
    });
    expect(await fateOf(a, { from: ann, message })).toBe('ok');
  });

  test('07 §C8: a public profile lets a stranger of another relay write', async () => {
    const { a } = network;
    const { ann, ben } = await pair();
    await ben.publishProfile({ public_discovery: true });
    const message = ann.message(ben);
    await send(a, { from: ann, message });
    expect(await fateOf(a, { from: ann, message })).toBe('ok');
  });

  test('07 §C8: a box for a removed device does not stop the others', async () => {
    const { a } = network;
    const { ann, ben } = await pair();
    const message = ann.message(ben, { authorization: ben.grant(ann) });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    await send(a, { from: ann, message });
    expect(await fateOf(a, { from: ann, message })).toBe('ok');
  });
});

describe('refused by the target relay, the delivery fails with the code of 07 §C8', () => {
  test('forbidden: no credential and no public profile', async () => {
    const { ann, ben } = await pair();
    const message = ann.message(ben);
    await send(network.a, { from: ann, message });
    expect(await fateOf(network.a, { from: ann, message })).toBe('forbidden');
  });

  test('forbidden: the device that signed the grant was removed', async () => {
    const { ann, ben } = await pair();
    const authorization = ben.grant(ann, {}, 'laptop');
    const message = ann.message(ben, { authorization });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    await send(network.a, { from: ann, message });
    expect(await fateOf(network.a, { from: ann, message })).toBe('forbidden');
  });

  test('device_unknown: all devices with a box were removed', async () => {
    const { ann, ben } = await pair();
    const message = ann.message(ben, { authorization: ben.grant(ann), boxes: ['laptop'] });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    await send(network.a, { from: ann, message });
    expect(await fateOf(network.a, { from: ann, message })).toBe('device_unknown');
  });

  test('request_too_large: a box above the cap of the target', async () => {
    const ann = await network.register('ann', network.a);
    const cem = await network.register('cem', network.c);
    const sent = await sendTo(network.a, ann, cem);
    const [box] = sent.message.recipient_boxes;
    const message = {
      ...sent.message,
      envelope: ann.message(cem).envelope,
      recipient_boxes: [{ ...box!, note: 'x'.repeat(400) }],
    };
    expect(await fateOf(network.a, sent)).toBe('ok');
    await send(network.a, { from: ann, message: message as typeof sent.message });
    expect(await fateOf(network.a, { from: ann, message: message as never })).toBe(
      'request_too_large',
    );
  });

  test('state_conflict: the same message ID with another content, after the sender moved', async () => {
    const { a, c } = network;
    const { ann, ben } = await pair();
    const first = await sendTo(a, ann, ben);
    expect(await fateOf(a, first)).toBe('ok');
    await ann.moveTo(c);
    const messageId = first.message.envelope.message_id;
    const second = await sendTo(c, ann, ben, { messageId, text: 'something else' });
    expect(await fateOf(c, second)).toBe('state_conflict');
    expect(await differences([first], new Map([[ben, [network.b]]]))).toEqual([]);
  });
});

describe('not delivered yet', () => {
  afterEach(() => network.cables.b.restore());

  test('07 §C8: the same message, repeated and moved, is received once', async () => {
    const { a, b, c } = network;
    const { ann, ben } = await pair();
    const sent = await sendTo(a, ann, ben, { senders: ['phone'] });
    await send(a, sent);
    expect(await fateOf(a, sent)).toBe('ok');
    await ann.moveTo(c);
    await send(c, sent);
    expect(await fateOf(c, sent)).toBe('ok');
    expect(await differences([sent], new Map([[ben, [b]]]))).toEqual([]);
  });

  test('04 §16: an account that no relay has keeps the message waiting, until it comes', async () => {
    const { a, b } = network;
    const { ann, ben } = await pair();
    const eve = await network.stranger('eve', b);
    const sent = await sendTo(a, ann, eve);
    expect(await statusOf(a, sent)).toMatchObject({ status: 'delivering' });
    await eve.moveIn();
    network.advance(60);
    expect(await fateOf(a, sent)).toBe('ok');
    expect(
      await differences(
        [sent],
        new Map([
          [eve, [b]],
          [ben, [b]],
        ]),
      ),
    ).toEqual([]);
  });

  test('04 §16.1: at the deadline the delivery fails with message_expired', async () => {
    const { a, b } = network;
    const { ann, ben } = await pair();
    network.cutAll();
    const sent = await sendTo(a, ann, ben);
    await until(() => a.server.context.relayClient.pausedUntil(b.relayId) !== undefined);
    expect(await statusOf(a, sent)).toMatchObject({ status: 'delivering' });
    network.advance(604_800);
    expect(await fateOf(a, sent)).toBe('message_expired');
    await network.heal();
    expect(await differences([], new Map([[ben, [b]]]))).toEqual([]);
  });
});
