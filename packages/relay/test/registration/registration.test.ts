/** 02 §9.4, 03 §4.3: which new accounts a relay takes. */
import {
  accountAuthInput,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  encodeBase64url,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import { observeRoute } from '../../src/accounts/index.ts';
import type { Verb } from '../../src/admin/verb.ts';
import { runVerb } from '../../src/admin/verb.ts';
import { findVerb } from '../../src/admin/verbs/index.ts';
import {
  allowAccount,
  deleteInvite,
  disallowAccount,
  insertInvite,
  newInviteCode,
} from '../../src/registration/index.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';
import { origin } from '../support/modules.ts';

const relay = inProcessRelay();
const resident = relay.person('resident');
const week = 604_800;
let ann: Person;
let ben: Person;

beforeEach(async () => {
  ann = new Person(relay, 'ann');
  ben = new Person(relay, 'ben');
  for (const person of [ann, ben]) await person.addDevice('phone');
});

/** Stores an invite and returns its code and ID. */
async function invite(facts: { uses?: number; expiresAt?: number } = {}) {
  const { id, code, digest } = newInviteCode(nodeRandom);
  const now = relay.clock.now();
  const stored = {
    ...{ id, digest, uses: 1, used: 0, note: '', createdAt: now, expiresAt: now + week },
    ...facts,
  };
  await relay.context.storage.write('registration', (tx) => insertInvite(tx, stored, 1_000));
  return { id, code };
}

/** Signs a person in with the account key, and returns whether the relay takes the code. */
async function signIn(person: Person, code?: unknown): Promise<boolean | undefined> {
  const { account, publicKey } = person.signer;
  const { nonce } = (await relay.call('auth.challenge', { account })) as { nonce: string };
  const input = accountAuthInput(network, {
    ...{ relay_id: relay.relayId, origin, account, account_public_key: publicKey, nonce },
  });
  const answer = await relay.call('auth.account.verify', {
    ...{ nonce, account_public_key: publicKey },
    account_signature: encodeBase64url(await person.signer.sign(input)),
    ...(code !== undefined && { invite_code: code }),
  });
  return (answer as { invite_accepted?: boolean }).invite_accepted;
}

const stateCode = async (person: Person, address?: string) =>
  relay.codeOf('device.state.publish', await person.state(), {
    session: person.accountSession(),
    ...(address !== undefined && { address }),
  });
const routeCode = async (person: Person) =>
  relay.codeOf('account.route.publish', await person.route(), { session: person.accountSession() });
const allow = (person: Person) =>
  relay.context.storage.write('registration', (tx) =>
    allowAccount(tx, { account: person.account, allowedAt: relay.clock.now() }, 1_000),
  );

/** Makes the account's home a relay elsewhere, as far as this one knows. */
async function isElsewhere(person: Person): Promise<void> {
  const other = accountSigner(network, new Uint8Array(32).fill(0x55));
  const draft = await person.route({ relay_id: deriveRelayId(network, other.publicKey) });
  await observeRoute(relay.context, await cosignRoute(network, other, draft));
}

test('03 §4.3: with registration open, any account comes', async () => {
  await ann.moveIn();
  expect(await signIn(ann, 'a code')).toBe(undefined);
});

describe.each(['invite', 'approval', 'list', 'closed'] as const)('03 §4.3: with %s', (mode) => {
  beforeEach(() => {
    relay.registration.mode = mode;
  });

  test('an account without a right signs in, and stages no state', async () => {
    expect(await signIn(ann)).toBe(undefined);
    expect(await stateCode(ann)).toBe('target_not_local');
    await isElsewhere(ben);
    expect(await stateCode(ben)).toBe('route_stale');
    expect(await relay.rows('staged_states')).toEqual([]);
  });

  test('a refusal by the state itself is told first', async () => {
    const state = await ann.state();
    const broken = { ...state, account_signature: encodeBase64url(new Uint8Array(64).fill(1)) };
    const session = ann.accountSession();
    expect(await relay.codeOf('device.state.publish', broken, { session })).toBe(
      'invalid_signature',
    );
  });

  test('an account that is here publishes states and routes, and comes back after it left', async () => {
    expect(await stateCode(resident)).toBe('ok');
    expect(await routeCode(resident)).toBe('ok');
    await isElsewhere(resident);
    await resident.moveIn();
    expect(await routeCode(resident)).toBe('ok');
  });

  test('an account that was let in comes once', async () => {
    await allow(ann);
    const expected = mode === 'closed' ? 'target_not_local' : 'ok';
    expect(await stateCode(ann)).toBe(expected);
    if (mode === 'closed') return;
    expect(await routeCode(ann)).toBe('ok');
    expect(await relay.rows('registration_allowed')).toEqual([]);
  });

  test('a state that was staged before needs a right when the route puts it into force', async () => {
    relay.registration.mode = 'open';
    await ann.publishState();
    relay.registration.mode = mode;
    const before = await relay.dump();
    expect(await routeCode(ann)).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });
});

describe('02 §9.4: invites', () => {
  beforeEach(() => {
    relay.registration.mode = 'invite';
  });

  test('a code lets one account in, however it is written', async () => {
    const { code } = await invite();
    expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{7}(?:-[0-9A-HJKMNP-TV-Z]{5,7}){3}$/);
    expect(await signIn(ann, ` ${code.toLowerCase().replaceAll('-', ' ')}`)).toBe(true);
    await ann.moveIn();
    expect(await signIn(ben, code)).toBe(false);
    expect(await stateCode(ben)).toBe('target_not_local');
    expect(await relay.rows('registration_invites')).toMatchObject([{ uses: 1, used: 1 }]);
    expect(await relay.rows('registration_claims')).toEqual([]);
  });

  test('no code is stored', async () => {
    const { code } = await invite();
    await signIn(ann, code);
    const stored = JSON.stringify(await relay.dump());
    expect(stored).not.toContain(code);
    expect(stored).not.toContain(code.replaceAll('-', ''));
  });

  test.each([
    ['another code', newInviteCode(nodeRandom).code],
    ['a text that is no code', 'please'],
    ['a long text', 'A'.repeat(1_000_000)],
    ['a number', 7],
  ])('%s is not taken, and sign-in succeeds', async (_, code) => {
    await invite();
    expect(await signIn(ann, code)).toBe(false);
    expect(await stateCode(ann)).toBe('target_not_local');
    expect(await relay.rows('registration_claims')).toEqual([]);
  });

  test('an invite that expired or was revoked lets no account in, also one that showed it before', async () => {
    const short = await invite({ expiresAt: relay.clock.now() + 100 });
    const other = await invite();
    expect([await signIn(ann, short.code), await signIn(ben, other.code)]).toEqual([true, true]);
    await ann.publishState();
    relay.clock.advance(99);
    expect(await stateCode(ann)).toBe('ok');
    relay.clock.advance(1);
    expect(await routeCode(ann)).toBe('state_conflict');
    expect(await stateCode(ann)).toBe('target_not_local');
    await relay.context.storage.write('registration', (tx) => deleteInvite(tx, other.id));
    expect(await stateCode(ben)).toBe('target_not_local');
    expect(await relay.rows('registration_claims')).toHaveLength(1);
  });

  test('of two accounts that share the last use, one gets in', async () => {
    const { code } = await invite();
    for (const person of [ann, ben]) {
      expect(await signIn(person, code)).toBe(true);
      await person.publishState();
    }
    const codes = await Promise.all([routeCode(ann), routeCode(ben)]);
    expect(codes.toSorted()).toEqual(['ok', 'state_conflict']);
    expect(await relay.rows('registration_invites')).toMatchObject([{ used: 1 }]);
    // The loser gets in with another invite.
    const loser = codes[0] === 'ok' ? ben : ann;
    await signIn(loser, (await invite()).code);
    await loser.moveIn();
  });

  test('an account that is let in uses no invite up', async () => {
    const { code } = await invite();
    await signIn(ann, code);
    await allow(ann);
    await ann.moveIn();
    expect(await relay.rows('registration_invites')).toMatchObject([{ used: 0 }]);
    expect(await relay.rows('registration_claims')).toEqual([]);
  });

  test('an account that is here takes no claim', async () => {
    const { code } = await invite();
    expect(await signIn(resident, code)).toBe(true);
    expect(await relay.rows('registration_claims')).toEqual([]);
  });

  test('above claimsOfInvite the oldest claim goes', async () => {
    await relay.restart({ claimsOfInvite: 2 });
    const { code } = await invite({ uses: 10 });
    const people = [ann, ben, new Person(relay, 'cem')];
    for (const person of people) {
      relay.clock.advance(1);
      await signIn(person, code);
    }
    const claims = await relay.rows('registration_claims');
    expect(claims.map(({ account }) => account).toSorted()).toEqual(
      [ben.account, people[2]?.account].toSorted(),
    );
  });

  test('the job removes an invite a month after its end', async () => {
    const { code } = await invite({ expiresAt: relay.clock.now() + 100 });
    await signIn(ann, code);
    const end = relay.clock.now() + 100 + 2_592_000;
    relay.clock.advance(100 + 2_592_000);
    expect(await relay.runJob('registration')).toBe(end + 1);
    expect(await relay.rows('registration_invites')).toHaveLength(1);
    relay.clock.advance(1);
    expect(await relay.runJob('registration')).toBe(undefined);
    expect(await relay.rows('registration_invites')).toEqual([]);
    expect(await relay.rows('registration_claims')).toEqual([]);
  });
});

describe('03 §4.3: approval', () => {
  beforeEach(() => {
    relay.registration.mode = 'approval';
  });

  test('a refused account is noted once, and comes after the operator let it in', async () => {
    const asked_at = relay.clock.now();
    expect(await stateCode(ann)).toBe('target_not_local');
    relay.clock.advance(10);
    expect(await stateCode(ann)).toBe('target_not_local');
    expect(await relay.rows('registration_requests')).toEqual([
      {
        ...{ account: ann.account, address: '127.0.0.1', asked_at },
        ...{ network: '127.0.0.0/24', place: 1 },
      },
    ]);
    await allow(ann);
    expect(await relay.rows('registration_requests')).toEqual([]);
    await ann.moveIn();
    await relay.context.storage.write('registration', (tx) => disallowAccount(tx, ann.account));
    expect(await stateCode(ann)).toBe('ok');
  });

  test('20 accounts of one address wait for a week; others have room', async () => {
    const { registrationRequestsPerAddress: limit, registrationRequestPeriod: wait } =
      relay.context.limits;
    for (let count = 0; count < limit; count += 1) {
      const person = new Person(relay, `person ${count}`);
      expect(await stateCode(person, '198.51.100.1')).toBe('target_not_local');
    }
    relay.clock.advance(100);
    const session = ann.accountSession();
    await expect(
      relay.call('device.state.publish', await ann.state(), { session, address: '198.51.100.1' }),
    ).rejects.toMatchObject({ code: 'rate_limited', data: { retry_after: wait - 100 } });
    expect(await stateCode(ann, '198.51.100.2')).toBe('target_not_local');
    relay.clock.advance(wait - 100);
    expect(await relay.runJob('registration')).toBe(relay.clock.now() + 100);
    expect(await relay.rows('registration_requests')).toHaveLength(1);
    expect(await stateCode(ben, '198.51.100.1')).toBe('target_not_local');
  });

  test('if the store of requests is full, the next is refused', async () => {
    await relay.restart({ registrationRequests: 1, registrationRequestsPerAddress: 1 });
    expect(await stateCode(ann, '198.51.100.1')).toBe('target_not_local');
    expect(await stateCode(ben, '198.51.100.2')).toBe('rate_limited');
    expect(await stateCode(ann, '198.51.100.2')).toBe('target_not_local');
  });

  test('one network cannot fill the store of requests: the newest of the one with most goes', async () => {
    await relay.restart({ registrationRequests: 4, registrationRequestsPerAddress: 1 });
    const waiting = async () =>
      (await relay.rows('registration_requests')).map((row) => row.address);
    const ask = async (name: string, address: string) =>
      await stateCode(new Person(relay, name), address);
    const many = [1, 2, 3, 4].map((number) => `2001:db8:1:${number}::/64`);
    for (const address of many) {
      relay.clock.advance(1);
      expect(await ask(address, address)).toBe('target_not_local');
    }
    expect(await ask('more', '2001:db8:1:5::/64')).toBe('rate_limited');
    const others = ['2001:db8:2:1::/64', '192.0.2.1'];
    for (const address of others) expect(await ask(address, address)).toBe('target_not_local');
    expect((await waiting()).toSorted()).toEqual([...many.slice(0, 2), ...others].toSorted());
    // No network has more than two now, and one has room for a first only.
    expect(await ask('again', '2001:db8:1:6::/64')).toBe('rate_limited');
    expect(await ask('second', '192.0.2.2')).toBe('rate_limited');
    expect(await ask('first', '198.51.100.1')).toBe('target_not_local');
    expect(await waiting()).toHaveLength(4);
  });

  test('account reject --address and block add address remove all requests of a network', async () => {
    const addresses = [
      '2001:db8:1:1::/64',
      '2001:db8:1:2::/64',
      '2001:db8:2:1::/64',
      '203.0.113.1',
    ];
    for (const address of addresses) {
      expect(await stateCode(new Person(relay, address), address)).toBe('target_not_local');
    }
    const { storage, clock, random, limits, log } = relay.context;
    const tools = { storage, clock, random, config: { limits, trustedProxies: [] } };
    const run = async (noun: string, name: string, params: JsonObject) =>
      await runVerb(findVerb(noun, name) as Verb, params, { tools, log, by: 'http' } as never);
    const reject = (params: JsonObject) => run('account', 'reject', params);
    for (const params of [
      {},
      { account: ann.account, address: '203.0.113.1' },
      { address: 'here' },
    ]) {
      await expect(reject(params)).rejects.toMatchObject({ code: 'bad_request' });
    }
    expect(await reject({ address: '198.51.100.0/24' })).toMatchObject({ rejected: 0 });
    expect(await relay.rows('registration_requests')).toHaveLength(4);
    expect(await reject({ address: '2001:db8:1::1/48' })).toEqual({
      ...{ address: '2001:db8:1::/48', rejected: 2 },
    });
    expect(await run('block', 'add', { address: '203.0.113.0/24' })).toMatchObject({ rejected: 1 });
    expect(await relay.rows('registration_requests')).toMatchObject([{ address: addresses[2] }]);
  });
});
