import {
  type AccountRoute,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  encodeBase64url,
  type FinalRoute,
  verifyRoute,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { writeArrivals } from '../../../src/accounts/arrival-store.ts';
import { locate } from '../../../src/accounts/index.ts';
import { defaultLimits } from '../../../src/limits.ts';
import { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network, relayPublicKey } from '../../support/in-process-relay.ts';

const method = 'account.route.publish';
const relay = inProcessRelay();
let ann: Person;

beforeEach(async () => {
  ann = new Person(relay, 'ann');
  await ann.addDevice('phone');
});

const publish = (params: unknown) => relay.call(method, params, { session: ann.accountSession() });
const codeOf = (params: unknown) => relay.codeOf(method, params, { session: ann.accountSession() });
const resolve = () => relay.call('account.route.resolve', { account: ann.account });
const resolveCode = () => relay.codeOf('account.route.resolve', { account: ann.account });
const ownState = () =>
  relay.call('device.state.resolve', { account: ann.account }, { session: ann.accountSession() });
const ownStateCode = () =>
  relay.codeOf('device.state.resolve', { account: ann.account }, { session: ann.accountSession() });

/** Another relay of the network, as it appears in routes. */
const other = accountSigner(network, new Uint8Array(32).fill(0x55));
const otherId = deriveRelayId(network, other.publicKey);
async function elsewhere(facts: Partial<AccountRoute> = {}): Promise<FinalRoute> {
  return await cosignRoute(network, other, await ann.route({ relay_id: otherId, ...facts }));
}
/** Makes the route directory return these routes from now on, and lets the relay ask it. */
async function observe(...routes: FinalRoute[]): Promise<void> {
  relay.routes = () => routes;
  await locate(relay.context, ann.account, { now: relay.clock.now(), refresh: true });
}

describe('03 §9: account.route.publish', () => {
  test('the answer is the draft with a relay signature that verifies', async () => {
    await ann.publishState();
    const draft = await ann.route();
    const { relay_signature, ...rest } = (await publish(draft)) as unknown as FinalRoute;
    expect(rest).toEqual(draft);
    verifyRoute(network, { ...rest, relay_signature }, { relayPublicKey });
    expect(await resolve()).toEqual({ ...draft, relay_signature });
  });

  test('the staged state comes into force with the route, and the devices are notified', async () => {
    const state = await ann.state();
    await ann.publishState(state);
    await publish(await ann.route());
    expect(await ownState()).toEqual(state);
    const deviceIds = ann.deviceIds();
    expect(relay.takeNotices()).toEqual([
      { kind: 'device-state', account: ann.account, revision: state.revision, deviceIds },
    ]);
    expect(await relay.rows('staged_states')).toEqual([]);
  });

  test('unknown members of the draft are kept and co-signed', async () => {
    await ann.publishState();
    const draft = await ann.route({ extra: { deep: [1] } } as never);
    const route = (await publish(draft)) as unknown as FinalRoute;
    expect(route).toMatchObject({ extra: { deep: [1] } });
    verifyRoute(network, route, { relayPublicKey });
  });

  test('a route without any state is refused, and nothing is stored', async () => {
    const before = await relay.dump();
    expect(await codeOf(await ann.route())).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });

  test('a relay that the registry does not name as active signs no route', async () => {
    await ann.publishState();
    const draft = await ann.route();
    const before = await relay.dump();
    relay.isActive = false;
    expect(await codeOf(draft)).toBe('temporarily_unavailable');
    expect(await relay.dump()).toEqual(before);
    relay.isActive = true;
    expect(await codeOf(draft)).toBe('ok');
  });

  test('a staged state past its deadline backs no route', async () => {
    await ann.publishState();
    relay.clock.advance(relay.context.limits.stagingWindowOfUnknown);
    expect(await codeOf(await ann.route())).toBe('state_conflict');
    relay.clock.advance(-1);
    expect(await codeOf(await ann.route())).toBe('ok');
  });

  test('an unchanged retry answers the document signed before, byte for byte', async () => {
    await ann.publishState();
    const draft = await ann.route();
    const first = await publish(draft);
    const before = await relay.dump();
    relay.takeNotices();
    expect(await publish(draft)).toEqual(first);
    expect(await relay.dump()).toEqual(before);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('the same route with another account signature is co-signed as submitted', async () => {
    await ann.publishState();
    const draft = await ann.route();
    await publish(draft);
    const again = { ...draft, account_signature: highS(draft.account_signature) };
    const route = (await publish(again)) as unknown as FinalRoute;
    expect(route.account_signature).toBe(again.account_signature);
    verifyRoute(network, route, { relayPublicKey });
  });

  test('after a higher revision at the same relay the state stays in force', async () => {
    await ann.moveIn();
    const state = await ownState();
    relay.takeNotices();
    expect(await codeOf(await ann.route())).toBe('ok');
    expect(await ownState()).toEqual(state);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('a lower revision is stale, another content of the same one a conflict', async () => {
    await ann.publishState();
    await publish(await ann.route({ revision: 50 }));
    const before = await relay.dump();
    expect(await codeOf(await ann.route({ revision: 49 }))).toBe('stale_state');
    const rival = await ann.route({ revision: 50, expires_at: relay.clock.now() + 5 });
    expect(await codeOf(rival)).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });

  test('two different routes of one revision at once: one comes into force', async () => {
    await ann.publishState();
    const now = relay.clock.now();
    const rivals = [
      await ann.route({ revision: 50 }),
      await ann.route({ revision: 50, expires_at: now + 9 }),
    ];
    const codes = await Promise.all(rivals.map((route) => codeOf(route)));
    expect(codes.sort()).toEqual(['ok', 'state_conflict']);
  });

  test('revision 2^53-1 is the last', async () => {
    await ann.publishState();
    expect(await codeOf(await ann.route({ revision: Number.MAX_SAFE_INTEGER }))).toBe('ok');
    expect(await codeOf(await ann.route())).toBe('stale_state');
  });

  test('updated_at exactly at the tolerance passes, one second more does not', async () => {
    await ann.publishState();
    const limit = relay.clock.now() + relay.context.limits.futureTolerance;
    const before = await relay.dump();
    expect(await codeOf(await ann.route({ updated_at: limit + 1 }))).toBe('clock_skew');
    expect(await relay.dump()).toEqual(before);
    expect(await codeOf(await ann.route({ updated_at: limit }))).toBe('ok');
  });

  test('a draft that has expired already is refused', async () => {
    await ann.publishState();
    const now = relay.clock.now();
    const times = { updated_at: now - 10, expires_at: now };
    expect(await codeOf(await ann.route(times))).toBe('bad_request');
    expect(await codeOf(await ann.route({ ...times, expires_at: now + 1 }))).toBe('ok');
  });

  test('the final document may have 4,096 bytes, the relay signature included', async () => {
    await ann.publishState();
    const signed = ',"relay_signature":""'.length + 86;
    const empty = canonicalJson(await ann.route({ extra: '' } as never)).length;
    const room = 4_096 - signed - empty;
    const before = await relay.dump();
    const large = await ann.route({ extra: 'x'.repeat(room + 1) } as never);
    expect(await codeOf(large)).toBe('request_too_large');
    expect(await relay.dump()).toEqual(before);
    expect(await codeOf(await ann.route({ extra: 'x'.repeat(room) } as never))).toBe('ok');
  });

  test('sessions and accounts: none, a device session, another account', async () => {
    await ann.moveIn();
    const route = await ann.route();
    expect(await relay.codeOf(method, route)).toBe('unauthorized');
    expect(await relay.codeOf(method, route, { session: ann.session() })).toBe('forbidden');
    const ben = new Person(relay, 'ben');
    expect(await codeOf(await ben.route())).toBe('forbidden');
  });

  test('structure: a relay signature, another relay, another key, null, wrong times', async () => {
    await ann.publishState();
    const route = await ann.route();
    const ben = new Person(relay, 'ben');
    for (const wrong of [
      {},
      { ...route, relay_signature: encodeBase64url(new Uint8Array(64)) },
      await ann.route({ relay_id: otherId }),
      { ...route, account_public_key: ben.signer.publicKey },
      { ...route, updated_at: '1' },
      { ...route, expires_at: route.updated_at },
      { ...route, expires_at: route.updated_at + 315_360_001 },
      { ...route, extra: null },
      { ...route, $context: network.context },
    ]) {
      expect(await codeOf(wrong)).toBe('bad_request');
    }
  });

  test('an account signature that does not verify', async () => {
    await ann.publishState();
    const route = await ann.route();
    expect(await codeOf({ ...route, revision: route.revision + 1 })).toBe('invalid_signature');
  });

  test('if storage fails at any write, neither route nor state is stored', async () => {
    await ann.publishState();
    const route = await ann.route();
    expect(await throughEveryFault(relay, () => codeOf(route))).toBeGreaterThan(3);
    expect(await ownStateCode()).toBe('ok');
  });

  test('route and state are there after a restart', async () => {
    await ann.publishState();
    const route = await publish(await ann.route());
    const state = await ownState();
    await relay.restart();
    expect(await resolve()).toEqual(route);
    expect(await ownState()).toEqual(state);
  });
});

describe('02 §5: accounts of one address and day', () => {
  const first = '198.51.100.1';
  const { accountsPerAddress } = defaultLimits;
  /** An account with a staged state, and the answer to its route. */
  async function arrive(person: Person, address: string) {
    await person.publishState();
    const params = await person.route();
    return await relay.call(method, params, { session: person.accountSession(), address });
  }

  test('50 come, also over a restart; the next one and no other address waits for the day', async () => {
    await relay.restart({ accountsPerAddress });
    const people = [];
    for (let count = 0; count < 50; count += 1) people.push(new Person(relay, `person ${count}`));
    for (const person of people) await arrive(person, first);
    await relay.restart();
    await ann.publishState();
    const before = await relay.dump();
    const options = { session: ann.accountSession(), address: first };
    const tomorrow = 86_400 - (relay.clock.now() % 86_400);
    await expect(relay.call(method, await ann.route(), options)).rejects.toMatchObject({
      code: 'rate_limited',
      data: { retry_after: tomorrow },
    });
    expect(await relay.dump()).toEqual(before);
    // Accounts that are here already publish higher routes.
    await arrive(people[0] as Person, first);
    await arrive(new Person(relay, 'neighbour'), '198.51.100.2');
    relay.clock.advance(tomorrow);
    await arrive(ann, first);
    const next = await relay.runJob('accounts.arrivals');
    expect(next).toBe((Math.floor(relay.clock.now() / 86_400) + 1) * 86_400);
    const day = Math.floor(relay.clock.now() / 86_400);
    expect(await relay.rows('account_arrivals')).toEqual([{ address: first, day, accounts: 1 }]);
  });
});

test('02 §5: the job removes the counts of earlier days, however many there are', async () => {
  const yesterday = Math.floor(relay.clock.now() / 86_400) - 1;
  await relay.context.storage.write('arrivals', async (tx) => {
    for (let host = 0; host <= 400; host += 1) {
      await writeArrivals(tx, { address: `10.0.${host}`, day: yesterday, accounts: 1 });
    }
  });
  await relay.runJob('accounts.arrivals');
  expect(await relay.rows('account_arrivals')).toEqual([]);
});

describe('03 §12: leaving and coming back', () => {
  beforeEach(async () => {
    await ann.moveIn();
    await ann.publishProfile();
    relay.clock.advance(10);
  });

  test('a route of higher revision elsewhere ends the home here', async () => {
    // As far as this relay knows the account is at home here, so it does not ask the directory.
    const session = { session: ann.accountSession() };
    relay.clock.advance(315_360_000);
    await observe(await elsewhere());
    expect(await ownStateCode()).toBe('route_stale');
    const state = await ann.state();
    expect(await relay.call('device.state.publish', state, session)).toMatchObject({
      status: 'staged',
    });
  });

  test('the state stored before the move is not used; a staged one brings the account back', async () => {
    relay.clock.advance(315_360_000);
    await observe(await elsewhere());
    await ann.addDevice('phone');
    expect(await codeOf(await ann.route())).toBe('state_conflict');
    await ann.publishState();
    expect(await codeOf(await ann.route())).toBe('ok');
    expect(await ownStateCode()).toBe('ok');
  });

  test('a profile from before the move is not served as current', async () => {
    relay.clock.advance(315_360_000);
    await observe(await elsewhere());
    await ann.addDevice('phone');
    await ann.moveIn();
    const session = { session: ann.session() };
    expect(await relay.codeOf('profile.resolve', { account: ann.account }, session)).toBe(
      'not_found',
    );
  });

  test('a staged state below the stored one is stale, and an equal one is accepted', async () => {
    const kept = await ownState();
    relay.clock.advance(315_360_000);
    await observe(await elsewhere());
    const session = { session: ann.accountSession() };
    const low = await ann.state({ revision: 1 });
    expect(await relay.codeOf('device.state.publish', low, session)).toBe('stale_state');
    expect(await relay.call('device.state.publish', kept, session)).toMatchObject({
      status: 'staged',
    });
  });

  test('devices of the old state lose their sessions with the route (01 §17.5)', async () => {
    relay.clock.advance(315_360_000);
    await observe(await elsewhere());
    const gone = ann.device('phone').deviceId;
    await ann.addDevice('new');
    ann.devices.delete('phone');
    relay.takeNotices();
    await ann.moveIn();
    expect(relay.takeNotices()).toContainEqual({
      kind: 'revoked',
      account: ann.account,
      deviceIds: [gone],
    });
  });

  test('an expired route leaves no home; a new one restores it with state and profile', async () => {
    const state = await ownState();
    await publish(await ann.route({ expires_at: relay.clock.now() + 100 }));
    relay.clock.advance(99);
    expect(await ownStateCode()).toBe('ok');
    relay.clock.advance(1);
    expect(await ownStateCode()).toBe('target_not_local');
    expect(await resolveCode()).toBe('not_found');
    await publish(await ann.route());
    expect(await ownState()).toEqual(state);
    const session = { session: ann.session() };
    expect(await relay.codeOf('profile.resolve', { account: ann.account }, session)).toBe('ok');
  });
});

describe('03 §3.4, §10: known routes', () => {
  test('an unknown account has no route', async () => {
    expect(await resolveCode()).toBe('not_found');
  });

  test('a malformed or foreign account is refused', async () => {
    for (const account of ['', 'neo:1:x', ann.account.replace('860833102', '860833103')]) {
      expect(await relay.codeOf('account.route.resolve', { account })).toBe('bad_request');
    }
    expect(await relay.codeOf('account.route.resolve', {})).toBe('bad_request');
    expect(await relay.codeOf('account.route.resolve', { account: null })).toBe('bad_request');
  });

  test('a route that the directory returns is served and stored', async () => {
    const route = await elsewhere();
    await observe(route);
    expect(await resolve()).toEqual(route);
    relay.routes = () => [];
    await relay.restart();
    expect(await resolve()).toEqual(route);
    expect(await ownStateCode()).toBe('route_stale');
  });

  test('a route ahead of the clock, expired, or of another account is ignored', async () => {
    const now = relay.clock.now();
    const ben = new Person(relay, 'ben');
    const { futureTolerance } = relay.context.limits;
    await observe(
      await elsewhere({ updated_at: now + futureTolerance + 1 }),
      await elsewhere({ updated_at: now - 10, expires_at: now }),
      await cosignRoute(network, other, await ben.route({ relay_id: otherId })),
    );
    expect(await relay.rows('account_routes')).toEqual([]);
  });

  test('an expired highest route is not replaced by an older one', async () => {
    const now = relay.clock.now();
    await observe(await elsewhere({ revision: 9, expires_at: now + 10 }));
    relay.clock.advance(10);
    await observe(await elsewhere({ revision: 8 }));
    expect(await resolveCode()).toBe('not_found');
  });

  test('two contents of one revision conflict until a higher revision comes', async () => {
    const rivals = [
      await elsewhere({ revision: 9 }),
      await elsewhere({ revision: 9, expires_at: relay.clock.now() + 7 }),
    ];
    await observe(...rivals);
    expect(await resolveCode()).toBe('invalid_state');
    // Neither time nor the disappearance of one of the routes ends the conflict.
    relay.clock.advance(100);
    await observe(rivals[0] as FinalRoute);
    await relay.restart();
    expect(await resolveCode()).toBe('invalid_state');
    expect(await ownStateCode()).toBe('invalid_state');
    await observe(await elsewhere({ revision: 10 }));
    expect(await resolveCode()).toBe('ok');
  });

  test('a staged state and a route of higher revision end a conflict', async () => {
    await observe(
      await elsewhere({ revision: 9 }),
      await elsewhere({ revision: 9, expires_at: relay.clock.now() + 7 }),
    );
    const session = { session: ann.accountSession() };
    const state = await ann.state();
    expect(await relay.call('device.state.publish', state, session)).toMatchObject({
      status: 'staged',
    });
    expect(await codeOf(await ann.route({ revision: 8 }))).toBe('stale_state');
    expect(await codeOf(await ann.route({ revision: 9 }))).toBe('state_conflict');
    expect(await resolveCode()).toBe('invalid_state');
    expect(await codeOf(await ann.route({ revision: 10 }))).toBe('ok');
    expect(await ownState()).toEqual(state);
  });

  test('the same content with other signature bytes is no conflict', async () => {
    const route = await elsewhere({ revision: 9 });
    const again = { ...route, account_signature: highS(route.account_signature) };
    await observe(route, again);
    expect(await resolve()).toEqual(route);
  });
});

/** The other valid form of a P-256 signature: the same `r` with `n - s`. */
function highS(signature: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const bytes = Buffer.from(signature, 'base64url');
  const s = BigInt(`0x${bytes.subarray(32).toString('hex')}`);
  const flipped = (order - s).toString(16).padStart(64, '0');
  return Buffer.concat([bytes.subarray(0, 32), Buffer.from(flipped, 'hex')]).toString('base64url');
}
