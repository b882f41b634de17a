import {
  type AccountSigner,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  type FinalRoute,
} from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { locate } from '../../src/accounts/index.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay({ routeLookups: 3, routeLookupRate: 1, routeLookupBurst: 60 });
const [other, third] = [0x55, 0x56].map((byte) => {
  const signer = accountSigner(network, new Uint8Array(32).fill(byte));
  return { signer, relayId: deriveRelayId(network, signer.publicKey) };
}) as [OtherRelay, OtherRelay];
const otherId = other.relayId;
interface OtherRelay {
  readonly signer: AccountSigner;
  readonly relayId: string;
}
let ann: Person;
/** Accounts that the directory was asked for. */
let asked: string[];
let known: FinalRoute[];

beforeEach(() => {
  ann = new Person(relay, 'ann');
  asked = [];
  known = [];
  relay.routes = (account) => {
    asked.push(account);
    return known.filter((route) => route.account === account);
  };
});

const elsewhere = async (person: Person, { signer, relayId } = other) =>
  await cosignRoute(network, signer, await person.route({ relay_id: relayId }));
/** Looks up three accounts; resolves while all three wait for the directory. */
async function holdThree() {
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<FinalRoute[]>();
  let count = 0;
  relay.routes = () => {
    count += 1;
    if (count === 3) asked.resolve();
    return answered.promise;
  };
  const underWay = Promise.all(people(3).map((person) => homeOf(person)));
  await asked.promise;
  return { release: () => answered.resolve([]), underWay };
}
const resolve = (person = ann) =>
  relay.codeOf('account.route.resolve', { account: person.account });
const homeOf = (person: Person, refresh = false) =>
  locate(relay.context, person.account, { now: relay.clock.now(), refresh });
const people = (count: number) =>
  Array.from({ length: count }, (_, i) => new Person(relay, `${i}`));

describe('07 §B12: lookups of routes', () => {
  test('fifty calls about an account without a route cause one question in 30 seconds', async () => {
    for (let call = 0; call < 25; call += 1) expect(await resolve()).toBe('not_found');
    await Promise.all(Array.from({ length: 25 }, () => resolve()));
    expect(asked).toHaveLength(1);
    relay.clock.advance(30);
    known = [await elsewhere(ann)];
    expect(await resolve()).toBe('ok');
    expect(asked).toHaveLength(2);
  });

  test('fifty calls at once about an account cause one question', async () => {
    known = [await elsewhere(ann)];
    const codes = await Promise.all(Array.from({ length: 50 }, () => resolve()));
    expect(new Set(codes)).toEqual(new Set(['ok']));
    expect(asked).toHaveLength(1);
  });

  test('a route elsewhere serves for ten minutes and is refreshed by use', async () => {
    known = [await elsewhere(ann)];
    await resolve();
    relay.clock.advance(599);
    await resolve();
    expect(asked).toHaveLength(1);
    relay.clock.advance(1);
    known = [await elsewhere(ann, third)];
    expect(await homeOf(ann)).toEqual({ kind: 'elsewhere', relayId: third.relayId });
    expect(asked).toHaveLength(2);
  });

  test('a stored route serves if the network has none, and is looked up again soon', async () => {
    known = [await elsewhere(ann)];
    await resolve();
    known = [];
    relay.clock.advance(600);
    for (let call = 0; call < 3; call += 1) expect(await resolve()).toBe('ok');
    expect(asked).toHaveLength(2);
    relay.clock.advance(30);
    expect(await resolve()).toBe('ok');
    expect(asked).toHaveLength(3);
  });

  test('03 §5.4: an account whose route elsewhere was not sent for long is no new one for its key', async () => {
    const session = () => ({ session: ann.accountSession() });
    const own = () => relay.codeOf('device.state.resolve', { account: ann.account }, session());
    expect(await own()).toBe('target_not_local');
    relay.clock.advance(30);
    known = [await elsewhere(ann)];
    expect(await own()).toBe('route_stale');
    known = [];
    relay.clock.advance(relay.context.limits.dhtValueLife + 1);
    // Not given to others any more, and not forgotten.
    expect(await resolve()).toBe('not_found');
    expect(await own()).toBe('route_stale');
    const { expires_at: end } = await elsewhere(ann);
    relay.clock.advance(end - relay.clock.now());
    expect(await own()).toBe('target_not_local');
  });

  test('a refresh asks past every cache, also about an account at home here', async () => {
    await resolve();
    await homeOf(ann, true);
    expect(asked).toHaveLength(2);
    const bob = await relay.register('bob');
    asked = [];
    expect(await homeOf(bob)).toEqual({ kind: 'local' });
    expect(asked).toEqual([]);
    relay.clock.advance(1);
    known = [await elsewhere(bob)];
    expect(await homeOf(bob, true)).toEqual({ kind: 'elsewhere', relayId: otherId });
  });

  test('callers without a session can cause a limited number of lookups', async () => {
    const codes: string[] = [];
    for (const person of people(62)) codes.push(await resolve(person));
    expect(codes.slice(0, 60)).toEqual(Array.from({ length: 60 }, () => 'not_found'));
    expect(codes.slice(60)).toEqual(['rate_limited', 'rate_limited']);
    expect(asked).toHaveLength(60);
    relay.clock.advance(1);
    expect(await resolve(new Person(relay, 'late'))).toBe('not_found');
  });

  test('one account causes a limited number of lookups by queries', async () => {
    await relay.restart({ routeLookupRate: 1, routeLookupBurst: 5, accountBurst: 1_000 });
    const bob = await relay.register('bob', ['phone']);
    asked = [];
    const codes: string[] = [];
    for (const person of people(7)) {
      const params = { account: person.account };
      codes.push(await relay.codeOf('profile.resolve', params, { session: bob.session() }));
    }
    expect(codes.slice(5)).toEqual(['rate_limited', 'rate_limited']);
    expect(asked).toHaveLength(5);
  });

  test('one sender causes a limited number of lookups by messages', async () => {
    await relay.restart({ routeLookups: 9, routeLookupRate: 1, routeLookupBurst: 5 });
    const bob = await relay.register('bob', ['phone']);
    const eve = await relay.register('eve', ['phone']);
    asked = [];
    const send = async (from: Person, to: Person) => {
      await to.addDevice('phone');
      const message = from.message(to, { authorization: to.grant(from) });
      await relay.call('message.send', message, { session: from.session() });
    };
    for (const person of people(9)) await send(bob, person);
    await relay.runJob('messages.delivery');
    expect(asked).toHaveLength(5);
    await send(eve, ann);
    await relay.runJob('messages.delivery');
    expect(asked.slice(5)).toEqual([ann.account]);
    expect(await relay.rows('deliveries')).toHaveLength(10);
  });

  test('above the limit of lookups under way a call is refused with retry_after 1', async () => {
    const { release, underWay } = await holdThree();
    await expect(homeOf(ann)).rejects.toMatchObject({
      code: 'rate_limited',
      data: { retry_after: 1 },
    });
    release();
    expect(await underWay).toEqual(Array.from({ length: 3 }, () => ({ kind: 'unknown' })));
    expect(await homeOf(ann)).toEqual({ kind: 'unknown' });
  });

  test('callers without a session and other relays leave places for sessions and jobs', async () => {
    await relay.restart({ routeLookups: 4, routeLookupsWithoutSession: 2, routeLookupsEach: 2 });
    const answered = Promise.withResolvers<FinalRoute[]>();
    relay.routes = (account) => {
      asked.push(account);
      return answered.promise;
    };
    const strangers = people(6);
    const look = (index: number, asker?: string) =>
      locate(relay.context, (strangers[index] as Person).account, {
        ...{ now: relay.clock.now(), ...(asker && { asker }) },
      }).then(
        () => 'ok',
        (error: { code: string }) => error.code,
      );
    const first = [look(0, 'address 192.0.2.1'), look(1, 'relay 0x01')];
    await expect.poll(() => asked).toHaveLength(2);
    expect(await look(2, 'address 192.0.2.2')).toBe('rate_limited');
    expect(await look(2, 'relay 0x02')).toBe('rate_limited');
    const second = [look(2, 'account ann'), look(3)];
    await expect.poll(() => asked).toHaveLength(4);
    expect(await look(4)).toBe('rate_limited');
    answered.resolve([]);
    expect(await Promise.all([...first, ...second])).toEqual(['ok', 'ok', 'ok', 'ok']);
    expect(await look(4, 'address 192.0.2.1')).toBe('ok');
  });

  test('one account does not take the places of others', async () => {
    await relay.restart({ routeLookups: 4, routeLookupsWithoutSession: 2, routeLookupsEach: 2 });
    const answered = Promise.withResolvers<FinalRoute[]>();
    relay.routes = (account) => {
      asked.push(account);
      return answered.promise;
    };
    const look = (index: number, asker: string) =>
      locate(relay.context, (people(4)[index] as Person).account, {
        ...{ now: relay.clock.now(), asker },
      });
    const first = [look(0, 'account ann'), look(1, 'account ann')];
    await expect.poll(() => asked).toHaveLength(2);
    await expect(look(2, 'account ann')).rejects.toMatchObject({ code: 'rate_limited' });
    const other = look(3, 'account bob');
    await expect.poll(() => asked).toHaveLength(3);
    answered.resolve([]);
    expect(await Promise.all([...first, other])).toHaveLength(3);
  });

  test('the last quarter of places is for addresses and accounts with nothing under way', async () => {
    const { routeLookups, routeLookupsWithoutSession, routeLookupsEach } = defaultLimits;
    await relay.restart({ routeLookups, routeLookupsWithoutSession, routeLookupsEach });
    const answered = Promise.withResolvers<FinalRoute[]>();
    relay.routes = (account) => {
      asked.push(account);
      return answered.promise;
    };
    let looked = 0;
    const look = (asker: string) => {
      const { account } = new Person(relay, `looked up ${looked++}`);
      return locate(relay.context, account, { now: relay.clock.now(), asker });
    };
    const underWay: Promise<unknown>[] = [];
    for (const [asker, places] of [
      ['address 192.0.2.1', 12],
      ['address 192.0.2.2', 13],
      ['account ann', 24],
      ['account bob', 25],
    ] as const) {
      while (underWay.length < places) underWay.push(look(asker));
      await expect.poll(() => asked).toHaveLength(places);
      await expect(look(asker)).rejects.toMatchObject({ code: 'rate_limited' });
    }
    answered.resolve([]);
    await Promise.all(underWay);
  });

  test('a known route elsewhere serves while no lookup may begin', async () => {
    known = [await elsewhere(ann)];
    await resolve();
    relay.clock.advance(600);
    const { release, underWay } = await holdThree();
    expect(await homeOf(ann)).toEqual({ kind: 'elsewhere', relayId: otherId });
    await expect(homeOf(ann, true)).rejects.toMatchObject({ code: 'rate_limited' });
    release();
    await underWay;
  });
});
