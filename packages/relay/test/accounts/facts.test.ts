/** What is remembered of accounts, and when it is forgotten (decision 0024). */
import { accountAuthInput, encodeBase64url } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { AccountFactsCache } from '../../src/accounts/index.ts';
import type { AccountFacts, KnownAccounts } from '../../src/known-accounts.ts';
import type { AppendKind, Storage } from '../../src/storage/types.ts';
import { TestGroup } from '../fixtures/group.ts';
import type { Person } from '../fixtures/person.ts';
import { signIn } from '../fixtures/sign-in.ts';
import { engine } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';
import { network, origin } from '../support/modules.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
let known: KnownAccounts;

beforeEach(() => {
  known = relay.context.knownAccounts;
});

const write = (account: string, work: () => Promise<void>, keepsFacts = false) =>
  relay.context.storage.write(`account:${account}`, work, { keepsFacts });

test('facts are read once, and hold until a write of the account', async () => {
  const facts = await known.find(ann.account);
  expect([...(facts?.devices.keys() ?? [])]).toEqual(ann.deviceIds());
  relay.faults.beforeStatement = (sql) => {
    throw new Error(sql);
  };
  expect(await known.find(ann.account)).toBe(facts);
  delete relay.faults.beforeStatement;
  await ann.publishState(await ann.state({ devices: ['phone'] }));
  const after = await known.find(ann.account);
  expect([...(after?.devices.keys() ?? [])]).toEqual(ann.deviceIds('phone'));
  expect(after?.stateRevision).toBeGreaterThan(facts?.stateRevision ?? 0);
});

test('facts follow the profile and the route', async () => {
  expect((await known.find(ben.account))?.isPublic).toBe(false);
  await ben.publishProfile({ public_discovery: true });
  expect((await known.find(ben.account))?.isPublic).toBe(true);
  const before = await known.find(ben.account);
  await ben.publishRoute(await ben.route());
  expect((await known.find(ben.account))?.routeRevision).toBeGreaterThan(
    before?.routeRevision ?? 0,
  );
});

async function signInAccount({ account, signer }: Person): Promise<void> {
  const { nonce } = (await relay.call('auth.challenge', { account })) as { nonce: string };
  const { publicKey: account_public_key } = signer;
  const about = { relay_id: relay.relayId, origin, account, nonce, account_public_key };
  const signature = await signer.sign(accountAuthInput(network, about));
  await relay.call('auth.account.verify', {
    ...{ nonce, account_public_key, account_signature: encodeBase64url(signature) },
  });
}

describe('calls that change none of it keep facts in memory', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['02 §9.3: a device that signs in', () => signIn(relay, ann)],
    ['02 §9.4: an account key that signs in', () => signInAccount(ann)],
    ['05 §8.1: a new group', () => TestGroup.create(relay, ann)],
    [
      '07 §B12: a route that is sent to other relays again',
      async () => {
        relay.clock.advance(relay.context.limits.ownRouteCheck);
        const before = await relay.rows('account_routes');
        await relay.runJob('accounts.own-routes');
        expect(await relay.rows('account_routes')).not.toEqual(before);
      },
    ],
  ])('%s', async (_, act) => {
    const facts = (await known.find(ann.account)) as AccountFacts;
    await act();
    expect(known.isCurrent(facts)).toBe(true);
  });
});

test('an account without a route has no facts', async () => {
  expect(await known.find('neo:860833102:NdypJGQRuHPYhhpT8cuimLwBVyDhVDsF3k')).toBeUndefined();
});

describe('while a write of the account runs', () => {
  test('its facts do not hold, and none are read', async () => {
    const facts = await known.find(ann.account);
    if (facts === undefined) throw new Error('no facts');
    const inside = Promise.withResolvers<unknown>();
    await write(ann.account, async () => {
      inside.resolve([known.isCurrent(facts), await known.find(ann.account)]);
    });
    expect(await inside.promise).toEqual([false, undefined]);
    expect(await known.find(ann.account)).toEqual(facts);
  });

  test('those of others hold', async () => {
    const facts = await known.find(ben.account);
    if (facts === undefined) throw new Error('no facts');
    let held: boolean | undefined;
    await write(ann.account, async () => {
      held = known.isCurrent(facts);
    });
    expect(held).toBe(true);
    expect(known.isCurrent(facts)).toBe(true);
  });

  test('a read that began before it does not put its facts into memory', async () => {
    const { limits, storage } = relay.context;
    const held = Promise.withResolvers<void>();
    const read: Storage['read'] = async (work) => {
      const found = await storage.read(work);
      await held.promise;
      return found;
    };
    const slow = { read, watch: storage.watch.bind(storage) } as unknown as Storage;
    const cache = new AccountFactsCache({ storage: slow, limits });
    const reading = cache.find(ann.account);
    await write(ann.account, async () => {});
    held.resolve();
    expect(cache.isCurrent((await reading) as AccountFacts)).toBe(false);
  });

  test('that keeps facts, they hold', async () => {
    const facts = await known.find(ann.account);
    if (facts === undefined) throw new Error('no facts');
    await write(ann.account, async () => {}, true);
    expect(known.isCurrent(facts)).toBe(true);
  });
});

test('facts over the bound are forgotten, the longest unused first', async () => {
  const { storage } = relay.context;
  const one = await known.find(ann.account);
  const size = [...(one?.devices.values() ?? [])].reduce(
    (sum, { certificate }) => sum + certificate.length + 512,
    512,
  );
  const small = new AccountFactsCache({ storage, limits: { accountFactsBytes: size } });
  const facts = await small.find(ann.account);
  if (facts === undefined) throw new Error('no facts');
  expect(small.isCurrent(facts)).toBe(true);
  await small.find(ben.account);
  expect(small.isCurrent(facts)).toBe(false);
});

test('a certificate with a wide character counts two bytes for each', async () => {
  const { storage } = relay.context;
  const text = canonicalJson({ ...ben.device().certificate, note: '→' });
  await storage.write(`account:${ben.account}`, (tx) =>
    tx.run('UPDATE devices SET certificate = ? WHERE account = ?', text, ben.account),
  );
  const isKept = async (accountFactsBytes: number) => {
    const cache = new AccountFactsCache({ storage, limits: { accountFactsBytes } });
    return cache.isCurrent((await cache.find(ben.account)) as AccountFacts);
  };
  const size = 1_024 + 2 * text.length;
  expect([await isKept(size - 1), await isKept(size)]).toEqual([false, true]);
});

describe('an append in the same turn as a write of its account', () => {
  /** Tells whether facts hold where an append is applied, and writes nothing. */
  const kind: AppendKind<AccountFacts, boolean> = {
    name: 'holds',
    aggregates: ({ account }) => [`account:${account}`],
    apply: (_, facts) => known.isCurrent(facts),
    batch: undefined,
  };

  test.runIf(engine === 'sqlite')('after it does not rely on facts from before', async () => {
    const facts = (await known.find(ann.account)) as AccountFacts;
    const writing = write(ann.account, async () => {});
    expect(await relay.context.storage.append(kind, facts)).toBe(false);
    await writing;
  });

  test.runIf(engine === 'sqlite')('before it does', async () => {
    const facts = (await known.find(ann.account)) as AccountFacts;
    const appending = relay.context.storage.append(kind, facts);
    await write(ann.account, async () => {});
    expect(await appending).toBe(true);
  });
});
