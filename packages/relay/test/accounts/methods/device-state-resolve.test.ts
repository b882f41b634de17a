import {
  type Authorization,
  accountSigner,
  cosignRoute,
  type DeviceStateQuery,
  deriveRelayId,
  encodeBase64url,
  type FinalRoute,
} from '@posthouse/protocol';
import { describe, expect, test } from 'vitest';
import { Person } from '../../fixtures/person.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const method = 'device.state.resolve';
const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');

const codeOf = (params: unknown, session: Person['session'] | object = ben.session()) =>
  relay.codeOf(method, params, { session: session as never });
const other = accountSigner(network, new Uint8Array(32).fill(0x55));
/** Makes the route directory return a route of the person at another relay. */
async function moveAway(person: Person, times = 1): Promise<void> {
  relay.clock.advance(400 * 86_400);
  const relay_id = deriveRelayId(network, other.publicKey);
  const routes: FinalRoute[] = [];
  for (let count = 0; count < times; count += 1) {
    const expires_at = relay.clock.now() + 1_000 + count;
    const draft = await person.route({ relay_id, revision: 1e6, expires_at });
    routes.push(await cosignRoute(network, other, draft));
  }
  relay.routes = (account) => (account === person.account ? routes : []);
}

describe('03 §5.4: form A, the own state', () => {
  test('a device and the account key read the state as it was published', async () => {
    const state = await ann.state();
    await ann.publishState(state);
    const params = { account: ann.account };
    expect(await relay.call(method, params, { session: ann.session() })).toEqual(state);
    expect(await relay.call(method, params, { session: ann.accountSession() })).toEqual(state);
    const form = 'query';
    expect(await relay.call(method, params, { session: ann.session(), form })).toEqual(state);
  });

  test('a state without certificates is returned like any other', async () => {
    const state = await ann.state({ devices: [] });
    await ann.publishState(state);
    const options = { session: ann.accountSession() };
    expect(await relay.call(method, { account: ann.account }, options)).toEqual(state);
  });

  test('a removed device cannot read what came after it', async () => {
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf({ account: ann.account }, ann.session('phone'))).toBe('unauthorized');
    expect(await codeOf({ account: ann.account }, ann.session('laptop'))).toBe('ok');
  });

  test('home elsewhere, undetermined, in conflict', async () => {
    const eve = new Person(relay, 'eve');
    expect(await codeOf({ account: eve.account }, eve.accountSession())).toBe('target_not_local');
    await moveAway(ann);
    expect(await codeOf({ account: ann.account }, ann.accountSession())).toBe('route_stale');
    await moveAway(ben, 2);
    expect(await codeOf({ account: ben.account }, ben.accountSession())).toBe('invalid_state');
  });

  test('reads change nothing', async () => {
    const before = await relay.dump();
    await codeOf({ account: ann.account }, ann.session());
    await codeOf({ account: ann.account });
    expect(await relay.dump()).toEqual(before);
  });
});

describe('03 §5.5: form B, a public query', () => {
  test('public discovery opens the state, nothing else does', async () => {
    expect(await codeOf({ account: ann.account })).toBe('forbidden');
    await ann.publishProfile({ public_discovery: false });
    expect(await codeOf({ account: ann.account })).toBe('forbidden');
    await ann.publishProfile({ public_discovery: true });
    expect(await codeOf({ account: ann.account })).toBe('ok');
  });

  test('unknown members do not make a query signed', async () => {
    await ann.publishProfile();
    expect(await codeOf({ account: ann.account, extra: 1 })).toBe('ok');
  });

  test('an account session reads only its own state', async () => {
    await ann.publishProfile();
    expect(await codeOf({ account: ann.account }, ben.accountSession())).toBe('forbidden');
  });

  test('no session, malformed accounts', async () => {
    expect(await relay.codeOf(method, { account: ann.account })).toBe('unauthorized');
    for (const params of [{}, { account: null }, { account: '' }, { account: 'neo:1:x' }]) {
      expect(await codeOf(params)).toBe('bad_request');
    }
  });

  test('home unknown, elsewhere, in conflict', async () => {
    const eve = new Person(relay, 'eve');
    expect(await codeOf({ account: eve.account })).toBe('route_not_found');
    await moveAway(ann);
    expect(await codeOf({ account: ann.account })).toBe('temporarily_unavailable');
    await moveAway(eve, 2);
    expect(await codeOf({ account: eve.account })).toBe('invalid_state');
  });
});

describe('03 §5.6: form C, a signed query', () => {
  const query = (authorization: Authorization, facts?: Partial<DeviceStateQuery>) =>
    ben.stateQuery(ann.account, authorization, facts);

  test('an invite and a grant of the target open its state, discovery closed', async () => {
    const state = await ann.state();
    await ann.publishState(state);
    const options = { session: ben.session() };
    expect(await relay.call(method, query(ann.invite()), options)).toEqual(state);
    expect(await relay.call(method, query(ann.grant(ben)), options)).toEqual(state);
  });

  test('each signed-only member alone makes it a signed query that must be complete', async () => {
    await ann.publishProfile();
    const whole = query(ann.invite());
    for (const name of Object.keys(whole).filter((member) => member !== 'account')) {
      const alone = { account: ann.account, [name]: whole[name as keyof DeviceStateQuery] };
      expect(await codeOf(alone), name).toBe('bad_request');
      const { [name as keyof DeviceStateQuery]: _, ...without } = whole;
      expect(await codeOf(without), `without ${name}`).toBe('bad_request');
    }
  });

  test('an account session, the own account', async () => {
    expect(await codeOf(query(ann.invite()), ben.accountSession())).toBe('forbidden');
    const own = query(ben.invite(), { account: ben.account });
    expect(await codeOf(own)).toBe('forbidden');
    const grant = { ...ben.grant(ann), grantee: ben.account };
    expect(await codeOf({ ...own, authorization: grant })).toBe('forbidden');
    expect(await codeOf({ ...own, created_at: 'now' })).toBe('bad_request');
    expect(await codeOf({ ...own, $type: `${own.$type}.v2` })).toBe('bad_request');
  });

  test('structure: wrong types, null inside, $context, malformed credentials', async () => {
    const whole = query(ann.invite());
    const grant = ann.grant(ben);
    for (const wrong of [
      { ...whole, $type: 'svc.device.state.query' },
      { ...whole, created_at: '1' },
      { ...whole, extra: [null] },
      { ...whole, $context: network.context },
      { ...whole, authorization: { ...ann.invite(), $context: network.context } },
      { ...whole, authorization: { ...grant, signatures: {} } },
      { ...whole, authorization: { ...grant, signatures: [] } },
      { ...whole, authorization: { ...grant, extra: null } },
      { ...whole, authorization: { $type: 'svc.contact.consent' } },
      { ...whole, signer_certificate: { ...whole.signer_certificate, not_before: 0 } },
      {
        ...whole,
        signer_certificate: {
          ...whole.signer_certificate,
          account_public_key: ann.signer.publicKey,
        },
      },
    ]) {
      expect(await codeOf(wrong)).toBe('bad_request');
    }
  });

  test('a certificate over 4,096 bytes', async () => {
    const whole = query(ann.invite());
    const large = { ...whole.signer_certificate, extra: 'x'.repeat(4_096) };
    expect(await codeOf({ ...whole, signer_certificate: large })).toBe('request_too_large');
  });

  test('a bad query signature, a bad certificate', async () => {
    const whole = query(ann.invite());
    expect(await codeOf({ ...whole, created_at: whole.created_at - 1 })).toBe('invalid_signature');
    const forged = { ...whole.signer_certificate, extra: 1 };
    expect(await codeOf(query(ann.invite(), { signer_certificate: forged }))).toBe(
      'invalid_signature',
    );
  });

  test("a good certificate that is not the calling device's is forbidden, a bad one invalid", async () => {
    await ben.addDevice('laptop');
    const foreign = query(ann.invite(), { signer_certificate: ben.device('laptop').certificate });
    expect(await codeOf(foreign)).toBe('forbidden');
    expect(await codeOf(query(ann.invite()), ann.session())).toBe('forbidden');
    const { certificate } = ben.device('laptop');
    const forged = query(ann.invite(), {
      signer_certificate: { ...certificate, extra: 1 } as never,
    });
    expect(await codeOf(forged)).toBe('invalid_signature');
  });

  test('created_at exactly at either limit passes, one second more does not', async () => {
    const now = relay.clock.now();
    const { signedQueryAge, futureTolerance } = relay.context.limits;
    for (const [created_at, code] of [
      [now - signedQueryAge, 'ok'],
      [now - signedQueryAge - 1, 'clock_skew'],
      [now + futureTolerance, 'ok'],
      [now + futureTolerance + 1, 'clock_skew'],
      [Number.MIN_SAFE_INTEGER, 'clock_skew'],
      [Number.MAX_SAFE_INTEGER, 'clock_skew'],
    ] as const) {
      expect(await codeOf(query(ann.invite(), { created_at })), String(created_at)).toBe(code);
    }
  });

  test('a query too old to be fresh cannot be replayed', async () => {
    const whole = query(ann.invite());
    expect(await codeOf(whole)).toBe('ok');
    relay.clock.advance(relay.context.limits.signedQueryAge + 1);
    expect(await codeOf(whole)).toBe('clock_skew');
  });

  test('grants: other accounts, expired at this very second, no entry that counts', async () => {
    const now = relay.clock.now();
    const eve = await Person.register(relay, 'eve');
    expect(await codeOf(query(ann.grant(eve)))).toBe('forbidden');
    expect(await codeOf(query(eve.grant(ben)))).toBe('forbidden');
    expect(await codeOf(query(ann.grant(ben, { expires_at: now })))).toBe('forbidden');
    expect(await codeOf(query(ann.grant(ben, { expires_at: now + 1 })))).toBe('ok');
    const grant = ann.grant(ben);
    const wrong = encodeBase64url(new Uint8Array(64));
    const phone = ann.device('phone').deviceId;
    expect(await codeOf(query({ ...grant, signatures: { [phone]: wrong } }))).toBe('forbidden');
    const moved = { [ann.device('laptop').deviceId]: grant.signatures[phone] as string };
    expect(await codeOf(query({ ...grant, signatures: moved }))).toBe('forbidden');
    const both = { ...grant.signatures, [ann.device('laptop').deviceId]: wrong };
    expect(await codeOf(query({ ...grant, signatures: both }))).toBe('ok');
    expect(await codeOf(query({ ...grant, extra: 1 } as never))).toBe('forbidden');
  });

  test('one valid signature does not make another one over the same body valid', async () => {
    const wrong = encodeBase64url(new Uint8Array(64));
    const [grant, invite] = [ann.grant(ben), ann.invite()];
    expect(await codeOf(query(grant))).toBe('ok');
    const phone = ann.device('phone').deviceId;
    expect(await codeOf(query({ ...grant, signatures: { [phone]: wrong } }))).toBe('forbidden');
    expect(await codeOf(query(invite))).toBe('ok');
    expect(await codeOf(query({ ...invite, device_signature: wrong }))).toBe('invalid_signature');
  });

  test('a grant ends with the devices that signed it', async () => {
    const grant = ann.grant(ben, {}, 'phone');
    expect(await codeOf(query(grant))).toBe('ok');
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(query(grant))).toBe('forbidden');
  });

  test('invites: another account, expired, signer gone, bad signature', async () => {
    const now = relay.clock.now();
    const eve = await Person.register(relay, 'eve');
    expect(await codeOf(query(eve.invite()))).toBe('forbidden');
    expect(await codeOf(query(ann.invite(now)))).toBe('forbidden');
    expect(await codeOf(query(ann.invite(now + 1)))).toBe('ok');
    const invite = ann.invite();
    expect(await codeOf(query({ ...invite, expires_at: invite.expires_at + 1 }))).toBe(
      'invalid_signature',
    );
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(query(invite))).toBe('forbidden');
  });

  test('a failed credential never falls back to the public form', async () => {
    await ann.publishProfile({ public_discovery: true });
    expect(await codeOf({ account: ann.account })).toBe('ok');
    expect(await codeOf(query(ann.invite(relay.clock.now())))).toBe('forbidden');
  });

  test('home unknown, elsewhere', async () => {
    const eve = new Person(relay, 'eve');
    await eve.addDevice('phone');
    expect(await codeOf(query(eve.invite(), { account: eve.account }))).toBe('route_not_found');
    await moveAway(eve);
    await ben.addDevice('phone');
    const whole = query(eve.invite(), { account: eve.account });
    expect(await codeOf(whole)).toBe('temporarily_unavailable');
  });

  test('a change while the credential is verified is respected', async () => {
    const invite = ann.invite();
    const state = await ann.state({ devices: ['laptop'] });
    relay.afterProof = () => ann.publishState(state);
    expect(await codeOf(query(invite))).toBe('forbidden');
    const fresh = ann.invite(undefined, 'laptop');
    expect(await codeOf(query(fresh))).toBe('ok');
    const relayId = deriveRelayId(network, other.publicKey);
    relay.afterProof = async () => {
      await relay.context.storage.write(`account:${ann.account}`, (tx) =>
        tx.run('UPDATE account_routes SET relay_id = ? WHERE account = ?', relayId, ann.account),
      );
    };
    expect(await codeOf(query(fresh))).toBe('temporarily_unavailable');
  });

  test('the query form cannot carry it', async () => {
    const whole = query(ann.invite());
    const options = { session: ben.session(), form: 'query' } as const;
    expect(await relay.codeOf(method, whole, options)).toBe('bad_request');
  });
});
