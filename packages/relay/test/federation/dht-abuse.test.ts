/** What another relay, or a caller without a session, can make this relay do over the DHT, in counts. */
import { join } from 'node:path';
import { utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeKadMessage,
  type KadMessage,
  kadTypes,
} from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { Person } from '../fixtures/person.ts';
import { firstRunsEnded } from '../support/first-runs.ts';
import { temporaryFolder } from '../support/folder.ts';
import { codeOf } from '../support/http.ts';
import { network } from '../support/modules.ts';
import { servedRelay } from '../support/served-relay.ts';
import { ForeignRelay } from './foreign-relay.ts';

/** Those of production, whatever a relay for tests has. */
const limits = {
  dhtRate: defaultLimits.dhtRate,
  dhtBurst: defaultLimits.dhtBurst,
  dhtBytes: defaultLimits.dhtBytes,
  dhtBytesBurst: defaultLimits.dhtBytesBurst,
  dhtPutRate: defaultLimits.dhtPutRate,
  dhtPutBurst: defaultLimits.dhtPutBurst,
  routeLookupRate: defaultLimits.routeLookupRate,
  routeLookupBurst: defaultLimits.routeLookupBurst,
  federationAddressLookupRate: defaultLimits.federationAddressLookupRate,
  federationAddressLookupBurst: defaultLimits.federationAddressLookupBurst,
  // All strangers of a test have one address: what limits their handshakes is tested with them.
  peerHandshakesPerAddress: 1_000,
  peerHandshakeRate: 1e6,
  peerHandshakeBurst: 1e6,
};
/** So that a test reaches it with few routes. */
const newAccounts = 5;
const relay = servedRelay({ limits: { ...limits, dhtNewAccounts: newAccounts } });
const ann = relay.person('ann');

/** Statements of what a relay does by itself once another one is connected. */
const ofItself = /\b(blocks|peer_connections|relays|remote_devices|status_watchers)\b/;

let foreign: ForeignRelay;
let work: { statements: number; checks: number };
beforeEach(async () => {
  foreign = await ForeignRelay.start(relay);
  await firstRunsEnded(relay.server.context);
  work = { statements: 0, checks: 0 };
  relay.faults.beforeStatement = (sql) => {
    if (!ofItself.test(sql)) work.statements += 1;
  };
  const { verifier } = relay.server.context;
  const { verify } = verifier;
  // Also what `verifyOnce` has verified, if the text is new.
  verifier.verify = async (checks, ...rest) => {
    work.checks += checks.length;
    await verify.call(verifier, checks, ...rest);
  };
});
afterEach(() => foreign[Symbol.asyncDispose]());

const served = (type: string, outcome: string) =>
  relay.server.context.metrics.value('dht_served', { type, outcome });

const putOf = (route: JsonObject): KadMessage => {
  const key = deriveRouteKey(network, route.account as string);
  return { type: kadTypes.putValue, key, record: { key, value: utf8(canonicalJson(route)) } };
};

/** Sends messages, some at a time; says how many were answered and how many reset. */
async function flood(messages: readonly KadMessage[], sender = foreign) {
  const counts = { answered: 0, reset: 0 };
  for (let at = 0; at < messages.length; at += 16) {
    const batch = messages.slice(at, at + 16).map((message) => sender.askDht(message));
    for (const { status } of await Promise.allSettled(batch)) {
      counts[status === 'fulfilled' ? 'answered' : 'reset'] += 1;
    }
  }
  return counts;
}

/** What the relay did in the meantime, beyond what it does by itself. */
async function workOf(act: () => Promise<void>): Promise<{ statements: number; checks: number }> {
  work = { statements: 0, checks: 0 };
  await act();
  return work;
}

describe('07 §C9: a flood of PUT_VALUE', () => {
  test('above the rate costs no signature check and no statement; other relays are served', async () => {
    const bob = new Person(relay, 'bob');
    const route = await foreign.route(bob, 7);
    const forged = (index: number) =>
      putOf({ ...route, revision: 100 + index } as unknown as JsonObject);
    const { dhtPutBurst } = defaultLimits;
    expect(await flood([putOf(route as never)])).toEqual({ answered: 1, reset: 0 });
    // Each of these has the signatures of another route: verified, and refused.
    const within = await workOf(async () => {
      const messages = Array.from({ length: 10 }, (_, index) => forged(index));
      expect(await flood(messages)).toEqual({ answered: 0, reset: 10 });
    });
    expect(within.checks).toBe(20);
    await foreign.dial();
    await flood(Array.from({ length: dhtPutBurst - 11 }, () => putOf(route as never)));
    const above = await workOf(async () => {
      const messages = Array.from({ length: 300 }, (_, index) => forged(index));
      expect(await flood(messages)).toEqual({ answered: 0, reset: 300 });
    });
    expect(above).toEqual({ statements: 0, checks: 0 });
    await using other = await ForeignRelay.start(relay, { byte: 0x92 });
    const reply = await other.askDht(
      putOf((await other.route(new Person(relay, 'cem'), 1)) as never),
    );
    expect(reply?.record).toBeDefined();
  });

  test('with the same record is verified once', async () => {
    const route = await foreign.route(new Person(relay, 'bob'), 7);
    const { checks } = await workOf(async () => {
      expect((await foreign.askDht(putOf(route as never)))?.record).toBeDefined();
      const messages = Array.from({ length: 99 }, () => putOf(route as never));
      expect(await flood(messages)).toEqual({ answered: 99, reset: 0 });
    });
    expect(checks).toBe(2);
  });

  test('of invented accounts stores no more of them than a day allows, and verifies no other', async () => {
    const people = Array.from({ length: 40 }, (_, index) => new Person(relay, `invented ${index}`));
    const routes = await Promise.all(people.map((person) => foreign.route(person, 7)));
    const { checks } = await workOf(async () => {
      const counts = await flood(routes.map((route) => putOf(route as never)));
      expect(counts).toEqual({ answered: newAccounts, reset: 40 - newAccounts });
    });
    expect(checks).toBe(2 * newAccounts);
    const rows = await relay.server.context.storage.read((tx) =>
      tx.all('SELECT account FROM account_routes WHERE relay_id = ?', foreign.relayId),
    );
    expect(rows).toHaveLength(newAccounts);
  });
});

describe('07 §C9: a flood of questions', () => {
  test('FIND_NODE with keys of almost 1 MiB: as many bytes as a relay may send, then none', async () => {
    const key = new Uint8Array(1_048_000);
    const most = Math.floor(defaultLimits.dhtBytesBurst / key.length);
    const { statements } = await workOf(async () => {
      for (let index = 0; index < most; index += 1) {
        expect((await foreign.askDht({ type: kadTypes.findNode, key }))?.key).toHaveLength(
          key.length,
        );
      }
      const rest = Array.from({ length: 16 }, () => ({ type: kadTypes.findNode, key }));
      expect(await flood(rest)).toEqual({ answered: 0, reset: 16 });
    });
    expect(statements).toBe(0);
    expect(served('find_node', 'none')).toBe(most);
  });

  test('GET_VALUE with invented keys: one read each up to the rate, then nothing', async () => {
    const { dhtBurst } = defaultLimits;
    const invented = (count: number, mark: number) =>
      Array.from({ length: count }, (_, index) => {
        const key = new Uint8Array(32).fill(mark);
        key.set([index >> 8, index & 255]);
        return { type: kadTypes.getValue, key };
      });
    const within = await workOf(async () => {
      expect(await flood(invented(dhtBurst, 1))).toEqual({ answered: dhtBurst, reset: 0 });
    });
    expect(within.checks).toBe(0);
    expect(within.statements).toBeLessThanOrEqual(dhtBurst * 2);
    const above = await workOf(async () => {
      expect(await flood(invented(200, 2))).toEqual({ answered: 0, reset: 200 });
    });
    expect(above).toEqual({ statements: 0, checks: 0 });
    expect(served('get_value', 'none')).toBe(dhtBurst);
  });
});

test('07 §B12: callers without a session cause a bounded number of requests to other relays', async () => {
  let asked = 0;
  foreign.serveDht = async (stream) => {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    asked += 1;
    const { type, key = new Uint8Array() } = decodeKadMessage(frame, { peers: 0, addresses: 0 });
    await stream.writeFrame(encodeKadMessage({ type, key }));
  };
  const { routeLookupBurst } = defaultLimits;
  const client = relay.http();
  const codes = new Map<string, number>();
  for (let index = 0; index < routeLookupBurst + 60; index += 1) {
    const { account } = new Person(relay, `unknown ${index}`);
    const code = codeOf(await client.call('account.route.resolve', { account }));
    codes.set(code, (codes.get(code) ?? 0) + 1);
  }
  expect([...codes]).toEqual([
    ['not_found', routeLookupBurst],
    ['rate_limited', 60],
  ]);
  expect(asked).toBeLessThanOrEqual(routeLookupBurst);
  // Accounts of this relay need no lookup.
  const { text } = await client.call('account.route.resolve', { account: ann.account });
  expect(JSON.parse(text)).toMatchObject({ account: ann.account });
});

test('07 §B4: relays that the registry does not list leave nothing here', async () => {
  using folder = temporaryFolder();
  const registry = join(folder.path, 'registry.json');
  const count = async () => {
    const [row] = await relay.server.context.storage.read((tx) =>
      tx.all<{ rows: number }>('SELECT COUNT(*) AS rows FROM relays'),
    );
    return Number(row?.rows);
  };
  const before = await count();
  const strangers = Array.from({ length: 30 }, (_, index) => index + 1);
  const results = await Promise.allSettled(
    strangers.map((byte) => ForeignRelay.start(relay, { byte, registry })),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toEqual([]);
  expect(relay.server.context.metrics.value('peers', { state: 'eligible' })).toBe(1);
  expect(await count()).toBe(before);
});
