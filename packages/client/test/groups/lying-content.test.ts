/**
 * Hosts that lie about messages, keys and records. As chapter 05 requires, these are rejected and
 * reading continues; nothing is sealed to a key that does not verify.
 */

import {
  type GroupKeyPage,
  type GroupMessageEnvelope,
  sealGroupMessage,
  signAsDevice,
  signingDevice,
} from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { MemoryStore, type MisbehaviourReason } from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import {
  type Accomplice,
  bent,
  news,
  type PageLie,
  person,
  type Scene,
  setScene,
  type,
} from './lying-group.ts';
import { groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

describe('05 §14.2: a message is rejected and reading continues:', () => {
  const seal = (at: Scene, by: Accomplice, change: Partial<GroupMessageEnvelope> = {}) => {
    const envelope = sealGroupMessage(network, {
      group_id: at.id,
      from: signingDevice(network, by.account, by.signer),
      epoch: at.state.epoch,
      applicationSecret: nodeRandom(32),
      createdAt: 1_700_000_000,
      content: { $type: type('group.message.content') },
      random: nodeRandom,
    });
    const { device_signature: _, ...unsigned } = { ...envelope, ...change };
    const payload = signAsDevice(network, unsigned, by.signer);
    return {
      sequence: at.state.sequence + 1,
      epoch: at.state.epoch,
      payload,
      accepted_at: 1_700_000_000,
      signer_device_id: by.deviceId,
    };
  };
  const before =
    (make: (at: Scene) => object): PageLie =>
    ({ events, certificates }, at) => ({
      events: [make(at), ...events.map((event) => ({ ...event, sequence: event.sequence + 1 }))],
      certificates: [...certificates, ...[at.member, at.outsider].map((each) => each.certificate)],
      has_more: false,
    });

  const lies: Record<string, PageLie> = {
    'one from an account that is not a member': before((at) => seal(at, at.outsider)),
    'one that does not decrypt': before((at) => seal(at, at.member)),
    'one of an epoch that is not the current one': before((at) =>
      seal(at, at.member, { epoch: at.state.epoch + 1 }),
    ),
    'one with a different outer epoch': before((at) => ({
      ...seal(at, at.member),
      epoch: at.state.epoch + 1,
    })),
    'one for another group': before((at) =>
      seal(at, at.member, { group_id: `grp_${'A'.repeat(22)}` }),
    ),
    'one with an invalid envelope': before((at) => seal(at, at.member, { created_at: -1 })),
    'one with an altered signature': before((at) => {
      const event = seal(at, at.member);
      return { ...event, payload: { ...event.payload, created_at: 5 } };
    }),
    'one without a signer': before((at) => {
      const { signer_device_id: _, ...event } = seal(at, at.member);
      return event;
    }),
    'one over its size': before((at) => {
      const filler = { filler: 'x'.repeat(262_144) } as object;
      return seal(at, at.member, filler);
    }),
  };

  test.each(Object.entries(lies))('%s', async (_, lie) => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('group.sync', (page) => lie(page, at));
    const events = await at.bob.groups.sync(at.id);
    expect(events.filter(({ kind }) => kind === 'group-message-rejected')).toMatchObject([
      { sequence: at.state.sequence + 1 },
    ]);
    expect(await groupTexts(at.bob, at.id)).toEqual(['one', 'two']);
    expect((await at.bob.groups.get(at.id)).state?.name).toBe('Society');
  });

  test('a message at two sequences counts once', async () => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: [...events, { ...events[1], sequence: 99 }],
    }));
    const events = await at.bob.groups.sync(at.id);
    expect(events.at(-1)).toMatchObject({ kind: 'group-message-rejected', sequence: 99 });
    expect(await groupTexts(at.bob, at.id)).toEqual(['one', 'two']);
  });

  test('05 §14.4: a repeated nickname update does not restore the older value', async () => {
    const at = await setScene(relay);
    await at.ann.groups.setNickname(at.id, 'First');
    await at.ann.groups.setNickname(at.id, 'Second');
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: [...events, { ...events[0], sequence: 99 }],
    }));
    await at.bob.groups.sync(at.id);
    const members = await at.bob.groups.listMembers(at.id);
    expect(members.find(({ account }) => account === at.ann.id)?.nickname).toBe('Second');
  });
});

describe('05 §7.5: key material is not used:', () => {
  type KeyLie = (page: GroupKeyPage) => object;
  const onLast =
    (change: (entry: GroupKeyPage['keys'][number]) => object): KeyLie =>
    ({ keys, ...page }) => ({ ...page, keys: [...keys.slice(0, -1), change(keys.at(-1)!)] });

  const lies: Record<string, KeyLie> = {
    'an altered relay box': onLast((entry) => ({
      ...entry,
      relay_secret_box: {
        ...entry.relay_secret_box,
        sealed_secret: bent(entry.relay_secret_box.sealed_secret),
      },
    })),
    'swapped boxes': onLast((entry) => ({
      ...entry,
      client_secret_box: entry.relay_secret_box,
      relay_secret_box: entry.client_secret_box ?? entry.relay_secret_box,
    })),
    'the client box from before the rotation': onLast((entry) => ({
      ...entry,
      client_secret_box: oldBox,
    })),
  };
  let oldBox: object | undefined;

  test.each(Object.entries(lies))('%s', async (_, lie) => {
    const at = await setScene(relay);
    relay.lie('group.key.sync', (page) => page);
    oldBox = relay.honest.get('group.key.sync').keys[0].client_secret_box;
    await at.ann.groups.rotate(at.id);
    await at.ann.groups.send(at.id, { text: 'sealed anew' });
    relay.lie('group.key.sync', (page) => lie(page));
    const events = await at.bob.groups.sync(at.id);
    expect(events).toContainEqual(
      expect.objectContaining({ kind: 'group-key-rejected', status: 'rejected' }),
    );
    expect(await groupTexts(at.bob, at.id)).toEqual([]);
    const sending = at.bob.groups.send(at.id, { text: 'no' });
    await expect(sending).rejects.toMatchObject({ code: 'group_key_missing' });
    relay.behave();
    await at.bob.groups.sync(at.id);
    expect(await groupTexts(at.bob, at.id)).toEqual(['sealed anew']);
    await at.bob.groups.send(at.id, { text: 'yes' });
  });

  const pages: Record<string, KeyLie> = {
    'without the client box required in its first entry': ({ keys: [first, ...rest], ...page }) => {
      const { client_secret_box: _, ...entry } = first!;
      return { ...page, keys: [entry, ...rest] };
    },
    'with an entry twice': ({ keys: [first], ...page }) => ({ ...page, keys: [first, first] }),
    'that is empty and has more': (page) => ({ ...page, keys: [], has_more: true }),
  };

  test.each(Object.entries(pages))('a page %s is refused', async (_, lie) => {
    const at = await setScene(relay);
    await at.ann.groups.rotate(at.id);
    await at.ann.groups.send(at.id, { text: 'sealed anew' });
    relay.lie('group.key.sync', (page) => lie(page));
    const failing = at.bob.groups.sync(at.id);
    await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_keys' });
    relay.behave();
    await at.bob.groups.sync(at.id);
    expect(await groupTexts(at.bob, at.id)).toEqual(['sealed anew']);
  });

  test('material of an epoch that the chain does not have', async () => {
    const at = await setScene(relay);
    await at.ann.groups.rotate(at.id);
    relay.lie('group.key.sync', ({ keys, ...page }) => ({
      ...page,
      keys: keys.map((entry: object) => ({ ...entry, epoch: 77 })),
    }));
    await at.bob.groups.sync(at.id);
    relay.behave();
    await at.bob.groups.sync(at.id);
    await at.bob.groups.send(at.id, { text: 'yes' });
  });
});

describe('05 §13.15: nothing is sealed for', () => {
  const refused = (reason: MisbehaviourReason) => ({ code: 'relay_misbehaviour', reason });

  /** Dora applies; what the owner is shown of it is a lie. */
  async function applied() {
    const at = await setScene(relay);
    const [eve] = await person(relay);
    const { text, invite } = await at.ann.groups.invite(at.id);
    await eve.groups.join(text);
    relay.asked.clear();
    return { ...at, eve, invite };
  }

  test.each([
    ['another key', { member_encryption_public_key: `${'A'.repeat(42)}E` }],
    ['another invitation', { invite_id: `inv_${'A'.repeat(22)}` }],
  ])('an application with %s', async (_, change) => {
    const { ann, eve, id } = await applied();
    relay.lie('group.application.list', ({ applications, ...page }) => ({
      ...page,
      applications: applications.map((item: { application: object }) => ({
        ...item,
        application: { ...item.application, ...change },
      })),
    }));
    const failing = ann.groups.approve(id, [eve.id]);
    await expect(failing).rejects.toMatchObject(refused('invalid_group_record'));
    expect(relay.asked.get('group.application.approve')).toBeUndefined();
  });

  test('an application with the certificate of another account', async () => {
    const { ann, eve, id, member } = await applied();
    relay.lie('group.application.list', ({ applications, ...page }) => ({
      ...page,
      applications: applications.map((item: object) => ({
        ...item,
        signer_certificate: member.certificate,
      })),
    }));
    const failing = ann.groups.approve(id, [eve.id]);
    await expect(failing).rejects.toMatchObject(refused('invalid_group_record'));
    expect(relay.asked.get('group.application.approve')).toBeUndefined();
  });

  test('an invitation that its issuer did not sign, or that is for another account', async () => {
    const { ann, eve, id, owner, member, invite } = await applied();
    relay.lie('group.invite.resolve', (answer) => ({
      ...answer,
      invite: { ...answer.invite, max_uses: 9 },
    }));
    const failing = ann.groups.approve(id, [eve.id]);
    await expect(failing).rejects.toMatchObject(refused('invalid_group_record'));
    const targeted = { ...invite, invitee: member.account };
    relay.lie('group.invite.resolve', (answer) => ({
      ...answer,
      invite: signAsDevice(network, targeted, owner.signer),
    }));
    const other = ann.groups.approve(id, [eve.id]);
    await expect(other).rejects.toMatchObject({ code: 'invalid_input' });
    expect(relay.asked.get('group.application.approve')).toBeUndefined();
  });

  test('05 §13.15: an expired invitation', async () => {
    const { ann, eve, id, owner, invite } = await applied();
    const { created_at: now } = invite;
    const over = { ...invite, created_at: now - 100, expires_at: now - 1 };
    relay.lie('group.invite.resolve', (answer) => ({
      ...answer,
      invite: signAsDevice(network, over, owner.signer),
    }));
    const failing = ann.groups.approve(id, [eve.id]);
    await expect(failing).rejects.toMatchObject({ code: 'invalid_input' });
    expect(relay.asked.get('group.application.approve')).toBeUndefined();
  });

  test('05 §13.22: a recovery request with another key', async () => {
    const { ann, bob, id } = await setScene(relay);
    await bob.groups.requestRecovery(id);
    relay.asked.clear();
    relay.lie('group.member.recovery.list', ({ requests, ...page }) => ({
      ...page,
      requests: requests.map((item: { request: object }) => ({
        ...item,
        request: { ...item.request, member_encryption_public_key: `${'A'.repeat(42)}E` },
      })),
    }));
    const failing = ann.groups.approveRecovery(id, [bob.id]);
    await expect(failing).rejects.toMatchObject(refused('invalid_group_record'));
    expect(relay.asked.get('group.member.recovery.approve')).toBeUndefined();
  });

  test('05 §4.8: a recovery request for the active key', async () => {
    const { ann, bob, id, member, state } = await setScene(relay);
    await bob.groups.requestRecovery(id);
    relay.asked.clear();
    const { account, signer, certificate } = member;
    const unsigned = {
      $type: type('group.member.recovery'),
      account,
      group_id: id,
      member_encryption_public_key: state.members.get(account)?.member_encryption_public_key ?? '',
    };
    const request = signAsDevice(network, unsigned, signer);
    relay.lie('group.member.recovery.list', ({ requests: [{ accepted_at, expires_at }] }) => ({
      requests: [{ request, signer_certificate: certificate, accepted_at, expires_at }],
    }));
    const failing = ann.groups.approveRecovery(id, [account]);
    await expect(failing).rejects.toMatchObject({ code: 'invalid_input' });
    expect(relay.asked.get('group.member.recovery.approve')).toBeUndefined();
  });
});

test.each([
  ['group.application.list', 'listApplications'],
  ['group.member.recovery.list', 'listRecoveries'],
  ['group.invite.list', 'listInvites'],
] as const)('05 §12.7: %s with the same records again and again', async (method, name) => {
  const at = await setScene(relay);
  const [eve] = await person(relay);
  await eve.groups.join((await at.ann.groups.invite(at.id)).text);
  await at.bob.groups.requestRecovery(at.id);
  let pages = 0;
  let page: object | undefined;
  relay.garble(method, (text) => {
    const { jsonrpc, id, result } = JSON.parse(text);
    pages += 1;
    page ??= result;
    return JSON.stringify({ jsonrpc, id, result: { ...page, next: `page-${pages}` } });
  });
  const failing = at.ann.groups[name](at.id);
  await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_record' });
  expect(pages).toBe(2);
});

test('05 §13.3: the host’s description of a group changes no verified state', async () => {
  const at = await setScene(relay);
  const { text } = await at.ann.groups.invite(at.id);
  relay.lie('group.resolve', (state) => ({ ...state, name: 'A lie' }));
  expect(await at.bob.groups.preview(text)).toMatchObject({ name: 'A lie' });
  expect((await at.bob.groups.get(at.id)).state?.name).toBe('Club');
  relay.lie('group.resolve', (state) => ({ ...state, group_id: `grp_${'A'.repeat(22)}` }));
  const failing = at.bob.groups.preview(text);
  await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_state' });
});

test('05 §1.1: a relay that does not declare the module is not used for groups', async () => {
  await using other = await LyingRelay.start({ host: { groups: false } });
  const ann = await other.world.person({ store: new MemoryStore() });
  const founding = ann.groups.create({ name: 'Club' });
  await expect(founding).rejects.toMatchObject({ code: 'no_relay' });
  expect(other.asked.get('group.create')).toBeUndefined();
  expect(await ann.groups.list()).toEqual([]);
  const { relayId } = other.world.relay;
  const adding = ann.groups.add({ groupId: `grp_${'A'.repeat(22)}`, relayId });
  await expect(adding).rejects.toMatchObject({ code: 'no_relay' });
  expect(other.asked.get('group.sync')).toBeUndefined();
});
