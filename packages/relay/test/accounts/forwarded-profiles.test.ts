import type { AccountProfile, DeviceCertificate } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { changedLeaves } from '../support/changed-leaves.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const method = 'profile.resolve';
const wired = wiredRelays(2);
const [here, home] = wired.relays as [InProcessRelay, InProcessRelay];
const ann = home.person('ann', ['phone', 'laptop']);
const ben = here.person('ben', ['phone', 'laptop']);
const ofAnn = { account: ann.account };

type Options = Parameters<InProcessRelay['call']>[2];
type Resolved = {
  readonly profile: AccountProfile & JsonObject;
  readonly signer_certificate: DeviceCertificate;
};
const resolve = async (options: Options = {}) =>
  (await here.call(method, ofAnn, { session: ben.session(), ...options })) as never as Resolved;
const codeOf = (params: unknown = ofAnn, options: Options = {}) =>
  here.codeOf(method, params, { session: ben.session(), ...options });
const answerWith = (value: JsonObject) => {
  wired.intercept = async () => ({ kind: 'result', value });
};

describe('07 §C7: the profile of an account at home elsewhere', () => {
  test('arrives as it was published, without public discovery and with unknown members', async () => {
    const profile = ann.profile({ public_discovery: false, nickname: 'é😀', extra: [1] } as never);
    await home.call('profile.publish', profile, { session: ann.session() });
    const signer_certificate = ann.device().certificate;
    expect(await resolve()).toEqual({ profile, signer_certificate });
    expect(await resolve({ form: 'query' })).toEqual({ profile, signer_certificate });
    expect(wired.calls[0]).toEqual({ from: here.relayId, to: home.relayId, method, params: ofAnn });
  });

  test('is served when the device that signed it was removed', async () => {
    await ann.publishProfile();
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf()).toBe('ok');
  });

  test('unknown members of the answer itself are handed on', async () => {
    await ann.publishProfile();
    const answer = { ...(await resolve()), extra: { a: [1] } };
    answerWith(answer as JsonObject);
    expect(await resolve()).toEqual(answer);
  });

  test('no profile, no route, an unreachable relay', async () => {
    expect(await codeOf()).toBe('not_found');
    const eve = new Person(home, 'eve');
    expect(await codeOf({ account: eve.account })).toBe('route_not_found');
    wired.cut(here, home);
    expect(await codeOf()).toBe('temporarily_unavailable');
  });

  test('removed devices and account sessions make no relay ask', async () => {
    expect(await codeOf(ofAnn, { session: ben.accountSession() })).toBe('forbidden');
    await ben.publishState(await ben.state({ devices: ['laptop'] }));
    expect(await codeOf()).toBe('unauthorized');
    expect(wired.calls).toEqual([]);
  });

  test('changed in any member, it is a bad gateway and nothing is stored', async () => {
    await ann.publishProfile({ nickname: 'Ann', bio: 'here' });
    const answer = (await resolve()) as JsonObject;
    const before = await here.dump();
    const changes = changedLeaves(answer);
    expect(changes.length).toBeGreaterThan(12);
    for (const { path, value } of changes) {
      answerWith(value);
      expect(await codeOf(), path).toBe('bad_gateway');
    }
    expect(await here.dump()).toEqual(before);
  });

  test('of another account, or with a certificate of another account, is a bad gateway', async () => {
    await ann.publishProfile();
    const { profile, signer_certificate } = await resolve();
    const tom = await home.register('tom');
    const toms = tom.device().certificate;
    for (const wrong of [
      { profile: tom.profile(), signer_certificate: toms },
      { profile: tom.profile({ account: ann.account }), signer_certificate: toms },
      { profile: ann.profile({ account: tom.account }), signer_certificate },
      { profile, signer_certificate: ann.device('laptop').certificate },
      { profile },
      { signer_certificate },
    ]) {
      answerWith(wrong as JsonObject);
      expect(await codeOf()).toBe('bad_gateway');
    }
  });
});

describe('07 §C7: the home relay', () => {
  const ask = async (params: JsonObject): Promise<string> => {
    const answer = await here.context.relayClient.call(home.relayId, method, params);
    return answer.kind === 'refused' ? answer.code : answer.kind;
  };

  test('refuses malformed accounts, and accounts that are not at home there', async () => {
    await ann.publishProfile();
    expect(await ask(ofAnn)).toBe('result');
    for (const params of [{}, { account: null }, { account: '' }, { account: 'neo:1:x' }]) {
      expect(await ask(params)).toBe('bad_request');
    }
    const eve = new Person(here, 'eve');
    expect(await ask({ account: eve.account })).toBe('target_not_local');
    expect(await ask({ account: ben.account })).toBe('route_stale');
  });

  test('no longer answers with the profile of an account that left', async () => {
    await ann.publishProfile();
    await codeOf();
    await home.context.storage.write(`account:${ann.account}`, (tx) =>
      tx.run('UPDATE account_routes SET relay_id = ? WHERE account = ?', here.relayId, ann.account),
    );
    expect(await ask(ofAnn)).toBe('route_stale');
    expect(await codeOf()).toBe('temporarily_unavailable');
  });
});
