/**
 * The client believes no host. Each test lets one lie about a group: where chapter 05 says so the
 * client stops and keeps what it had verified, and elsewhere it leaves the lie aside and goes on.
 */
import { nodeRandom } from '@posthouse/primitives-node';
import {
  type DeviceCertificate,
  type DeviceSigner,
  decodeBase64url,
  deriveDeviceId,
  deviceSigner,
  type GroupEvent,
  type GroupKeyPage,
  type GroupMessageEnvelope,
  type GroupProjection,
  type GroupSyncPage,
  type JsonObject,
  managementHash,
  sealGroupMessage,
  signAsDevice,
  signingDevice,
} from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, MemoryStore, type MisbehaviourReason } from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { WatchedStore } from '../support/watched-store.ts';
import { network } from '../support/world.ts';
import { admit, club, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** A device's real keys: a member that helps the host to lie. */
interface Accomplice {
  readonly account: string;
  readonly signer: DeviceSigner;
  readonly certificate: DeviceCertificate;
  readonly deviceId: string;
}

async function accompliceOf(account: Account, store: WatchedStore): Promise<Accomplice> {
  const [keys, certificate] = await store.read(async (tx) => [
    JSON.parse((await tx.get('device-keys', 'device')) ?? ''),
    JSON.parse((await tx.get('certificates', 'own')) ?? '') as DeviceCertificate,
  ]);
  const bytes = (text: string) => decodeBase64url(text) as Uint8Array;
  const signer = deviceSigner(network, {
    signingSeed: bytes(keys.signingSeed),
    encryptionKey: bytes(keys.encryptionKey),
  });
  const deviceId = deriveDeviceId(network, certificate);
  return { account: account.id, signer, certificate, deviceId };
}

/** Ann owns a group; Bob and Carl are members; Bob reads, and has read all there is. */
interface Scene {
  readonly id: string;
  readonly ann: Account;
  readonly bob: Account;
  readonly store: WatchedStore;
  readonly owner: Accomplice;
  readonly member: Accomplice;
  readonly outsider: Accomplice;
  /** Bob's verified state before the lies. */
  readonly state: GroupProjection;
}

async function person(): Promise<readonly [Account, WatchedStore]> {
  const store = new WatchedStore();
  return [await (await relay.world.client({ store })).setUp(), store];
}

async function scene(): Promise<Scene> {
  const [[ann, annStore], [bob, store], [carl, carlStore], [dora, doraStore]] = [
    await person(),
    await person(),
    await person(),
    await person(),
  ];
  const id = await club(ann, [bob, carl]);
  const { state } = await bob.groups.get(id);
  return {
    ...{ id, ann, bob, store, state: state as GroupProjection },
    owner: await accompliceOf(ann, annStore),
    member: await accompliceOf(carl, carlStore),
    outsider: await accompliceOf(dora, doraStore),
  };
}

/** Three events Bob has not read: the owner's change, and two messages. */
async function news({ ann, id }: Scene): Promise<void> {
  await ann.groups.update(id, { name: 'Society' });
  await ann.groups.send(id, { text: 'one' });
  await ann.groups.send(id, { text: 'two' });
}

/** What honest reading ends with. */
async function isCaughtUp({ bob, id }: Scene): Promise<void> {
  relay.behave();
  await bob.groups.sync(id);
  expect(await groupTexts(bob, id)).toEqual(['one', 'two']);
  expect((await bob.groups.get(id)).state?.name).toBe('Society');
  expect((await bob.groups.get(id)).blocked).toBeUndefined();
}

type PageLie = (page: GroupSyncPage, scene: Scene) => object;

/** A body of the chain, or another one, signed by whomever. */
function signed(by: Accomplice, scene: Scene, body: JsonObject): GroupEvent {
  const unsigned = { group_id: scene.id, prev_hash: scene.state.head, ...body };
  const payload = signAsDevice(network, unsigned, by.signer) as unknown as GroupEvent['payload'];
  const { epoch, sequence } = scene.state;
  const place = { sequence: sequence + 1, epoch, accepted_at: 1_700_000_000 };
  return { ...place, payload, signer_device_id: by.deviceId };
}

/** A page with one invented event, and the certificates of everybody. */
function inventing(
  make: (scene: Scene) => GroupEvent,
  ...also: ((event: GroupEvent) => object)[]
): PageLie {
  return (_, scene) => ({
    events: [also.reduce<object>((event, next) => next(event as GroupEvent), make(scene))],
    certificates: [scene.owner, scene.member, scene.outsider].map((each) => each.certificate),
    has_more: false,
  });
}

function bent(text: string): string {
  const at = Math.floor(text.length / 2);
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}

const type = (name: string) => network.type(name);
const another = `sha256:${'A'.repeat(43)}`;

describe('05 §13.4: pages that are refused whole', () => {
  const lies: Record<string, PageLie> = {
    'events in another order': (page) => ({ ...page, events: page.events.toReversed() }),
    'a sequence twice': ({ events: [first, ...rest], ...page }) => ({
      ...page,
      events: [first, first, ...rest],
    }),
    'an event not behind the position': ({ events, ...page }, { state }) => ({
      ...page,
      events: events.map((event, index) =>
        index === 0 ? { ...event, sequence: state.sequence } : event,
      ),
    }),
    'an empty page with more': (page) => ({ ...page, events: [], has_more: true }),
    'a negative epoch': ({ events, ...page }) => ({
      ...page,
      events: events.map((event) => ({ ...event, epoch: -1 })),
    }),
    'a certificate that is missing': (page) => ({ ...page, certificates: [] }),
    'a certificate twice': ({ certificates, ...page }) => ({
      ...page,
      certificates: [...certificates, ...certificates],
    }),
    'a certificate the account did not sign': ({ certificates, ...page }) => ({
      ...page,
      certificates: certificates.map((each) => ({
        ...each,
        account_signature: bent(each.account_signature),
      })),
    }),
    'a certificate of another account': ({ certificates, ...page }, { member }) => ({
      ...page,
      certificates: certificates.map((each) => ({ ...each, account: member.account })),
    }),
    'an invalid certificate nobody refers to': ({ certificates, ...page }, { outsider }) => ({
      ...page,
      certificates: [
        ...certificates,
        { ...outsider.certificate, device_signature: bent(outsider.certificate.device_signature) },
      ],
    }),
    '$context in an event': ({ events, ...page }) => ({
      ...page,
      events: events.map((event) => ({ ...event, $context: 'neo' })),
    }),
  };

  test.each(Object.entries(lies))('%s', async (_, lie) => {
    const at = await scene();
    await news(at);
    relay.lie('group.sync', (page) => lie(page, at));
    const before = at.store.changes.length;
    await expect(at.bob.groups.sync(at.id)).rejects.toMatchObject({ code: 'relay_misbehaviour' });
    expect(at.store.changes.slice(before).filter((key) => key.startsWith('group'))).toEqual([]);
    await isCaughtUp(at);
  });

  test('a valid certificate nobody refers to is tolerated', async () => {
    const at = await scene();
    await news(at);
    relay.lie('group.sync', ({ certificates, ...page }) => ({
      ...page,
      certificates: [...certificates, at.outsider.certificate],
    }));
    await at.bob.groups.sync(at.id);
    await isCaughtUp(at);
  });

  test('05 §12.8: a head below the position that was read', async () => {
    const at = await scene();
    relay.overHttp.clear();
    relay.garble('group.sync', (text) => {
      const { id } = JSON.parse(text);
      const error = { code: -32000, message: 'after' };
      return id === undefined ? text : JSON.stringify({ jsonrpc: '2.0', id, error });
    });
    const failing = at.bob.groups.sync(at.id);
    await expect(failing).rejects.toMatchObject({ code: 'relay_misbehaviour' });
  });

  test('one group that lies holds up neither the others nor the timeline', async () => {
    const at = await scene();
    const other = await club(at.ann, [at.bob]);
    await news(at);
    await at.ann.groups.send(other, { text: 'elsewhere' });
    relay.lie('group.sync', (page) =>
      page.events.length === 3 ? { ...page, certificates: [] } : page,
    );
    const events = await at.bob.sync();
    expect(events).toContainEqual(
      expect.objectContaining({ kind: 'group-failed', group_id: at.id }),
    );
    expect(await groupTexts(at.bob, other)).toEqual(['elsewhere']);
    await isCaughtUp(at);
  });
});

describe('05 §5.5: management events that block everything behind them', () => {
  const update = (scene: Scene, by: Accomplice, more: JsonObject = {}) =>
    signed(by, scene, { $type: type('group.update'), name: 'Forged', ...more });
  const approval = (scene: Scene, by: Accomplice, account = scene.outsider.account) =>
    signed(by, scene, {
      $type: type('group.application.approval'),
      members: [
        {
          account,
          member_encryption_public_key:
            scene.state.members.get(scene.owner.account)?.member_encryption_public_key ?? '',
        },
      ],
    });
  const raised = (event: GroupEvent) => ({ ...event, epoch: event.epoch + 1 });
  const rotated = { $type: type('group.key.rotated') };

  const lies: Record<string, readonly [code: string, lie: PageLie]> = {
    'a body that was altered': [
      'invalid_signature',
      ({ events, ...page }) => ({
        ...page,
        events: events.map((event, index) =>
          index === 0 ? { ...event, payload: { ...event.payload, name: 'Altered' } } : event,
        ),
      }),
    ],
    'a signature by another device than the one named': [
      'invalid_signature',
      inventing(
        (at) => update(at, at.owner),
        (event) => ({ ...event }),
        (event) => ({ ...event, payload: { ...event.payload, extra: 1 } }),
      ),
    ],
    'a valid signature named as another member’s': [
      'invalid_signature',
      (page, at) => ({
        ...(inventing((it) => update(it, it.member))(page, at) as GroupSyncPage),
        events: [{ ...update(at, at.member), signer_device_id: at.owner.deviceId }],
      }),
    ],
    'an event that was left out before it': [
      'state_conflict',
      inventing((at) => update(at, at.owner, { prev_hash: another })),
    ],
    'a member that acts as the owner': ['forbidden', inventing((at) => update(at, at.member))],
    'somebody outside that acts as the owner': [
      'forbidden',
      inventing((at) => update(at, at.outsider)),
    ],
    'a member that admits somebody': [
      'forbidden',
      inventing((at) => approval(at, at.member), raised),
    ],
    'a member that is admitted again': [
      'state_conflict',
      inventing((at) => approval(at, at.owner, at.member.account), raised),
    ],
    'an admission that keeps the epoch': ['bad_request', inventing((at) => approval(at, at.owner))],
    'an update that raises the epoch': [
      'bad_request',
      inventing((at) => update(at, at.owner), raised),
    ],
    'a leave in the name of another account': [
      'forbidden',
      inventing(
        (at) =>
          signed(at.member, at, { $type: type('group.member.leave'), account: at.owner.account }),
        raised,
      ),
    ],
    'an owner that is banned': [
      'forbidden',
      inventing(
        (at) =>
          signed(at.member, at, { $type: type('group.member.ban'), accounts: [at.owner.account] }),
        raised,
      ),
    ],
    'another group’s event': [
      'bad_request',
      inventing((at) => update(at, at.owner, { group_id: `grp_${'A'.repeat(22)}` })),
    ],
    'a creation once more': [
      'state_conflict',
      (page, at) => {
        const create = {
          $type: type('group.create'),
          group_id: at.id,
          nonce: 'A'.repeat(22),
          name: 'Again',
          member_capacity: 9,
          invite_policy: 'administrators',
          owner: {
            account: at.owner.account,
            member_encryption_public_key: at.state.members.get(at.owner.account)
              ?.member_encryption_public_key as string,
          },
          client_secret_commitment: another,
        };
        const payload = signAsDevice(network, create, at.owner.signer);
        const lie = inventing((it) => update(it, it.owner))(page, at) as GroupSyncPage;
        return { ...lie, events: lie.events.map((event) => ({ ...event, payload })) };
      },
    ],
    'a rotation of the relay that keeps the epoch': [
      'bad_request',
      (page, at) => {
        const lie = inventing((it) => update(it, it.owner))(page, at) as GroupSyncPage;
        const events = lie.events.map(({ signer_device_id: _, ...event }) => ({
          ...event,
          payload: rotated,
        }));
        return { ...lie, events };
      },
    ],
    'a rotation of the relay with more in it': [
      'bad_request',
      (page, at) => {
        const lie = inventing((it) => update(it, it.owner))(page, at) as GroupSyncPage;
        const events = lie.events.map(({ signer_device_id: _, ...event }) => ({
          ...event,
          epoch: event.epoch + 1,
          payload: { ...rotated, owner: at.outsider.account },
        }));
        return { ...lie, events };
      },
    ],
    'a type of the future': [
      'invalid_state',
      inventing((at) => signed(at.owner, at, { $type: type('group.merge') })),
    ],
  };

  test.each(Object.entries(lies))('%s', async (_, [code, lie]) => {
    const at = await scene();
    await news(at);
    relay.lie('group.sync', (page) => lie(page, at));
    expect(await at.bob.groups.sync(at.id)).toEqual([
      { kind: 'group-blocked', group_id: at.id, blocked: expect.objectContaining({ code }) },
    ]);
    const { state, blocked } = await at.bob.groups.get(at.id);
    expect(state).toEqual(at.state);
    expect(blocked).toMatchObject({ code, sequence: at.state.sequence + 1 });
    // Told once, and nothing is signed or sealed on what is not verified.
    expect(await at.bob.groups.sync(at.id)).toEqual([]);
    const acting = at.bob.groups.send(at.id, { text: 'no' });
    await expect(acting).rejects.toMatchObject({ code: 'group_blocked' });
    await isCaughtUp(at);
  });

  test('what came before the lie on its page counts', async () => {
    const at = await scene();
    await news(at);
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: [...events, { ...events[0], sequence: 99 }, { ...events[2], sequence: 100 }],
    }));
    await at.bob.groups.sync(at.id);
    expect((await at.bob.groups.get(at.id)).blocked?.sequence).toBe(99);
    expect(await groupTexts(at.bob, at.id)).toEqual(['one', 'two']);
    await isCaughtUp(at);
  });

  test('05 §5.4: a beginning that is another group’s, host’s or creator’s', async () => {
    const at = await scene();
    const { text } = await at.ann.groups.invite(at.id);
    for (const change of [{ nonce: 'A'.repeat(22) }, { group_id: `grp_${'A'.repeat(22)}` }]) {
      const [eve] = await person();
      await eve.groups.join(text);
      await at.ann.groups.approve(at.id, [eve.id]);
      relay.lie('group.sync', ({ events: [first, ...rest], ...page }) => {
        const payload = signAsDevice(network, { ...first.payload, ...change }, at.owner.signer);
        return { ...page, events: [{ ...first, payload }, ...rest] };
      });
      expect(await eve.groups.sync(at.id)).toMatchObject([
        { kind: 'group-blocked', blocked: { code: 'bad_request', sequence: 0 } },
      ]);
      expect((await eve.groups.get(at.id)).state).toBeUndefined();
      relay.behave();
      expect(await eve.groups.sync(at.id)).toContainEqual({
        kind: 'group-joined',
        group_id: at.id,
      });
    }
  });

  test('a history without its beginning is refused', async () => {
    const at = await scene();
    const { text } = await at.ann.groups.invite(at.id);
    const [eve] = await person();
    await eve.groups.join(text);
    await at.ann.groups.approve(at.id, [eve.id]);
    relay.lie('group.sync', (page) => ({ ...page, events: [], has_more: false }));
    const failing = eve.groups.sync(at.id);
    await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_page' });
  });
});

describe('05 §14.2: messages that are left aside while reading goes on', () => {
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
    'one of somebody outside': before((at) => seal(at, at.outsider)),
    'one that does not decrypt': before((at) => seal(at, at.member)),
    'one of an epoch that is not the present one': before((at) =>
      seal(at, at.member, { epoch: at.state.epoch + 1 }),
    ),
    'one with an outer epoch that is not its own': before((at) => ({
      ...seal(at, at.member),
      epoch: at.state.epoch + 1,
    })),
    'one for another group': before((at) =>
      seal(at, at.member, { group_id: `grp_${'A'.repeat(22)}` }),
    ),
    'one that breaks the rules of an envelope': before((at) =>
      seal(at, at.member, { created_at: -1 }),
    ),
    'one whose signature is altered': before((at) => {
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
    const at = await scene();
    await news(at);
    relay.lie('group.sync', (page) => lie(page, at));
    const events = await at.bob.groups.sync(at.id);
    expect(events.filter(({ kind }) => kind === 'group-rejected')).toMatchObject([
      { sequence: at.state.sequence + 1 },
    ]);
    expect(await groupTexts(at.bob, at.id)).toEqual(['one', 'two']);
    expect((await at.bob.groups.get(at.id)).state?.name).toBe('Society');
  });

  test('one message at two places counts once', async () => {
    const at = await scene();
    await news(at);
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: [...events, { ...events[1], sequence: 99 }],
    }));
    const events = await at.bob.groups.sync(at.id);
    expect(events.at(-1)).toMatchObject({ kind: 'group-rejected', sequence: 99 });
    expect(await groupTexts(at.bob, at.id)).toEqual(['one', 'two']);
  });

  test('05 §14.4: a nickname shown again later brings no older value back', async () => {
    const at = await scene();
    await at.ann.groups.setNickname(at.id, 'First');
    await at.ann.groups.setNickname(at.id, 'Second');
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: [...events, { ...events[0], sequence: 99 }],
    }));
    await at.bob.groups.sync(at.id);
    const members = await at.bob.groups.members(at.id);
    expect(members.find(({ account }) => account === at.ann.id)?.nickname).toBe('Second');
  });
});

describe('05 §7.5: key material that is not used', () => {
  type KeyLie = (page: GroupKeyPage) => object;
  const onLast =
    (change: (entry: GroupKeyPage['keys'][number]) => object): KeyLie =>
    ({ keys, ...page }) => ({ ...page, keys: [...keys.slice(0, -1), change(keys.at(-1)!)] });

  const lies: Record<string, KeyLie> = {
    'a relay box that was altered': onLast((entry) => ({
      ...entry,
      relay_secret_box: {
        ...entry.relay_secret_box,
        sealed_secret: bent(entry.relay_secret_box.sealed_secret),
      },
    })),
    'boxes that were swapped for each other': onLast((entry) => ({
      ...entry,
      client_secret_box: entry.relay_secret_box,
      relay_secret_box: entry.client_secret_box ?? entry.relay_secret_box,
    })),
    'the client box of before the rotation': onLast((entry) => ({
      ...entry,
      client_secret_box: oldBox,
    })),
  };
  let oldBox: object | undefined;

  test.each(Object.entries(lies))('%s', async (_, lie) => {
    const at = await scene();
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
    'without the client box its first entry owes': ({ keys: [first, ...rest], ...page }) => {
      const { client_secret_box: _, ...entry } = first!;
      return { ...page, keys: [entry, ...rest] };
    },
    'with an entry twice': ({ keys: [first], ...page }) => ({ ...page, keys: [first, first] }),
    'that is empty and promises more': (page) => ({ ...page, keys: [], has_more: true }),
  };

  test.each(Object.entries(pages))('a page %s is refused', async (_, lie) => {
    const at = await scene();
    await at.ann.groups.rotate(at.id);
    await at.ann.groups.send(at.id, { text: 'sealed anew' });
    relay.lie('group.key.sync', (page) => lie(page));
    const failing = at.bob.groups.sync(at.id);
    await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_keys' });
    relay.behave();
    await at.bob.groups.sync(at.id);
    expect(await groupTexts(at.bob, at.id)).toEqual(['sealed anew']);
  });

  test('of an epoch the chain does not have', async () => {
    const at = await scene();
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

describe('05 §13.15: before anything is sealed', () => {
  const refused = (reason: MisbehaviourReason) => ({ code: 'relay_misbehaviour', reason });

  /** Dora applies; what the owner is shown of it is a lie. */
  async function applied() {
    const at = await scene();
    const [eve] = await person();
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

  test('an invitation that its issuer did not sign, or that is for somebody else', async () => {
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

  test('05 §13.22: a recovery request with another key', async () => {
    const { ann, bob, id } = await scene();
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

  test('05 §12.7: a list that leads around in a circle', async () => {
    const { ann, id } = await applied();
    relay.lie('group.application.list', (page) => ({ ...page, next: 'again' }));
    relay.garble('group.application.list', (text) => text);
    const failing = ann.groups.applications(id);
    await expect(failing).rejects.toMatchObject({ code: 'relay_refused' });
  });
});

test('05 §13.3: what a host says of a group for display changes nothing that was verified', async () => {
  const at = await scene();
  const { text } = await at.ann.groups.invite(at.id);
  relay.lie('group.resolve', (state) => ({ ...state, name: 'A lie' }));
  expect(await at.bob.groups.preview(text)).toMatchObject({ name: 'A lie' });
  expect((await at.bob.groups.get(at.id)).state?.name).toBe('Club');
  relay.lie('group.resolve', (state) => ({ ...state, group_id: `grp_${'A'.repeat(22)}` }));
  const failing = at.bob.groups.preview(text);
  await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_state' });
});

test('05 §1.1: a relay that does not declare the module is not used for groups', async () => {
  await using other = await LyingRelay.start();
  const ann = await other.world.person({ store: new MemoryStore() });
  const founding = ann.groups.create({ name: 'Club' });
  await expect(founding).rejects.toMatchObject({ code: 'no_relay' });
  expect(other.asked.get('group.create')).toBeUndefined();
});

test('05 §5.4: what was verified is what was signed, event by event', async () => {
  const at = await scene();
  await at.ann.groups.update(at.id, { description: '' });
  await at.bob.groups.sync(at.id);
  const { events } = relay.honest.get('group.sync') as GroupSyncPage;
  const last = events.at(-1)?.payload as unknown as JsonObject;
  expect((await at.bob.groups.get(at.id)).state?.head).toBe(managementHash(network, last));
  await admit(at.ann, at.id, [(await person())[0]]);
});
