/** Claims of a relay that no signature backs: the client keeps what it has, and reads on. */
import {
  type AccountRoute,
  type AccountSigner,
  accountSigner,
  type ErrorCode,
  errorCatalogue,
  signRouteDraft,
} from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type AccountEvent, MemoryStore } from '../src/index.ts';
import * as channels from './channels/lying-channel.ts';
import * as groups from './groups/lying-group.ts';
import { isConnected } from './support/connection-events.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, network, texts } from './support/relay-with-clients.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true, channels: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Refuses every call of a method. */
function refuse(method: string, code: ErrorCode): void {
  relay.garble(method, (text) => {
    const { jsonrpc, id } = JSON.parse(text);
    const error = { code: errorCatalogue[code].rpc, message: 'so says the relay' };
    return JSON.stringify({ jsonrpc, id, error });
  });
}

async function friends() {
  const store = new MemoryStore();
  const [ann, bob] = [await relay.world.person(), await relay.world.person({ store })];
  await befriend(ann, bob);
  return { ann, bob, store };
}

test('02 §10.3: the lie that its device is unknown costs a client nothing that it has', async () => {
  const { ann, bob, store } = await friends();
  await ann.messages.send(bob.id, { text: 'one' });
  await bob.sync();
  await ann.messages.send(bob.id, { text: 'two' });
  const again = await (await relay.world.client({ store })).account();
  refuse('auth.device.verify', 'device_unknown');
  await expect(again.sync()).rejects.toMatchObject({ error: 'device_unknown' });
  expect(await texts(again)).toEqual(['one']);
  relay.behave();
  await again.sync();
  expect(await texts(again)).toEqual(['one', 'two']);
});

test('02 §9.3: a challenge that the relay forgot, as after a restart, does not end following', async () => {
  const { ann, bob } = await friends();
  let refusals = 0;
  for await (const event of bob.follow()) {
    if (event.kind === 'message') break;
    if (!isConnected(event)) continue;
    if (refusals > 0) await ann.messages.send(bob.id, { text: 'there again' });
    else {
      relay.when.set('auth.device.verify', () => {
        refusals += 1;
        if (refusals === 3) relay.behave();
      });
      refuse('auth.device.verify', 'unauthorized');
      relay.cut();
    }
  }
  expect(await texts(bob)).toEqual(['there again']);
});

describe('03 §10: set-up of a second device refuses', () => {
  async function refused(change: (signer: AccountSigner, route: AccountRoute) => unknown) {
    const accountKey = nodeRandom(32);
    const relayId = relay.world.relay.relayId;
    await relay.world.person({ accountKey, relayId });
    const route = await change(
      accountSigner(network, accountKey),
      relay.honest.get('account.route.publish'),
    );
    const client = await relay.world.client();
    relay.lie('account.route.resolve', () => route);
    const setUp = () => client.setUp({ accountKey, relayId });
    await expect(setUp()).rejects.toMatchObject({ reason: 'invalid_route' });
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
    relay.behave();
    expect((await setUp()).deviceId).toMatch(/^dev_/);
  }

  test('03 §10: a route that has ended', async () => {
    await refused(async (signer, { revision, relay_id }) => {
      const facts = { revision, relay_id, updated_at: 1, expires_at: 2 };
      const draft = await signRouteDraft(network, signer, facts);
      // The relay takes part in the lie with its own key.
      const message = network.bytes(draft, ['relay_signature']);
      const relay_signature = relay.world.relay.context.identity.sign(message);
      return { ...draft, relay_signature };
    });
  });

  test('03 §10: a route to a relay that the registry does not list', async () => {
    await refused((_, route) => ({ ...route, relay_id: `0x${'1'.repeat(40)}` }));
  });
});

test('04 §18: more records than were asked for', async () => {
  const { ann, bob } = await friends();
  await ann.messages.send(bob.id, { text: 'one' });
  const { position } = await bob.status();
  relay.lie('message.timeline.sync', ({ items, ...page }, { limit }) => ({
    ...page,
    items: Array.from({ length: Number(limit) + 1 }, (_, index) => ({
      ...items[0],
      sequence: items[0].sequence + index,
    })),
  }));
  await expect(bob.sync()).rejects.toMatchObject({ reason: 'page_too_long' });
  expect((await bob.status()).position).toBe(position);
  relay.behave();
  await bob.sync();
  expect(await texts(bob)).toEqual(['one']);
});

test('02 §12.3: a hint of records that do not exist', async () => {
  const { ann, bob } = await friends();
  const stop = new AbortController();
  const before = relay.asked.get('message.timeline.sync') ?? 0;
  let messages = 0;
  for await (const event of bob.follow({ signal: stop.signal })) {
    if (isConnected(event)) await ann.messages.send(bob.id, { text: 'before the lie' });
    if (event.kind !== 'message') continue;
    messages += 1;
    if (messages === 2) {
      stop.abort();
      continue;
    }
    const params = { head: 2 ** 52 };
    relay.push(JSON.stringify({ jsonrpc: '2.0', method: 'message.timeline.changed', params }));
    await ann.messages.send(bob.id, { text: 'after the lie' });
  }
  expect(await texts(bob)).toEqual(['before the lie', 'after the lie']);
  expect((await bob.status()).position).toBeLessThan(100);
  expect((relay.asked.get('message.timeline.sync') ?? 0) - before).toBeLessThan(10);
});

describe('02 §4.1, §5: a refusal with what nothing bounds', () => {
  function refuseReading(error: object): void {
    relay.garble('message.timeline.sync', (text) => {
      const { jsonrpc, id } = JSON.parse(text);
      return JSON.stringify({ jsonrpc, id, error });
    });
  }

  test('02 §5: after a hint of 2^53 - 1 seconds the store is whole, and the account is followed', async () => {
    const { ann, bob } = await friends();
    refuseReading({
      ...{ code: errorCatalogue.rate_limited.rpc, message: '' },
      data: { retry_after: Number.MAX_SAFE_INTEGER },
    });
    let nextTryAt: number | undefined;
    for await (const event of bob.follow({ reader: 'app' })) {
      if (event.kind !== 'connection' || event.state !== 'disconnected') continue;
      ({ nextTryAt } = event);
      break;
    }
    expect(new Date(nextTryAt ?? Number.NaN).getTime()).toBeGreaterThan(0);
    relay.behave();
    for await (const event of bob.follow({ reader: 'app' })) {
      if (isConnected(event)) await ann.messages.send(bob.id, { text: 'later' });
      if (event.kind === 'message') break;
    }
    expect(await texts(bob)).toEqual(['later']);
  });

  test('02 §4.1: of a text and details of 400 KiB each, the store gets a few kilobytes', async () => {
    const { bob, store } = await friends();
    const long = '\u{1f4a9}'.repeat(100_000);
    const code = errorCatalogue.temporarily_unavailable.rpc;
    refuseReading({ code, message: long, data: { since: long } });
    for await (const event of bob.follow()) {
      if (event.kind !== 'connection' || event.state !== 'disconnected') continue;
      expect(event.error.message).toMatch(/^message\.timeline\.sync: temporarily_unavailable: /);
      // The last state of the connection is stored only while a program follows.
      const [last] = await store.read((tx) => tx.list('event-connection'));
      expect(last?.[1].length).toBeLessThan(4_096);
      break;
    }
    const rows = await store.read((tx) => tx.list('events'));
    expect(Math.max(...rows.map(([, text]) => text.length))).toBeLessThan(4_096);
  });
});

const kinds = (events: readonly AccountEvent[]) => events.map(({ kind }) => kind);

test('05 §13.4: a refusal ends no group', async () => {
  const at = await groups.setScene(relay);
  await groups.news(at);
  refuse('group.sync', 'not_found');
  const events = kinds(await at.bob.sync());
  expect(events).toContain('group-failed');
  expect(events).not.toContain('group-ended');
  expect((await at.bob.groups.get(at.id)).state).toEqual(at.state);
  await groups.isCaughtUp(relay, at);
});

test('05 §13.4: a membership that is denied without proof goes on when the host is honest', async () => {
  const at = await groups.setScene(relay);
  await groups.news(at);
  refuse('group.sync', 'forbidden');
  expect(kinds(await at.bob.sync())).toContain('group-ended');
  expect((await at.bob.groups.get(at.id)).state).toEqual(at.state);
  await groups.isCaughtUp(relay, at);
  await at.bob.groups.send(at.id, { text: 'still here' });
});

test('05 §13.21: a recovery request accepted without an end', async () => {
  const at = await groups.setScene(relay);
  relay.lie('group.member.recovery.submit', ({ expires_at: _, ...answer }) => answer);
  const requesting = at.bob.groups.requestRecovery(at.id);
  await expect(requesting).rejects.toMatchObject({ code: 'relay_misbehaviour' });
  relay.lie('group.member.recovery.submit', (answer) => ({ ...answer, expires_at: -1 }));
  const again = at.bob.groups.requestRecovery(at.id);
  await expect(again).rejects.toMatchObject({ reason: 'invalid_group_answer' });
  relay.behave();
  await at.bob.groups.requestRecovery(at.id);
  await groups.news(at);
  await groups.isCaughtUp(relay, at);
});

test.each(['not_found', 'forbidden'] as const)(
  '06 §8.11: a refusal ends no followed channel',
  async (code) => {
    const at = await channels.setScene(relay);
    await channels.news(at);
    refuse('channel.read', code);
    expect(kinds(await at.bob.sync())).toContain('channel-failed');
    expect(await at.bob.channels.list()).toHaveLength(1);
    await channels.isCaughtUp(relay, at);
  },
);
