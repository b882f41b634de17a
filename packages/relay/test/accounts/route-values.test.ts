import type { FinalRoute } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { observeRoute } from '../../src/accounts/index.ts';
import { offerDelay, publishDelay, shortestDelay } from '../../src/accounts/publish-times.ts';
import { start } from '../federation/route-memory-steps.ts';
import { finalRoute } from '../federation/route-memory-world.ts';
import { Person } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const jobName = 'accounts.own-routes';
const life = 129_600;
const halfDay = 43_200;
let ann: Person;
/** Routes that were sent, with the relays that a lookup had found for that. */
let sent: { readonly route: FinalRoute; readonly nearest: readonly string[] | undefined }[];
let isEnough: boolean;

beforeEach(async () => {
  ann = new Person(relay, 'ann');
  sent = [];
  isEnough = true;
  relay.replicate = async (route, _leaving, nearest) => {
    sent.push({ route, nearest });
    return { isEnough, reachedLeaving: true };
  };
});

const resolve = async (account = ann.account) => {
  const answer = await relay.codeOf('account.route.resolve', { account });
  return answer;
};
const routeOf = (revision: number, expires = 10_000_000) =>
  finalRoute(ann, { revision, relay: 0, updated: 0, expires });
const rows = () => relay.rows('account_routes');
const sinceStart = () => relay.clock.now() - start;

describe('07 §B5: a route that another relay sent', () => {
  test('is held for 36 hours after it was last sent, also over a restart', async () => {
    await observeRoute(relay.context, await routeOf(1));
    relay.clock.advance(life - 1);
    expect(await resolve()).toBe('ok');
    await observeRoute(relay.context, await routeOf(1));
    relay.clock.advance(life - 1);
    await relay.restart();
    expect(await resolve()).toBe('ok');
    relay.clock.advance(1);
    expect(await resolve()).toBe('not_found');
  });

  test('is held for no longer after the clock, which was a year ahead, was set back', async () => {
    relay.clock.advance(365 * 2 * halfDay);
    await observeRoute(relay.context, await routeOf(1, 100_000_000));
    relay.clock.advance(-365 * 2 * halfDay);
    await observeRoute(relay.context, await routeOf(1, 100_000_000));
    relay.clock.advance(life);
    expect(await resolve()).toBe('not_found');
  });

  test('is not held past its expiry', async () => {
    await observeRoute(relay.context, await routeOf(1, 1_000));
    relay.clock.advance(1_000 - sinceStart() - 1);
    expect(await resolve()).toBe('ok');
    relay.clock.advance(1);
    expect(await resolve()).toBe('not_found');
  });

  test('is deleted after that; the memory of its revision stays', async () => {
    await observeRoute(relay.context, await routeOf(5));
    const [{ held_until }] = (await rows()) as [{ held_until: number }];
    expect(await relay.runJob('accounts.route-values')).toBe(held_until);
    relay.clock.advance(life);
    expect(await relay.runJob('accounts.route-values')).toBeUndefined();
    expect(await rows()).toMatchObject([{ revision: 5, route: '', held_until: 0 }]);
    expect(await observeRoute(relay.context, await routeOf(4))).toBe('stale');
    expect(await resolve()).toBe('not_found');
    expect(await observeRoute(relay.context, await routeOf(5))).toBe('same');
    expect(await resolve()).toBe('ok');
    const other = await finalRoute(ann, { revision: 5, relay: 1, updated: 0, expires: 9_000_000 });
    expect(await observeRoute(relay.context, other)).toBe('conflict');
    expect(await resolve()).toBe('invalid_state');
  });

  test('is sent to other relays if it was not sent again for longer than its home relay waits', async () => {
    const route = await routeOf(1);
    await observeRoute(relay.context, route);
    const delay = offerDelay(relay.context, ann.account);
    expect(delay).toBeGreaterThanOrEqual(1.25 * halfDay);
    expect(delay).toBeLessThanOrEqual(1.5 * halfDay);
    relay.clock.advance(halfDay);
    await observeRoute(relay.context, route);
    relay.clock.advance(delay - 1);
    await relay.runJob(jobName);
    expect(sent).toEqual([]);
    relay.clock.advance(1);
    await relay.runJob(jobName);
    expect(sent).toEqual([{ route, nearest: [] }]);
    // Sending it does not make it live longer here.
    relay.clock.advance(life - delay);
    expect(await resolve()).toBe('not_found');
    relay.clock.advance(halfDay);
    await relay.runJob(jobName);
    expect(sent).toHaveLength(1);
  });

  test.each([
    ['a higher one was found', async () => [await routeOf(2)], 'ok'],
    [
      'another content of its revision was found',
      async () => [
        await finalRoute(ann, { revision: 1, relay: 1, updated: 0, expires: 9_000_000 }),
      ],
      'invalid_state',
    ],
  ])('is not sent if %s', async (_, find, code) => {
    await observeRoute(relay.context, await routeOf(1));
    relay.routes = find;
    relay.clock.advance(1.5 * halfDay);
    await relay.runJob(jobName);
    expect(sent).toEqual([]);
    expect(await resolve()).toBe(code);
  });

  test('one that only a lookup found is not sent, and serves for half a day', async () => {
    relay.routes = async () => [await routeOf(1)];
    expect(await resolve()).toBe('ok');
    relay.routes = () => [];
    relay.clock.advance(halfDay - 1);
    expect(await resolve()).toBe('ok');
    relay.clock.advance(1);
    await relay.runJob(jobName);
    expect([sent, await resolve()]).toEqual([[], 'not_found']);
  });
});

describe('07 §B12: the home relay', () => {
  test('sends a route again within half a day, after a lookup, and after a restart if it is overdue', async () => {
    ann = await Person.register(relay, 'ann');
    sent = [];
    const { account } = ann;
    const delay = publishDelay(relay.context, account);
    expect(delay).toBeGreaterThanOrEqual(0.8 * halfDay);
    expect(delay).toBeLessThanOrEqual(halfDay);
    relay.clock.advance(delay - 1);
    await relay.runJob(jobName);
    expect(sent).toEqual([]);
    relay.clock.advance(1);
    const lookups: string[] = [];
    relay.routes = (of) => {
      lookups.push(of);
      return [];
    };
    await relay.runJob(jobName);
    expect(lookups).toEqual([account]);
    expect(sent).toMatchObject([{ route: { account }, nearest: [] }]);
    relay.clock.advance(10 * halfDay);
    await relay.restart();
    await relay.runJob(jobName);
    expect(sent).toHaveLength(2);
    expect(await resolve()).toBe('ok');
  });

  test('sends it again soon if too few relays stored it, with growing pauses', async () => {
    isEnough = false;
    await ann.addDevice('phone');
    await ann.publishState();
    const params = await ann.route();
    const publish = () =>
      relay.codeOf('account.route.publish', params, { session: ann.accountSession() });
    expect(await publish()).toBe('temporarily_unavailable');
    expect(await resolve()).toBe('ok');
    // A repeat of the call publishes again.
    expect(await publish()).toBe('temporarily_unavailable');
    expect(sent).toHaveLength(2);
    const delays: number[] = [];
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const at = (await relay.runJob(jobName)) as number;
      delays.push(at - relay.clock.now());
      relay.clock.advance(at - relay.clock.now());
    }
    expect(delays).toEqual([30, 30, 60, 120, 240]);
    expect(sent).toHaveLength(6);
    isEnough = true;
    expect(await publish()).toBe('ok');
    const first = ((await relay.runJob(jobName)) as number) - relay.clock.now();
    relay.clock.advance(first);
    const second = ((await relay.runJob(jobName)) as number) - relay.clock.now();
    expect(first + second).toBe(publishDelay(relay.context, ann.account));
  });

  test('sends it, and asks for others, as soon as relays are known that were not at its publication', async () => {
    relay.hasRelays = false;
    relay.isRegistryRead = false;
    await relay.restart();
    ann = await Person.register(relay, 'ann');
    expect(await rows()).toMatchObject([{ checked_at: 0 }]);
    relay.hasRelays = true;
    relay.isRegistryRead = true;
    await relay.restart();
    relay.clock.advance(relay.context.limits.remoteRetryFirst);
    sent = [];
    await relay.runJob(jobName);
    expect(sent).toMatchObject([{ route: { account: ann.account } }]);
  });

  test('runs the job before routes are due that are stored after it', async () => {
    const at = (await relay.runJob(jobName)) as number;
    expect(at - relay.clock.now()).toBe(shortestDelay(relay.context.limits));
  });

  test('sends it again after its clock, which was a year ahead, was set back', async () => {
    relay.clock.advance(365 * 2 * halfDay);
    ann = await Person.register(relay, 'ann');
    relay.clock.advance(-365 * 2 * halfDay);
    sent = [];
    await relay.runJob(jobName);
    expect(sent).toMatchObject([{ route: { account: ann.account } }]);
    await relay.runJob(jobName);
    expect(sent).toHaveLength(1);
  });

  test('sends its own routes before those that other relays sent, however many those are', async () => {
    const others = Array.from({ length: 80 }, (_, index) => new Person(relay, `other ${index}`));
    for (const [index, other] of others.entries()) {
      const times = { updated: 0, expires: 10_000_000 };
      const route = await finalRoute(other, { revision: 1_000 + index, relay: 0, ...times });
      await observeRoute(relay.context, route);
    }
    relay.clock.advance(1.5 * halfDay);
    ann = await Person.register(relay, 'ann');
    relay.clock.advance(halfDay);
    sent = [];
    await relay.runJob(jobName);
    expect(sent[0]?.route.account).toBe(ann.account);
    expect(sent).toHaveLength(65);
    await relay.runJob(jobName);
    expect(sent).toHaveLength(81);
  });

  test('sends routes that are due while it confirms all others after a start', async () => {
    ann = await Person.register(relay, 'ann');
    sent = [];
    const { relayId, context } = relay;
    const accounts = Array.from({ length: 600 }, (_, index) => `account ${index}`);
    const aggregates = accounts.map((account) => `account:${account}`);
    await context.storage.write(aggregates, async (tx) => {
      for (const account of accounts) {
        await tx.run(
          `INSERT INTO account_routes (account, revision, content, relay_id, expires_at, held_until,
            conflict, route, checked_at) VALUES (?, 1, '', ?, ?, ?, 0, '{}', 0)`,
          ...[account, relayId, 9_999_999_999, 9_999_999_999],
        );
      }
    });
    let lookups = 0;
    let lookupsBefore = Number.POSITIVE_INFINITY;
    relay.routes = async () => {
      lookups += 1;
      if (lookups === 10) {
        await context.storage.write(`account:${ann.account}`, (tx) =>
          tx.run('UPDATE account_routes SET publish_at = 0 WHERE account = ?', ann.account),
        );
      }
      return [];
    };
    relay.replicate = async () => {
      lookupsBefore = lookups;
      return { isEnough: true, reachedLeaving: true };
    };
    await relay.runJob(jobName);
    expect(lookups).toBeGreaterThanOrEqual(600);
    expect(lookupsBefore).toBeLessThan(550);
  });

  test('sends no route of an account that has left, or whose routes conflict', async () => {
    ann = await Person.register(relay, 'ann');
    sent = [];
    relay.clock.advance(halfDay);
    relay.routes = async () => [
      await finalRoute(ann, { revision: 9_999, relay: 0, updated: 0, expires: 9_000_000 }),
    ];
    await relay.runJob(jobName);
    expect(sent).toEqual([]);
    expect(await rows()).toMatchObject([{ revision: 9_999, publish_at: null }]);
  });
});
