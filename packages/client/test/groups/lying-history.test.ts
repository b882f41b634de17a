/**
 * Hosts that lie about a group's history. As chapter 05 requires, the client either stops and keeps
 * its verified state, or rejects the event and continues.
 */

import type { GroupEvent } from '@posthouse/protocol';
import {
  errorCatalogue,
  type GroupSyncPage,
  managementHash,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import {
  type Accomplice,
  another,
  bent,
  inventing,
  isCaughtUp,
  news,
  type PageLie,
  person,
  type Scene,
  setScene,
  signed,
  type,
} from './lying-group.ts';
import { admit, club, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

describe('05 §13.4: a page is refused whole for', () => {
  const lies: Record<string, PageLie> = {
    'events in another order': (page) => ({ ...page, events: page.events.toReversed() }),
    'a sequence twice': ({ events: [first, ...rest], ...page }) => ({
      ...page,
      events: [first, first, ...rest],
    }),
    'an event not after the position': ({ events, ...page }, { state }) => ({
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
    'an epoch of 2^53 - 1, after which no other could be read': ({ events, ...page }) => ({
      ...page,
      events: events.map((event) => ({ ...event, epoch: Number.MAX_SAFE_INTEGER })),
    }),
    'a missing certificate': (page) => ({ ...page, certificates: [] }),
    'a certificate twice': ({ certificates, ...page }) => ({
      ...page,
      certificates: [...certificates, ...certificates],
    }),
    'a certificate that the account did not sign': ({ certificates, ...page }) => ({
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
    'an invalid certificate without a reference': ({ certificates, ...page }, { outsider }) => ({
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
    const at = await setScene(relay);
    await news(at);
    relay.lie('group.sync', (page) => lie(page, at));
    const before = at.store.changes.length;
    await expect(at.bob.groups.sync(at.id)).rejects.toMatchObject({ code: 'relay_misbehaviour' });
    expect(at.store.changes.slice(before).filter((key) => key.startsWith('group'))).toEqual([]);
    await isCaughtUp(relay, at);
  });

  test('a valid certificate without a reference is tolerated', async () => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('group.sync', ({ certificates, ...page }) => ({
      ...page,
      certificates: [...certificates, at.outsider.certificate],
    }));
    await at.bob.groups.sync(at.id);
    await isCaughtUp(relay, at);
  });

  test('05 §12.8: a head below the read position', async () => {
    const at = await setScene(relay);
    relay.garble('group.sync', (text) => {
      const { id } = JSON.parse(text);
      const error = { code: errorCatalogue.bad_request.rpc, message: 'after' };
      return JSON.stringify({ jsonrpc: '2.0', id, error });
    });
    const failing = at.bob.groups.sync(at.id);
    await expect(failing).rejects.toMatchObject({ reason: 'group_rollback' });
    expect((await at.bob.groups.get(at.id)).state).toEqual(at.state);
  });

  test('a group whose host lies does not delay other groups or the timeline', async () => {
    const at = await setScene(relay);
    const other = await club(at.ann, [at.bob]);
    await news(at);
    await at.ann.groups.send(other, { text: 'elsewhere' });
    relay.lie('group.sync', (page) =>
      page.events.length === 3 ? { ...page, certificates: [] } : page,
    );
    const events = await at.bob.sync();
    expect(events).toContainEqual(
      expect.objectContaining({ kind: 'group-failed', groupId: at.id }),
    );
    expect(await groupTexts(at.bob, other)).toEqual(['elsewhere']);
    await isCaughtUp(relay, at);
  });
});

describe('05 §5.5: a management event blocks all later events:', () => {
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
    'an altered body': [
      'invalid_signature',
      ({ events, ...page }) => ({
        ...page,
        events: events.map((event, index) =>
          index === 0 ? { ...event, payload: { ...event.payload, name: 'Altered' } } : event,
        ),
      }),
    ],
    'a valid signature attributed to another member': [
      'invalid_signature',
      (page, at) => ({
        ...(inventing((it) => update(it, it.member))(page, at) as GroupSyncPage),
        events: [{ ...update(at, at.member), signer_device_id: at.owner.deviceId }],
      }),
    ],
    'an event was left out before it': [
      'state_conflict',
      inventing((at) => update(at, at.owner, { prev_hash: another })),
    ],
    'a member acts as the owner': ['forbidden', inventing((at) => update(at, at.member))],
    'an account that is not a member acts as the owner': [
      'forbidden',
      inventing((at) => update(at, at.outsider)),
    ],
    'a member admits an account': ['forbidden', inventing((at) => approval(at, at.member), raised)],
    'a member is admitted again': [
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
    'the owner is banned': [
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
    'a second creation': [
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
    'a rotation of the relay with additional members': [
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
    'an unknown type': [
      'invalid_state',
      inventing((at) => signed(at.owner, at, { $type: type('group.merge') })),
    ],
  };

  test.each(Object.entries(lies))('%s', async (_, [code, lie]) => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('group.sync', (page) => lie(page, at));
    expect(await at.bob.groups.sync(at.id)).toEqual([
      { kind: 'group-blocked', groupId: at.id, blocked: expect.objectContaining({ code }) },
    ]);
    const { state, blocked } = await at.bob.groups.get(at.id);
    expect(state).toEqual(at.state);
    expect(blocked).toMatchObject({ code, sequence: at.state.sequence + 1 });
    // One event only, and nothing is signed or sealed on unverified state.
    expect(await at.bob.groups.sync(at.id)).toEqual([]);
    const acting = at.bob.groups.send(at.id, { text: 'no' });
    await expect(acting).rejects.toMatchObject({ code: 'group_blocked' });
    await isCaughtUp(relay, at);
  });

  test('events before the invalid one on its page are applied', async () => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: [...events, { ...events[0], sequence: 99 }, { ...events[2], sequence: 100 }],
    }));
    await at.bob.groups.sync(at.id);
    expect((await at.bob.groups.get(at.id)).blocked?.sequence).toBe(99);
    expect(await groupTexts(at.bob, at.id)).toEqual(['one', 'two']);
    await isCaughtUp(relay, at);
  });

  test('05 §5.4: a creation event of another group, host or creator', async () => {
    const at = await setScene(relay);
    const { text } = await at.ann.groups.invite(at.id);
    for (const change of [{ nonce: 'A'.repeat(22) }, { group_id: `grp_${'A'.repeat(22)}` }]) {
      const [eve] = await person(relay);
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
        groupId: at.id,
      });
    }
  });

  test('a history without its creation is refused', async () => {
    const at = await setScene(relay);
    const { text } = await at.ann.groups.invite(at.id);
    const [eve] = await person(relay);
    await eve.groups.join(text);
    await at.ann.groups.approve(at.id, [eve.id]);
    relay.lie('group.sync', (page) => ({ ...page, events: [], has_more: false }));
    const failing = eve.groups.sync(at.id);
    await expect(failing).rejects.toMatchObject({ reason: 'invalid_group_page' });
  });
});

test('05 §5.4: the verified state follows from the signed events', async () => {
  const at = await setScene(relay);
  await at.ann.groups.update(at.id, { description: '' });
  await at.bob.groups.sync(at.id);
  const { events } = relay.honest.get('group.sync') as GroupSyncPage;
  const last = events.at(-1)?.payload as unknown as JsonObject;
  expect((await at.bob.groups.get(at.id)).state?.head).toBe(managementHash(network, last));
  await admit(at.ann, at.id, [(await person(relay))[0]]);
});
