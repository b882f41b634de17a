/**
 * The client does not trust its relay. Each test lets a relay lie about one thing; the client must
 * say which rule was broken, and keep nothing of the answer.
 */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  type AccountDeviceState,
  accountSigner,
  signDeviceState,
  signRouteDraft,
  type TimelinePage,
} from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, type Client, MemoryStore, type MisbehaviourReason } from '../src/index.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, network, texts } from './support/relay-with-clients.ts';
import { WatchedStore } from './support/watched-store.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start();
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Caches whose content was verified on its own, and notes of what was tried. */
const harmless = /^(?:descriptors|refreshes)\//;

interface Watched {
  readonly account: Account;
  readonly store: WatchedStore;
  readonly client: Client;
}

async function watched(prefer: 'websocket' | 'http' = 'websocket'): Promise<Watched> {
  const store = new WatchedStore();
  const client = await relay.world.client({ store, prefer });
  return { account: await client.setUp(), store, client };
}

/** Runs work that must fail with a reason, and must store nothing. */
async function caught(
  store: WatchedStore,
  reason: MisbehaviourReason,
  work: () => Promise<unknown>,
): Promise<void> {
  const before = store.changes.length;
  await expect(work()).rejects.toMatchObject({ code: 'relay_misbehaviour', reason });
  expect(store.changes.slice(before).filter((key) => !harmless.test(key))).toEqual([]);
}

/** The same text with another character in the middle, still canonical base64url. */
function bent(text: string): string {
  const at = Math.floor(text.length / 2);
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}

describe('joining', () => {
  test('03 §11.2: a state without the device that joins, whose session the relay accepted', async () => {
    const { account } = await watched();
    const client = await relay.world.client();
    let before: unknown;
    relay.lie('device.state.resolve', (state) => {
      before ??= state;
      return before;
    });
    await account.devices.list();
    const approval = await account.devices.approve(await client.requestDevice(account.publicKey));
    const joining = client.completeDevice(approval, { accountPublicKey: account.publicKey });
    await expect(joining).rejects.toMatchObject({ code: 'device_removed' });
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
  });
});

describe('discovery and sessions', () => {
  test('01 §13.4: the descriptor of another relay', async () => {
    const store = new WatchedStore();
    const client = await relay.world.client();
    const stranger = await relay.world.client({ store });
    relay.lie('relay.descriptor', (descriptor) => ({
      ...descriptor,
      relay_id: `0x${'ab'.repeat(20)}`,
    }));
    const relayId = relay.world.relay.relayId;
    await caught(store, 'wrong_relay_id', () => stranger.setUp({ relayId }));
    await expect(client.setUp()).rejects.toMatchObject({ code: 'no_relay' });
  });

  test('01 §13.3: a descriptor with an address of another origin', async () => {
    const store = new WatchedStore();
    const client = await relay.world.client({ store });
    relay.lie('relay.descriptor', (descriptor) => ({
      ...descriptor,
      endpoints: ['https://elsewhere.example/svc/v1', ...descriptor.endpoints.slice(1)],
    }));
    const relayId = relay.world.relay.relayId;
    await caught(store, 'invalid_descriptor', () => client.setUp({ relayId }));
  });

  test('01 §13.3: a descriptor that has expired', async () => {
    const store = new WatchedStore();
    const client = await relay.world.client({ store });
    relay.lie('relay.descriptor', (descriptor) => ({ ...descriptor, expires_at: 1 }));
    const relayId = relay.world.relay.relayId;
    await caught(store, 'invalid_descriptor', () => client.setUp({ relayId }));
  });

  describe.each(['websocket', 'http'] as const)('over %s', (prefer) => {
    /** A device whose next call has to open a connection first. */
    async function disconnected(): Promise<Watched> {
      const { store, client } = await watched(prefer);
      await client[Symbol.asyncDispose]();
      const again = await relay.world.client({ store, prefer });
      return { account: await again.account(), store, client: again };
    }

    test('02 §11.2: relay.info of another relay', async () => {
      const { account, store } = await disconnected();
      relay.lie('relay.info', (info) => ({ ...info, relay_id: `0x${'cd'.repeat(20)}` }));
      await caught(store, 'wrong_relay_id', () => account.sync());
    });

    test('02 §10.1: a session of the wrong mode', async () => {
      const { account, store } = await disconnected();
      relay.lie('auth.device.verify', (session) => ({ ...session, mode: 'account' }));
      await caught(store, 'wrong_session_mode', () => account.sync());
    });

    test('02 §10.1: a session that is over when it begins', async () => {
      const { account, store } = await disconnected();
      relay.lie('auth.device.verify', (session) => ({ ...session, expires_at: 1 }));
      await caught(store, 'invalid_session', () => account.sync());
    });

    test('02 §10.1: a token with other than visible ASCII', async () => {
      const { account, store } = await disconnected();
      relay.lie('auth.device.verify', (session) => ({ ...session, token: 'a\r\nb' }));
      await caught(store, 'invalid_session', () => account.sync());
    });

    test('02 §9.2: a challenge that ends before it begins', async () => {
      const { account, store } = await disconnected();
      relay.lie('auth.challenge', (it) => ({ ...it, expires_at: it.created_at }));
      await caught(store, 'invalid_challenge', () => account.sync());
    });
  });

  test('02 §2.6: a redirect to another origin gets neither token nor request', async () => {
    const { account, store } = await watched('http');
    const tls = (name: string) =>
      readFileSync(join(relay.world.folder, 'relay', 'tls', name), 'utf8');
    let visits = 0;
    const other = createServer({ key: tls('server.key'), cert: tls('server.pem') }, (_, answer) => {
      visits += 1;
      answer.end('{}');
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    relay.overHttp.set('device.state.resolve', (answer) => {
      answer.writeHead(307, {
        location: `https://127.0.0.1:${port}/`,
        'content-type': 'text/html',
      });
      answer.end();
    });
    await caught(store, 'malformed_response', () => account.sync());
    expect(visits).toBe(0);
    other.close();
  });
});

describe('envelopes', () => {
  test.each([
    ['not JSON', '{'],
    ['a repeated member', '{"jsonrpc":"2.0","id":1,"id":1,"result":null}'],
    ['no JSON-RPC', '{"id":1,"result":null}'],
    ['a list', '[]'],
  ])('02 §3.5: %s', async (_, text) => {
    const { account, store } = await watched();
    await account.status();
    relay.garble('device.state.resolve', () => text);
    await caught(store, 'malformed_response', () => account.sync());
  });

  test('02 §3.5: result and error at once', async () => {
    const { account, store } = await watched();
    relay.garble('device.state.resolve', (text) =>
      JSON.stringify({ ...JSON.parse(text), error: { code: -32603, message: '' } }),
    );
    await caught(store, 'malformed_response', () => account.sync());
  });

  test('02 §3.7: the reply to a request that was not made', async () => {
    const { account, store } = await watched();
    relay.garble('device.state.resolve', (text) =>
      JSON.stringify({ ...JSON.parse(text), id: 4_711 }),
    );
    await caught(store, 'unknown_response_id', () => account.sync());
  });

  test('02 §3.3: a binary message', async () => {
    const { account, store } = await watched();
    relay.garble('device.state.resolve', (text) => {
      relay.push(new Uint8Array([1, 2, 3]));
      return text;
    });
    await caught(store, 'binary_message', () => account.sync());
  });

  test('02 §3.3: a message over 1 MiB', async () => {
    const { account, store } = await watched();
    relay.garble('device.state.resolve', (text) => text + ' '.repeat(1_048_577));
    await caught(store, 'oversized_response', () => account.sync());
  });

  test('02 §12.1: a notification without what it must say', async () => {
    const { account, store } = await watched();
    relay.garble('device.state.resolve', (text) => {
      relay.push('{"jsonrpc":"2.0","method":"message.timeline.changed","params":{"head":"9"}}');
      return text;
    });
    await caught(store, 'malformed_notification', () => account.sync());
  });

  test('02 §12.1: an unknown notification is no fault', async () => {
    const { account } = await watched();
    relay.garble('device.state.resolve', (text) => {
      relay.push('{"jsonrpc":"2.0","method":"tea.ready","params":{"cups":2}}');
      return text;
    });
    expect(await account.sync()).toEqual([]);
  });

  test('02 §3.8: unknown members of the envelope are no fault', async () => {
    const { account } = await watched();
    relay.garble('device.state.resolve', (text) =>
      JSON.stringify({ ...JSON.parse(text), trace: { depth: [1] } }),
    );
    expect(await account.sync()).toEqual([]);
  });

  test('02 §5: an invalid hint how long to wait is no hint of any kind', async () => {
    const { account, store } = await watched();
    relay.garble('device.state.resolve', (text) => {
      const { id } = JSON.parse(text);
      const error = { code: -32030, message: 'slow down', data: { retry_after: -1 } };
      return JSON.stringify({ jsonrpc: '2.0', id, error });
    });
    await caught(store, 'invalid_retry_after', () => account.sync());
  });

  test('02 §4: an error code of no catalogue', async () => {
    const { account, store } = await watched('http');
    relay.overHttp.set('device.state.resolve', (answer) => {
      answer.writeHead(400, { 'content-type': 'application/json' });
      answer.end('{"code":"out_of_oats","message":"the horses are hungry"}');
    });
    await caught(store, 'unknown_error_code', () => account.sync());
  });

  test('02 §2.3: a body in another charset', async () => {
    const { account, store } = await watched('http');
    relay.overHttp.set('device.state.resolve', (answer) => {
      answer.writeHead(200, { 'content-type': 'application/json; charset=iso-8859-1' });
      answer.end('{}');
    });
    await caught(store, 'malformed_response', () => account.sync());
  });

  test('02 §3.1: success without the object the method defines', async () => {
    const { account, store } = await watched('http');
    relay.overHttp.set('device.state.resolve', (answer) => {
      answer.writeHead(204).end();
    });
    await caught(store, 'malformed_result', () => account.sync());
  });
});

describe('set-up', () => {
  async function settingUp() {
    const store = new WatchedStore();
    const client = await relay.world.client({ store });
    const accountKey = nodeRandom(32);
    const setUp = () => client.setUp({ accountKey, relayId: relay.world.relay.relayId });
    return { store, client, setUp };
  }

  /** What a set-up under way may have kept: what it signed itself, and nothing answered. */
  async function refusedSetUp(
    client: Client,
    reason: MisbehaviourReason,
    setUp: () => Promise<unknown>,
  ): Promise<void> {
    await expect(setUp()).rejects.toMatchObject({ code: 'relay_misbehaviour', reason });
    await expect(client.account()).rejects.toMatchObject({ code: 'not_set_up' });
    relay.behave();
    await setUp();
    expect((await client.account()).deviceId).toMatch(/^dev_/);
  }

  test('03 §4: staged without its deadline', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('device.state.publish', () => ({ status: 'staged' }));
    await refusedSetUp(client, 'malformed_result', setUp);
  });

  test('03 §4: staged until a time that is over', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('device.state.publish', () => ({ status: 'staged', staged_until: 1 }));
    await refusedSetUp(client, 'invalid_staged_until', setUp);
  });

  test('03 §4: accepted by a relay that is not the home yet', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('device.state.publish', () => ({ status: 'accepted' }));
    await refusedSetUp(client, 'wrong_publish_status', setUp);
  });

  test('03 §9: a route that changed while it was co-signed', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('account.route.publish', (route) => ({
      ...route,
      expires_at: route.expires_at - 1,
    }));
    await refusedSetUp(client, 'route_altered', setUp);
  });

  test('03 §9: a route with an added member', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('account.route.publish', (route) => ({ ...route, note: 'hello' }));
    await refusedSetUp(client, 'route_altered', setUp);
  });

  test('03 §9: the draft, returned unsigned', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('account.route.publish', ({ relay_signature: _, ...draft }) => draft);
    await refusedSetUp(client, 'route_altered', setUp);
  });

  test('03 §9: a co-signature that does not verify', async () => {
    const { client, setUp } = await settingUp();
    relay.lie('account.route.publish', (route) => ({
      ...route,
      relay_signature: bent(route.relay_signature),
    }));
    await refusedSetUp(client, 'invalid_route', setUp);
  });

  test('03 §10: the route of another account', async () => {
    const { client, setUp } = await settingUp();
    await relay.world.person();
    const others = relay.honest.get('account.route.publish');
    relay.overHttp.set('account.route.resolve', (answer) => {
      answer.writeHead(200, { 'content-type': 'application/json' });
      answer.end(JSON.stringify(others));
    });
    await refusedSetUp(client, 'wrong_account', setUp);
  });
});

describe('device states', () => {
  test('03 §5.7: the state of another account', async () => {
    const { account, store } = await watched();
    const other = await watched();
    await other.account.sync();
    const others = relay.honest.get('device.state.resolve');
    relay.lie('device.state.resolve', () => others);
    await caught(store, 'wrong_account', () => account.sync());
  });

  test('01 §10: a swapped certificate', async () => {
    const { account, store } = await watched();
    const other = await watched();
    await other.account.sync();
    const [foreign] = relay.honest.get('device.state.resolve').certificates;
    relay.lie('device.state.resolve', (state) => ({ ...state, certificates: [foreign] }));
    await caught(store, 'invalid_device_state', () => account.sync());
  });

  test('01 §10: a device taken out of the state', async () => {
    const { account, store } = await watched();
    relay.lie('device.state.resolve', (state) => ({ ...state, certificates: [] }));
    await caught(store, 'invalid_device_state', () => account.sync());
  });

  test('01 §10.2: an older state than the known one', async () => {
    const { account, store } = await watched();
    await account.sync();
    const older = relay.honest.get('device.state.resolve');
    await account.devices.renew();
    await account.sync();
    relay.lie('device.state.resolve', () => older);
    await caught(store, 'lower_revision', () => account.sync());
  });

  test('01 §10.2: the known revision with other content', async () => {
    const accountKey = nodeRandom(32);
    const store = new WatchedStore();
    const client = await relay.world.client({ store });
    const account = await client.setUp({ accountKey });
    await account.sync();
    const { revision } = relay.honest.get('device.state.resolve') as AccountDeviceState;
    const signer = accountSigner(network, accountKey);
    const other = await signDeviceState(network, signer, { revision, certificates: [] });
    relay.lie('device.state.resolve', () => other);
    await caught(store, 'conflicting_revision', () => account.sync());
  });

  test('03 §5.7: a state without the device that signed the invite', async () => {
    const [inviter, { account: guest, store }] = [await watched(), await watched()];
    const { text: invite } = await inviter.account.contacts.invite();
    // A later state of the inviter in which that device is not any more, honestly signed.
    const { state, signer } = await withoutDevices(inviter);
    expect(signer.account).toBe(inviter.account.id);
    relay.lie('device.state.resolve', (answer) =>
      answer.account === state.account ? state : answer,
    );
    await caught(store, 'invite_signer_missing', () => guest.contacts.join(invite));
  });

  async function withoutDevices({ account, store }: Watched) {
    const kept = await store.read((tx) => tx.get('account-keys', 'account'));
    const key = Buffer.from(JSON.parse(kept as string), 'base64url');
    const signer = accountSigner(network, key);
    await account.sync();
    const { revision } = relay.honest.get('device.state.resolve') as AccountDeviceState;
    const facts = { revision: revision + 1, certificates: [] };
    return { signer, state: await signDeviceState(network, signer, facts) };
  }
});

describe('profiles', () => {
  async function published() {
    const [ann, bob] = [await watched(), await watched()];
    await ann.account.profiles.publish({ nickname: 'Ann', public_discovery: true });
    return { ann, bob };
  }

  test('03 §8: the profile of another account', async () => {
    const { ann, bob } = await published();
    await bob.account.profiles.publish({ nickname: 'Bob', public_discovery: true });
    await bob.account.profiles.resolve(bob.account.id);
    const bobs = relay.honest.get('profile.resolve');
    relay.lie('profile.resolve', () => bobs);
    await caught(bob.store, 'wrong_account', () => bob.account.profiles.resolve(ann.account.id));
  });

  test('03 §8: a profile with another name', async () => {
    const { ann, bob } = await published();
    relay.lie('profile.resolve', (answer) => ({
      ...answer,
      profile: { ...answer.profile, nickname: 'Mallory' },
    }));
    await caught(bob.store, 'invalid_profile', () => bob.account.profiles.resolve(ann.account.id));
  });

  test('03 §8: a certificate the account never signed', async () => {
    const { ann, bob } = await published();
    relay.lie('profile.resolve', (answer) => ({
      ...answer,
      signer_certificate: {
        ...answer.signer_certificate,
        account_signature: bent(answer.signer_certificate.account_signature),
      },
    }));
    await caught(bob.store, 'invalid_certificate', () =>
      bob.account.profiles.resolve(ann.account.id),
    );
  });
});

describe('routes', () => {
  test('03 §3.4: an older route than the known one', async () => {
    const { account, store } = await watched();
    const older = relay.honest.get('account.route.publish');
    const newer = { ...older, revision: older.revision + 1 };
    // As another device of the account would have published it: known here, gone from the relay.
    await store.write((tx) => tx.put('routes', account.id, JSON.stringify({ route: newer })));
    relay.overHttp.set('account.route.resolve', (answer) => {
      answer.writeHead(200, { 'content-type': 'application/json' });
      answer.end(JSON.stringify(older));
    });
    relay.garble('device.state.resolve', (text) => {
      const { id } = JSON.parse(text);
      return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32021, message: '' } });
    });
    const before = store.changes.length;
    await expect(account.sync()).rejects.toMatchObject({
      code: 'no_relay',
      cause: { reason: 'route_rollback' },
    });
    expect(store.changes.slice(before).filter((key) => !harmless.test(key))).toEqual([]);
  });

  test('03 §3.4: one revision with two contents: neither is used any more', async () => {
    const accountKey = nodeRandom(32);
    const store = new MemoryStore();
    const account = await (await relay.world.client({ store })).setUp({ accountKey });
    const { revision, relay_id, updated_at, expires_at } =
      relay.honest.get('account.route.publish');
    const draft = await signRouteDraft(network, accountSigner(network, accountKey), {
      revision,
      relay_id,
      updated_at,
      expires_at: expires_at - 1,
    });
    const other = await cosignedByRelay(draft);
    relay.overHttp.set('account.route.resolve', (answer) => {
      answer.writeHead(200, { 'content-type': 'application/json' });
      answer.end(JSON.stringify(other));
    });
    relay.garble('device.state.resolve', (text) => {
      const { id } = JSON.parse(text);
      return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32021, message: '' } });
    });
    await expect(account.sync()).rejects.toMatchObject({ cause: { reason: 'route_conflict' } });
    relay.behave();
    await expect(account.sync()).rejects.toMatchObject({ code: 'not_set_up' });
  });

  /** The relay itself takes part in the lie: with its own key. */
  async function cosignedByRelay(draft: Awaited<ReturnType<typeof signRouteDraft>>) {
    const { identity } = relay.world.relay.context;
    const message = network.bytes(draft, ['relay_signature']);
    return { ...draft, relay_signature: identity.sign(message) };
  }
});

describe('delivery', () => {
  test.each([
    ['failed without a reason', { status: 'failed' }],
    ['a reason without having failed', { error: { code: 'forbidden', message: '' } }],
  ])('04 §14.1: %s', async (_, lie) => {
    const [{ account }, bob] = [await watched(), await watched()];
    await befriend(account, bob.account);
    relay.lie('message.send', (status) => ({ ...status, ...lie }));
    const sending = account.messages.send(bob.account.id, { text: 'note' });
    await expect(sending).rejects.toMatchObject({ reason: 'invalid_delivery_status' });
    expect(await account.messages.list()).toMatchObject([{ status: 'sending' }]);
    relay.behave();
    await account.sync();
    expect(await account.messages.list()).toMatchObject([{ status: 'target_accepted' }]);
  });

  test('04 §12.3: a self-delivery that is not finished in the call', async () => {
    const { account } = await watched();
    relay.lie('message.send', (status) => ({ ...status, status: 'delivering' }));
    const sending = account.messages.send(account.id, { text: 'note' });
    await expect(sending).rejects.toMatchObject({ reason: 'invalid_delivery_status' });
    expect((await account.status()).outbox).toBe(1);
  });
});

describe.each(['websocket', 'http'] as const)('the timeline, over %s', (prefer) => {
  /** Bob, with two messages of Ann waiting at the relay. */
  async function waiting(): Promise<Watched> {
    const [ann, bob] = [await watched(), await watched(prefer)];
    await befriend(ann.account, bob.account);
    await ann.account.messages.send(bob.account.id, { text: 'one' });
    await ann.account.messages.send(bob.account.id, { text: 'two' });
    // Nothing else is left to be kept when the lies begin.
    await bob.account.devices.list();
    return bob;
  }

  /** Synchronizing is caught and leaves nothing; afterwards the honest pages bring everything. */
  async function caughtReading(
    reason: MisbehaviourReason,
    lie: (page: Parameters<Parameters<LyingRelay['lie']>[1]>[0]) => unknown,
  ): Promise<void> {
    const { account, store } = await waiting();
    const { position } = await account.status();
    relay.lie('message.timeline.sync', lie);
    const before = store.changes.length;
    await expect(account.sync()).rejects.toMatchObject({ code: 'relay_misbehaviour', reason });
    const kept = store.changes.slice(before).filter((key) => !harmless.test(key));
    // The own device state, read before, is honest.
    expect(kept.filter((key) => !key.startsWith('states/'))).toEqual([]);
    expect((await account.status()).position).toBe(position);
    expect(await texts(account)).toEqual([]);
    relay.behave();
    await account.sync();
    expect(await texts(account)).toEqual(['one', 'two']);
  }

  test('04 §18: records in falling order', async () => {
    await caughtReading('page_order', (page) => ({ ...page, items: page.items.toReversed() }));
  });

  test('04 §18: a sequence twice', async () => {
    await caughtReading('page_order', (page) => ({
      ...page,
      items: [page.items[0], page.items[0]],
    }));
  });

  test('04 §18: a record at or before the position asked for', async () => {
    await caughtReading('page_order', (page) => ({
      ...page,
      items: page.items.map((item: object) => ({ ...item, sequence: 0 })),
    }));
  });

  test('04 §18: more to come after an empty page', async () => {
    await caughtReading('page_without_end', (page) => ({
      ...page,
      items: [],
      certificates: [],
      has_more: true,
    }));
  });

  test('04 §18.1: a sender without a certificate', async () => {
    await caughtReading('page_certificates', (page) => ({ ...page, certificates: [] }));
  });

  test('04 §18.1: a swapped certificate', async () => {
    const { account } = await watched();
    await account.sync();
    const [foreign] = relay.honest.get('device.state.resolve').certificates;
    await caughtReading('page_certificates', (page) => ({ ...page, certificates: [foreign] }));
  });

  test('04 §18.1: a certificate with another key', async () => {
    await caughtReading('page_certificates', (page) => ({
      ...page,
      certificates: page.certificates.map((item: { signing_public_key: string }) => ({
        ...item,
        signing_public_key: bent(item.signing_public_key),
      })),
    }));
  });

  test('04 §18.1: a certificate twice', async () => {
    await caughtReading('page_certificates', (page) => ({
      ...page,
      certificates: [...page.certificates, ...page.certificates],
    }));
  });

  test('04 §18.1: an unused certificate with a broken signature', async () => {
    const { account } = await watched();
    await account.sync();
    const [foreign] = relay.honest.get('device.state.resolve').certificates;
    const broken = { ...foreign, account_signature: bent(foreign.account_signature) };
    await caughtReading('page_certificates', (page) => ({
      ...page,
      certificates: [...page.certificates, broken],
    }));
  });

  test('04 §18.2: an altered envelope', async () => {
    await caughtReading('altered_envelope', (page) => ({
      ...page,
      items: page.items.map((item: { envelope: { created_at: number } }) => ({
        ...item,
        envelope: { ...item.envelope, created_at: item.envelope.created_at + 1 },
      })),
    }));
  });

  test('04 §18.2: an envelope with an added member', async () => {
    await caughtReading('altered_envelope', (page) => ({
      ...page,
      items: page.items.map((item: { envelope: object }) => ({
        ...item,
        envelope: { ...item.envelope, priority: 1 },
      })),
    }));
  });

  test('04 §18.2: the key box of another device', async () => {
    await caughtReading('foreign_key_box', (page) => ({
      ...page,
      items: page.items.map((item: { key_box: object }) => ({
        ...item,
        key_box: { ...item.key_box, device_id: `dev_${'A'.repeat(22)}` },
      })),
    }));
  });

  test('04 §17.2: an envelope between other accounts', async () => {
    const [ann, bob] = [await watched(), await watched()];
    await befriend(ann.account, bob.account);
    await ann.account.messages.send(bob.account.id, { text: 'not for others' });
    await bob.account.sync();
    const foreign = relay.honest.get('message.timeline.sync');
    await caughtReading('foreign_envelope', (page) => ({
      ...page,
      items: [{ ...foreign.items[0], sequence: page.items[0].sequence }],
      certificates: foreign.certificates,
    }));
  });

  test('04 §5: a damaged key box costs its message and nothing else', async () => {
    const { account } = await waiting();
    relay.lie('message.timeline.sync', (page) => ({
      ...page,
      items: page.items.map((item: { key_box: { sealed_key: string } }, index: number) =>
        index > 0
          ? item
          : { ...item, key_box: { ...item.key_box, sealed_key: bent(item.key_box.sealed_key) } },
      ),
    }));
    const events = await account.sync();
    expect(events).toMatchObject([
      { kind: 'message-refused', message: { reason: 'not_decryptable' } },
      { kind: 'message' },
    ]);
    expect(await texts(account)).toEqual(['two']);
  });

  test('04 §17.4: a gap is reported once', async () => {
    const { account } = await waiting();
    relay.lie('message.timeline.sync', (page) => ({ ...page, has_retention_gap: true }));
    const events = await account.sync();
    expect(events.filter(({ kind }) => kind === 'timeline-gap')).toHaveLength(1);
    expect(await account.sync()).toEqual([]);
    expect((await account.status()).hasGap).toBe(true);
  });

  test('04 §18.2: a record served again is applied once', async () => {
    const { account } = await waiting();
    await account.sync();
    const first = relay.honest.get('message.timeline.sync');
    relay.lie('message.timeline.sync', (page) => ({
      ...page,
      items: first.items.map((item: { sequence: number }) => ({
        ...item,
        sequence: item.sequence + 1_000,
      })),
      certificates: first.certificates,
    }));
    await account.sync();
    expect(await texts(account)).toEqual(['one', 'two']);
  });
});

test('04 §18: the same records under ever higher sequences', async () => {
  const [ann, bob] = [await relay.world.person(), await relay.world.person({ prefer: 'http' })];
  await befriend(ann, bob);
  await ann.messages.send(bob.id, { text: 'again and again' });
  let first: TimelinePage | undefined;
  relay.lie('message.timeline.sync', (answer) => {
    first ??= answer;
    return answer;
  });
  await bob.sync();
  const page = first as TimelinePage;
  let [requests, pages] = [0, 0];
  relay.overHttp.set('message.timeline.sync', (response) => {
    requests += 1;
    // After each page, the record before it is compared.
    const isPage = requests % 2 === 1;
    if (isPage) pages += 1;
    const rise = 100 * (isPage ? pages : pages - 1);
    const items = page.items.map((item) => ({ ...item, sequence: item.sequence + rise }));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...page, items, has_more: pages < 10 }));
  });
  await expect(bob.sync()).rejects.toMatchObject({ reason: 'page_without_end' });
  expect(await texts(bob)).toEqual(['again and again']);
});
