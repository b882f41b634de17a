import { verifyDeviceCertificate, verifyProfile } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const method = 'profile.publish';
const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);

const publish = (params: unknown) => relay.call(method, params, { session: ann.session() });
const codeOf = (params: unknown, session = ann.session()) =>
  relay.codeOf(method, params, { session });
const resolve = () =>
  relay.call('profile.resolve', { account: ann.account }, { session: ann.session() });
const resolveCode = (account = ann.account) =>
  relay.codeOf('profile.resolve', { account }, { session: ann.session() });

describe('03 §7: profile.publish', () => {
  test('answers nothing, and the profile is served with the certificate that verified it', async () => {
    const profile = ann.profile({ nickname: 'Ann é😀', extra: [1] } as never);
    expect(await publish(profile)).toBeNull();
    const served = (await resolve()) as never as Record<string, never>;
    expect(served).toEqual({ profile, signer_certificate: ann.device().certificate });
    verifyDeviceCertificate(network, served.signer_certificate);
    verifyProfile(network, served.profile, served.signer_certificate as never);
  });

  test('a later one replaces, an earlier one is stale, an equal one replaces too', async () => {
    const now = relay.clock.now();
    await publish(ann.profile({ updated_at: now, nickname: 'one' }));
    expect(await codeOf(ann.profile({ updated_at: now - 1, nickname: 'old' }))).toBe('stale_state');
    expect(await resolve()).toMatchObject({ profile: { nickname: 'one' } });
    await publish(ann.profile({ updated_at: now, nickname: 'two' }));
    expect(await resolve()).toMatchObject({ profile: { nickname: 'two' } });
    await publish(ann.profile({ updated_at: now + 1, nickname: 'three' }));
    expect(await resolve()).toMatchObject({ profile: { nickname: 'three' } });
  });

  test('updated_at exactly at the tolerance passes, one second more replaces nothing', async () => {
    await publish(ann.profile());
    const before = await relay.dump();
    const limit = relay.clock.now() + relay.context.limits.futureTolerance;
    expect(await codeOf(ann.profile({ updated_at: limit + 1 }))).toBe('clock_skew');
    expect(await relay.dump()).toEqual(before);
    expect(await codeOf(ann.profile({ updated_at: limit }))).toBe('ok');
  });

  test('8,192 bytes pass, one more is refused and replaces nothing', async () => {
    const room = 8_192 - canonicalJson(ann.profile({ extra: '' } as never)).length;
    await publish(ann.profile({ extra: 'x'.repeat(room) } as never));
    const before = await relay.dump();
    const large = { ...ann.profile(), extra: 'x'.repeat(room + 1) };
    expect(await codeOf(large)).toBe('request_too_large');
    expect(await relay.dump()).toEqual(before);
  });

  test('structure and values', async () => {
    const profile = ann.profile();
    for (const wrong of [
      {},
      { ...profile, updated_at: '1' },
      { ...profile, public_discovery: 1 },
      { ...profile, nickname: 'x'.repeat(257) },
      { ...profile, nickname: ' ' },
      { ...profile, bio: '\t' },
      { ...profile, extra: { deep: null } },
      { ...profile, $context: network.context },
      { ...profile, $type: 'svc.profiles' },
    ]) {
      expect(await codeOf(wrong), canonicalJson(wrong as never).slice(0, 60)).toBe('bad_request');
    }
  });

  test('sessions: none, an account session, of another account, of another device', async () => {
    const profile = ann.profile();
    expect(await relay.codeOf(method, profile)).toBe('unauthorized');
    expect(await relay.codeOf(method, profile, { session: ann.accountSession() })).toBe(
      'forbidden',
    );
    const ben = await Person.register(relay, 'ben');
    expect(await codeOf(profile, ben.session())).toBe('forbidden');
    expect(await codeOf(profile, ann.session('laptop'))).toBe('invalid_signature');
  });

  test('a signature that does not verify', async () => {
    expect(await codeOf({ ...ann.profile(), nickname: 'Eve' })).toBe('invalid_signature');
  });

  test('a device that is not in the current state', async () => {
    const profile = ann.profile();
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(profile)).toBe('device_unknown');
  });

  test('a device removed, or renewed, while its signature is verified', async () => {
    await ann.addDevice('phone', { expiresAt: relay.clock.now() + 1_000 });
    const renewed = await ann.state();
    relay.meanwhile = () => ann.publishState(renewed);
    await publish(ann.profile());
    expect(await resolve()).toMatchObject({ signer_certificate: ann.device().certificate });
    const state = await ann.state({ devices: ['laptop'] });
    relay.meanwhile = () => ann.publishState(state);
    const before = await relay.rows('profiles');
    expect(await codeOf(ann.profile({ nickname: 'Eve' }))).toBe('device_unknown');
    expect(await relay.rows('profiles')).toEqual(before);
  });

  test('an account that is not at home here', async () => {
    const ben = new Person(relay, 'ben');
    await ben.addDevice('phone');
    await ben.publishState();
    expect(await codeOf(ben.profile(), ben.session())).toBe('target_not_local');
  });

  test('a later removal of the signing device does not remove the profile', async () => {
    await publish(ann.profile());
    const { certificate } = ann.device();
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    const session = ann.session('laptop');
    expect(
      await relay.call('profile.resolve', { account: ann.account }, { session }),
    ).toMatchObject({ signer_certificate: certificate });
  });

  test('if storage fails at any write, the previous profile stays', async () => {
    await publish(ann.profile({ nickname: 'before' }));
    const profile = ann.profile({ nickname: 'after' });
    expect(await throughEveryFault(relay, () => codeOf(profile))).toBe(1);
    expect(await resolve()).toMatchObject({ profile: { nickname: 'after' } });
  });
});

describe('03 §8: profile.resolve', () => {
  test('any device may read any profile, open or not', async () => {
    await publish(ann.profile({ public_discovery: false }));
    const ben = await Person.register(relay, 'ben');
    const session = ben.session();
    expect(await relay.codeOf('profile.resolve', { account: ann.account }, { session })).toBe('ok');
  });

  test('sessions: none, an account session', async () => {
    const params = { account: ann.account };
    expect(await relay.codeOf('profile.resolve', params)).toBe('unauthorized');
    const session = ann.accountSession();
    expect(await relay.codeOf('profile.resolve', params, { session })).toBe('forbidden');
  });

  test('no profile, no route, malformed accounts', async () => {
    expect(await resolveCode()).toBe('not_found');
    expect(await resolveCode(new Person(relay, 'unknown').account)).toBe('route_not_found');
    const broken = `${ann.account.slice(0, -1)}${ann.account.endsWith('1') ? '2' : '1'}`;
    for (const account of ['', broken, null, 7]) {
      expect(await resolveCode(account as string)).toBe('bad_request');
    }
  });
});
