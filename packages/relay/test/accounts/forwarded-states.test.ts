import {
  type AccountDeviceState,
  type Authorization,
  type DeviceStateQuery,
  deviceStateSigningInput,
  encodeBase64url,
  type ProtocolError,
} from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { locate } from '../../src/accounts/home.ts';
import type { RelayAnswer } from '../../src/context.ts';
import { Person } from '../fixtures/person.ts';
import { changedLeaves } from '../support/changed-leaves.ts';
import { throughEveryFault } from '../support/faults.ts';
import { type InProcessRelay, network } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const method = 'device.state.resolve';
const wired = wiredRelays(3);
const [here, home, third] = wired.relays as [InProcessRelay, InProcessRelay, InProcessRelay];
const ann = home.person('ann', ['phone', 'laptop']);
const ben = here.person('ben', ['phone', 'laptop']);

type Options = Parameters<InProcessRelay['call']>[2];
const call = (params: unknown, options: Options = {}) =>
  here.call(method, params, { session: ben.session(), ...options });
const codeOf = (params: unknown, options: Options = {}) =>
  here.codeOf(method, params, { session: ben.session(), ...options });
const open = { account: ann.account };

const query = (authorization: Authorization, facts?: Partial<DeviceStateQuery>) =>
  ben.stateQuery(ann.account, authorization, facts);

/** Answers every request with this result instead of the home relay's. */
const answerWith = (value: JsonObject) => {
  wired.intercept = async () => ({ kind: 'result', value });
};
const seen = () => here.rows('seen_states');

describe('07 §C6: a public query of an account at home elsewhere', () => {
  test('the state arrives as it was published, unknown members included', async () => {
    await ann.publishProfile();
    const { account_signature: _, ...unsigned } = await ann.state();
    const extended = { ...unsigned, extra: { z: [1], a: 'é😀' } };
    const input = deviceStateSigningInput(network, extended);
    const signature = encodeBase64url(await ann.signer.sign(input));
    const state: AccountDeviceState = { ...extended, account_signature: signature };
    await ann.publishState(state);
    expect(await call(open)).toEqual(state);
    expect(await call(open, { form: 'query' })).toEqual(state);
  });

  test('the account is all that is sent, and the home relay alone is asked', async () => {
    await ann.publishProfile();
    await call({ ...open, extra: 1 });
    const sent = { from: here.relayId, to: home.relayId, method, params: open };
    expect(wired.calls).toEqual([sent]);
  });

  test('without public discovery it is forbidden', async () => {
    expect(await codeOf(open)).toBe('forbidden');
    await ann.publishProfile({ public_discovery: false });
    expect(await codeOf(open)).toBe('forbidden');
    expect(await seen()).toEqual([]);
  });

  test('no route, a conflict, an unreachable relay', async () => {
    const eve = new Person(home, 'eve');
    expect(await codeOf({ account: eve.account })).toBe('route_not_found');
    wired.cut(here, home);
    expect(await codeOf(open)).toBe('route_not_found');
    wired.heal();
    here.clock.advance(here.context.limits.routeNotFound);
    await codeOf(open);
    wired.cut(here, home);
    expect(await codeOf(open)).toBe('temporarily_unavailable');
    await here.context.storage.write(`account:${ann.account}`, (tx) =>
      tx.run('UPDATE account_routes SET conflict = 1 WHERE account = ?', ann.account),
    );
    expect(await codeOf(open)).toBe('invalid_state');
  });

  test('account sessions and removed devices make no relay ask', async () => {
    expect(await codeOf(open, { session: ben.accountSession() })).toBe('forbidden');
    await ben.publishState(await ben.state({ devices: ['laptop'] }));
    expect(await codeOf(open)).toBe('unauthorized');
    expect(wired.calls).toEqual([]);
  });

  test('03 §5.4: the own state is never asked for at another relay', async () => {
    const session = ann.accountSession();
    expect(await codeOf(open, { session })).toBe('route_stale');
    expect(wired.calls).toEqual([]);
  });
});

describe('07 §C6: a signed query about an account at home elsewhere', () => {
  test('an invite and a grant open the state; the request is sent unchanged', async () => {
    const state = await ann.state();
    await ann.publishState(state);
    for (const authorization of [ann.invite(), ann.grant(ben)]) {
      const sent = query(authorization, { extra: { b: 1, a: ['é'] } } as never);
      expect(await call(sent)).toEqual(state);
      expect(wired.calls.at(-1)?.params).toEqual(sent);
    }
  });

  test('what the source refuses is not sent', async () => {
    const invite = ann.invite();
    const whole = query(invite);
    const { device_signature: _, ...incomplete } = whole;
    const limits = here.context.limits;
    const now = here.clock.now();
    const tom = await here.register('tom');
    const cases: [unknown, string, Options?][] = [
      [incomplete, 'bad_request'],
      [whole, 'bad_request', { form: 'query' }],
      [{ ...whole, created_at: now - 1 }, 'invalid_signature'],
      [query(invite, { created_at: now - limits.signedQueryAge - 1 }), 'clock_skew'],
      [query(invite, { created_at: now + limits.futureTolerance + 1 }), 'clock_skew'],
      [whole, 'forbidden', { session: tom.session() }],
      [whole, 'forbidden', { session: ben.session('laptop') }],
      [whole, 'forbidden', { session: ben.accountSession() }],
      [query(invite, { account: ben.account }), 'forbidden'],
    ];
    for (const [params, code, options] of cases) expect(await codeOf(params, options)).toBe(code);
    expect(wired.calls).toEqual([]);
  });

  test('what the home relay refuses arrives with its code', async () => {
    await ann.publishProfile();
    const tom = new Person(home, 'tom');
    await tom.addDevice('phone');
    const now = here.clock.now();
    const invite = ann.invite();
    const cases: [Authorization, string][] = [
      [ann.invite(now), 'forbidden'],
      [tom.invite(), 'forbidden'],
      [{ ...invite, expires_at: invite.expires_at + 1 }, 'invalid_signature'],
      [ann.grant(ben, { expires_at: now }), 'forbidden'],
      [ann.grant(tom), 'forbidden'],
      [tom.grant(ben), 'forbidden'],
      [{ ...ann.grant(ben), extra: 1 } as never, 'forbidden'],
    ];
    for (const [authorization, code] of cases) {
      expect(await codeOf(query(authorization)), JSON.stringify(authorization)).toBe(code);
    }
    expect(wired.calls).toHaveLength(cases.length);
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(query(invite))).toBe('forbidden');
    expect(await codeOf(query(ann.grant(ben)))).toBe('forbidden');
    expect(await seen()).toEqual([]);
  });

  test('each relay judges the time by its own clock', async () => {
    home.clock.advance(home.context.limits.signedQueryAge);
    expect(await codeOf(query(ann.invite()))).toBe('ok');
    home.clock.advance(1);
    expect(await codeOf(query(ann.invite()))).toBe('clock_skew');
  });
});

describe('07 §C6: the home relay trusts no other relay', () => {
  const ask = async (params: JsonObject): Promise<string> => {
    const { relayClient } = here.context;
    const answer = await relayClient.call(home.relayId, method, params);
    return answer.kind === 'refused' ? answer.code : answer.kind;
  };

  test('each member of the signed form alone makes a signed query that must be complete', async () => {
    await ann.publishProfile();
    expect(await ask(open)).toBe('result');
    const whole: JsonObject = query(ann.invite());
    expect(await ask(whole)).toBe('result');
    for (const name of Object.keys(whole).filter((member) => member !== 'account')) {
      expect(await ask({ ...open, [name]: whole[name] as JsonValue }), name).toBe('bad_request');
      const { [name]: _, ...without } = whole;
      expect(await ask(without), name).toBe('bad_request');
    }
  });

  test('structure, key binding, signatures and time of a signed query', async () => {
    await ann.publishProfile();
    const whole = query(ann.invite());
    const certificate = whole.signer_certificate;
    const other = new Person(here, 'other');
    const foreign = (await other.addDevice('phone')).certificate;
    const now = home.clock.now();
    const unbound = { ...certificate, account_public_key: foreign.account_public_key };
    const forged = { ...certificate, expires_at: certificate.expires_at + 1 };
    const cases: [JsonObject, string][] = [
      [{ ...whole, account: 'neo:1:x' }, 'bad_request'],
      [{ ...whole, $type: 'svc.device.state' }, 'bad_request'],
      [{ ...whole, signer_certificate: unbound }, 'bad_request'],
      [{ ...whole, signer_certificate: foreign }, 'invalid_signature'],
      [query(ann.invite(), { signer_certificate: forged }), 'invalid_signature'],
      [{ ...whole, created_at: now - 1 }, 'invalid_signature'],
      [query(ann.invite(), { created_at: now - 301 }), 'clock_skew'],
      [query(ann.invite(), { created_at: now + 301 }), 'clock_skew'],
    ];
    for (const [params, code] of cases) expect(await ask(params), code).toBe(code);
  });

  test('a signed query of the own state is forbidden; a public one is answered', async () => {
    await ann.publishProfile();
    const own = ann.stateQuery(ann.account, ann.invite());
    expect(await ask(own)).toBe('forbidden');
    expect(await ask(open)).toBe('result');
  });

  test('an account at home elsewhere, nowhere, or with routes in conflict', async () => {
    const eve = new Person(here, 'eve');
    expect(await ask({ account: eve.account })).toBe('target_not_local');
    expect(await ask({ account: ben.account })).toBe('route_stale');
    await home.context.storage.write(`account:${ann.account}`, (tx) =>
      tx.run('UPDATE account_routes SET conflict = 1 WHERE account = ?', ann.account),
    );
    expect(await ask(open)).toBe('invalid_state');
    expect(await ask(query(ann.invite()))).toBe('invalid_state');
  });

  for (const [name, params] of [
    [method, () => open],
    [method, () => query(ann.invite())],
    ['profile.resolve', () => open],
  ] as const) {
    test(`${name}: an account that leaves during the query is not answered for`, async () => {
      await ann.publishProfile();
      const asked = params();
      await codeOf(asked);
      const { storage } = home.context;
      const { read } = storage;
      storage.read = async (work) => {
        const value = await read.call(storage, work as never);
        storage.read = read;
        await storage.write(`account:${ann.account}`, (tx) =>
          tx.run('UPDATE account_routes SET relay_id = ?', third.relayId),
        );
        return value as never;
      };
      const answer = await here.context.relayClient.call(home.relayId, name, asked);
      expect(answer).toMatchObject({ kind: 'refused', code: 'route_stale' });
    });
  }

  test('the requester needs no session and no known account', async () => {
    const stranger = new Person(third, 'stranger');
    await stranger.addDevice('phone');
    const asked = stranger.stateQuery(ann.account, ann.grant(stranger));
    expect(await ask(asked)).toBe('result');
  });

  test('two relays that name each other as the home ask once, and never in a circle', async () => {
    await codeOf(open);
    wired.calls.length = 0;
    await home.context.storage.write(`account:${ann.account}`, (tx) =>
      tx.run('UPDATE account_routes SET relay_id = ? WHERE account = ?', here.relayId, ann.account),
    );
    expect(await codeOf(open)).toBe('temporarily_unavailable');
    expect(wired.calls).toHaveLength(1);
  });
});

describe('03 §5.7: a state that the home relay answered', () => {
  test('changed in any member, it is a bad gateway and nothing is stored', async () => {
    await ann.publishProfile();
    const state = (await call(open)) as JsonObject;
    await ann.publishState();
    const before = await here.dump();
    const next = await ann.state();
    let changes = 0;
    for (const changed of changedLeaves(next as JsonObject)) {
      answerWith(changed.value);
      expect(await codeOf(open), changed.path).toBe('bad_gateway');
      changes += 1;
    }
    expect(changes).toBeGreaterThan(20);
    expect(await here.dump()).toEqual(before);
    answerWith(state);
    expect(await codeOf(open)).toBe('ok');
  });

  test('of another account, or of another type', async () => {
    const tom = await home.register('tom');
    answerWith(await tom.state());
    expect(await codeOf(open)).toBe('bad_gateway');
    answerWith(ann.profile());
    expect(await codeOf(open)).toBe('bad_gateway');
    expect(await seen()).toEqual([]);
  });

  test('lower than one seen before is refused, also after a restart; equal and higher are not', async () => {
    await ann.publishProfile();
    const old = await ann.state({ devices: ['phone', 'laptop'] });
    const next = await ann.state({ devices: ['laptop'] });
    await ann.publishState(next);
    expect(await call(open)).toEqual(next);
    answerWith(old);
    expect(await codeOf(open)).toBe('bad_gateway');
    await here.restart();
    expect(await codeOf(open)).toBe('bad_gateway');
    answerWith(next);
    expect(await call(open)).toEqual(next);
    const higher = await ann.state();
    answerWith(higher);
    expect(await call(open)).toEqual(higher);
    answerWith(next);
    expect(await codeOf(open)).toBe('bad_gateway');
  });

  test('of the same revision with other content is refused', async () => {
    await ann.publishProfile();
    const state = (await call(open)) as AccountDeviceState;
    answerWith(await ann.state({ revision: state.revision, devices: ['laptop'] }));
    expect(await codeOf(open)).toBe('bad_gateway');
    answerWith(state);
    expect(await codeOf(open)).toBe('ok');
  });

  test('one history for every form and every relay', async () => {
    const old = await ann.state();
    const next = await ann.state();
    await ann.publishState(next);
    expect(await call(query(ann.invite()))).toEqual(next);
    answerWith(old);
    expect(await codeOf(open)).toBe('bad_gateway');
    expect(await codeOf(query(ann.grant(ben)))).toBe('bad_gateway');
    const { account } = ann;
    expect(await seen()).toEqual([
      { account, revision: next.revision, digest: expect.any(String) },
    ]);
  });

  test('lower than the state stored here while the account was at home here is refused', async () => {
    const tom = await here.register('tom');
    const old = await tom.state();
    await tom.publishState();
    const session = tom.accountSession();
    const params = await tom.state();
    await home.call('device.state.publish', params, { session });
    const draft = await tom.route({ relay_id: home.relayId });
    await home.call('account.route.publish', draft, { session });
    await locate(here.context, tom.account, { now: here.clock.now(), refresh: true });
    answerWith(old);
    expect(await codeOf({ account: tom.account })).toBe('bad_gateway');
    answerWith(params);
    expect(await call({ account: tom.account })).toEqual(params);
  });

  test('to an invite it must hold the device that signed the invite', async () => {
    const invite = ann.invite();
    await ann.addDevice('tablet');
    answerWith(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(query(invite))).toBe('bad_gateway');
    expect(await seen()).toEqual([]);
    const tom = new Person(home, 'tom');
    await tom.addDevice('phone');
    answerWith(await ann.state());
    expect(await codeOf(query(tom.invite()))).toBe('bad_gateway');
    expect(await codeOf(query(ann.invite(here.clock.now())))).toBe('bad_gateway');
    expect(await codeOf(query({ ...invite, expires_at: invite.expires_at + 1 }))).toBe(
      'bad_gateway',
    );
    expect(await codeOf(query(invite))).toBe('ok');
  });

  test('of two answers under way, the lower one that comes last is refused', async () => {
    const [old, next] = [await ann.state(), await ann.state()];
    const late = Promise.withResolvers<RelayAnswer>();
    wired.intercept = () => late.promise;
    const first = codeOf(open);
    await expect.poll(() => wired.calls.length).toBe(1);
    answerWith(next);
    expect(await codeOf(open)).toBe('ok');
    late.resolve({ kind: 'result', value: old });
    expect(await first).toBe('bad_gateway');
  });

  test('of two answers stored at once, the lower one is refused', async () => {
    const [old, next] = [await ann.state(), await ann.state()];
    const { storage } = here.context;
    const { write } = storage;
    await codeOf(open);
    storage.write = async (aggregates, work) => {
      storage.write = write;
      answerWith(next);
      expect(await codeOf(open)).toBe('ok');
      return (await write.call(storage, aggregates, work as never)) as never;
    };
    answerWith(old);
    expect(await codeOf(open)).toBe('bad_gateway');
    expect(await seen()).toMatchObject([{ revision: next.revision }]);
  });

  test('correctly signed, but against the rules of states', async () => {
    const certificate = ann.device().certificate;
    const { account_signature: _, ...unsigned } = await ann.state();
    const twice = { ...unsigned, certificates: [certificate, certificate] };
    const signature = await ann.signer.sign(deviceStateSigningInput(network, twice));
    answerWith({ ...twice, account_signature: encodeBase64url(signature) });
    expect(await codeOf(open)).toBe('bad_gateway');
  });

  test('a storage failure hands nothing on, and leaves nothing', async () => {
    await codeOf(open);
    answerWith(await ann.state());
    expect(await throughEveryFault(here, () => codeOf(open))).toBeGreaterThan(0);
    expect(await seen()).toHaveLength(1);
  });
});

describe('07 §C9: limits of forwarded queries', () => {
  test('rate_limited of the home relay arrives with its seconds', async () => {
    wired.intercept = async () => ({
      kind: 'refused',
      code: 'rate_limited',
      message: 'slow down',
      retryAfter: 30,
    });
    const error = await call(open).catch((refusal: ProtocolError) => refusal);
    expect(error).toMatchObject({ code: 'rate_limited', data: { retry_after: 30 } });
  });

  test('an account fetches the first states of so many accounts in a day', async () => {
    await here.restart({ relayQueryNewAccounts: 1 });
    await ann.publishProfile();
    const tom = await home.register('tom');
    await tom.publishProfile();
    const ofTom = { account: tom.account };
    expect(await codeOf(open)).toBe('ok');
    expect(await codeOf(open)).toBe('ok');
    const error = await call(ofTom).catch((refusal: ProtocolError) => refusal);
    expect(error).toMatchObject({ code: 'rate_limited', data: { retry_after: 86_400 } });
    expect(await codeOf(ofTom, { session: ben.session('laptop') })).toBe('rate_limited');
    here.clock.advance(86_400);
    expect(await codeOf(ofTom)).toBe('ok');
  });
});
