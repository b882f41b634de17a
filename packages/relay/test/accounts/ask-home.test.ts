import { type ErrorCode, type FinalRoute, ProtocolError } from '@posthouse/protocol';
import type { JsonValue } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { askHome, type HomeQuestion } from '../../src/accounts/ask-home.ts';
import { locate } from '../../src/accounts/home.ts';
import type { RelayAnswer } from '../../src/context.ts';
import type { Person } from '../fixtures/person.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';
import { wiredRelays } from '../support/wired-relays.ts';

const wired = wiredRelays(3);
const [here, home, third] = wired.relays as [InProcessRelay, InProcessRelay, InProcessRelay];
const ann = home.person('ann');
const ben = here.person('ben');

const result = (value: JsonValue): RelayAnswer => ({ kind: 'result', value });
const refused = (code: string, retryAfter?: number): RelayAnswer => ({
  kind: 'refused',
  code,
  message: 'no',
  ...(retryAfter === undefined ? {} : { retryAfter }),
});
const inactive = result({ status: 'inactive' });

type Question = HomeQuestion<'device.status', JsonValue>;

const ask = (changes: Partial<Question> = {}) =>
  askHome(here.context, {
    account: ann.account,
    method: 'device.status',
    params: { account: ann.account, device_id: ann.device().deviceId },
    caller: ben.session(),
    accept: (value) => value as JsonValue,
    ...changes,
  });

const failure = async (changes: Partial<Question> = {}): Promise<ProtocolError> =>
  await ask(changes).then(
    () => expect.fail('was answered'),
    (error: unknown) => error as ProtocolError,
  );
const codeOf = async (changes: Partial<Question> = {}) => (await failure(changes)).code;
const asked = () => wired.calls.map(({ to }) => to);
/** Publishes a route of ann at another relay, which the relay that asks learns by a refresh only. */
const move = async (to: InProcessRelay, person: Person = ann): Promise<void> => {
  const session = person.accountSession();
  await to.call('device.state.publish', await person.state(), { session });
  const draft = await person.route({ relay_id: to.relayId });
  await to.call('account.route.publish', draft, { session });
};

/** Moves ann, and lets the relay that asks find the new route on another occasion. */
async function learn(to: InProcessRelay): Promise<void> {
  await move(to);
  await locate(here.context, ann.account, { now: here.clock.now(), refresh: true });
}

/** Counts the questions to the route directory from now on. */
function countLookups(): () => number {
  let lookups = 0;
  const { routes } = here;
  here.routes = async (account) => {
    lookups += 1;
    return await routes(account);
  };
  return () => lookups;
}

describe('07 §C4: which relay is asked', () => {
  test('the home relay, once', async () => {
    const expires_at = ann.device().certificate.expires_at;
    const value = { status: 'active', expires_at };
    expect(await ask()).toEqual({ kind: 'answered', value, relayId: home.relayId });
    expect(asked()).toEqual([home.relayId]);
  });

  test('none for an account at home here', async () => {
    expect(await ask({ account: ben.account })).toEqual({ kind: 'local' });
    expect(asked()).toEqual([]);
  });

  test('no route, and routes in conflict', async () => {
    wired.cut(here, home);
    expect(await codeOf()).toBe('route_not_found');
    wired.heal();
    here.clock.advance(here.context.limits.routeNotFound);
    const route = (await home.rows('account_routes'))[0]?.route as string;
    const other = JSON.parse(route) as FinalRoute;
    here.routes = () => [other, { ...other, expires_at: other.expires_at - 1 }];
    expect(await codeOf()).toBe('invalid_state');
    expect(asked()).toEqual([]);
  });

  for (const answer of [
    refused('route_stale'),
    refused('target_not_local'),
    refused('route_not_found'),
    { kind: 'unreachable' },
    { kind: 'unknown' },
  ] satisfies RelayAnswer[]) {
    const name = answer.kind === 'refused' ? answer.code : answer.kind;

    test(`after ${name} the route is refreshed once, and the same relay is not asked again`, async () => {
      await ask();
      const lookups = countLookups();
      wired.intercept = async () => answer;
      expect(await codeOf()).toBe('temporarily_unavailable');
      expect(lookups()).toBe(1);
      expect(asked()).toEqual([home.relayId, home.relayId]);
    });

    test(`after ${name} the relay of a higher route is asked`, async () => {
      await ask();
      await move(third);
      wired.calls.length = 0;
      wired.intercept = async ({ to }) => (to === home.relayId ? answer : inactive);
      expect(await ask()).toMatchObject({ kind: 'answered', relayId: third.relayId });
      expect(asked()).toEqual([home.relayId, third.relayId]);
    });
  }

  test('a second route error ends it, even if a third route exists', async () => {
    await ask();
    await move(third);
    wired.calls.length = 0;
    const lookups = countLookups();
    wired.intercept = async () => refused('route_stale');
    expect(await codeOf()).toBe('temporarily_unavailable');
    expect(asked()).toEqual([home.relayId, third.relayId]);
    expect(lookups()).toBe(1);
  });

  test('a lower or unchanged route of another relay is not used', async () => {
    await ask();
    const [row] = await home.rows('account_routes');
    const known = JSON.parse(row?.route as string) as FinalRoute;
    here.routes = () => [{ ...known, relay_id: third.relayId, revision: known.revision - 1 }];
    wired.intercept = async () => refused('route_stale');
    expect(await codeOf()).toBe('temporarily_unavailable');
    expect(asked()).toEqual([home.relayId, home.relayId]);
  });

  test('an account that came home here is answered here', async () => {
    await ask();
    wired.intercept = async () => {
      await move(here);
      return refused('route_stale');
    };
    expect(await ask()).toEqual({ kind: 'local' });
  });

  test('an answer of a relay that is no longer the home is not used', async () => {
    const accepted: string[] = [];
    let times = 0;
    wired.intercept = async () => {
      times += 1;
      if (times === 1) await move(here);
      return inactive;
    };
    const accept = (_: unknown, { relayId }: { relayId: string }) => void accepted.push(relayId);
    expect(await ask({ accept: accept as never })).toEqual({ kind: 'local' });
    expect(accepted).toEqual([]);
  });

  test('the relay that the account moved to meanwhile is asked, and no further one', async () => {
    wired.intercept = async ({ to }) => {
      if (to === home.relayId) await learn(third);
      return inactive;
    };
    expect(await ask()).toMatchObject({ kind: 'answered', relayId: third.relayId });
    wired.calls.length = 0;
    wired.intercept = async ({ to }) => {
      await learn(to === home.relayId ? third : home);
      return inactive;
    };
    expect(await codeOf()).toBe('temporarily_unavailable');
    expect(asked()).toEqual([third.relayId, home.relayId]);
  });
});

describe('07 §C4: what the caller receives', () => {
  test('codes of the home relay arrive as they came', async () => {
    const codes: ErrorCode[] = [
      ...(['bad_request', 'forbidden', 'invalid_signature', 'clock_skew', 'not_found'] as const),
      ...(['device_unknown', 'invalid_state', 'internal_error', 'request_too_large'] as const),
      ...(['bad_gateway', 'temporarily_unavailable', 'rate_limited'] as const),
    ];
    for (const code of codes) {
      wired.intercept = async () => refused(code);
      expect(await codeOf(), code).toBe(code);
    }
  });

  test('an unknown code and one about sessions are a bad gateway', async () => {
    for (const code of ['-1', '7', 'unauthorized']) {
      wired.intercept = async () => refused(code);
      expect(await codeOf(), code).toBe('bad_gateway');
    }
  });

  test('07 §C9: rate_limited has the seconds to wait, if the home relay sent some', async () => {
    wired.intercept = async () => refused('rate_limited', 30);
    expect((await failure()).data).toEqual({ retry_after: 30 });
    wired.intercept = async () => refused('rate_limited');
    expect((await failure()).data).toBeUndefined();
  });

  test('texts are cut to 512 characters, well-formed and without U+0000', async () => {
    const message = `\u0000${'x'.repeat(510)}\u{1f600}tail`;
    wired.intercept = async () => ({ kind: 'refused', code: 'forbidden', message });
    expect((await failure()).message).toBe(`\ufffd${'x'.repeat(510)}\ufffd`);
  });

  test('an answer of another shape, with null, too large, or that is refused', async () => {
    const wrong: JsonValue[] = [
      ...[null, 'active', [], {}, { status: 'maybe' }, { status: 'active' }],
      { status: 'inactive', extra: { deep: [null] } },
      { status: 'inactive', extra: 'x'.repeat(900_000) },
    ];
    for (const value of wrong) {
      wired.intercept = async () => result(value);
      expect(await codeOf(), JSON.stringify(value).slice(0, 40)).toBe('bad_gateway');
    }
    wired.intercept = async () => ({ kind: 'invalid', why: 'id of another request' });
    expect(await codeOf()).toBe('bad_gateway');
    wired.intercept = async () => inactive;
    const accept = () => {
      throw new ProtocolError('invalid_signature', 'no');
    };
    expect(await codeOf({ accept })).toBe('bad_gateway');
  });

  test('a fault of this relay while it verifies is no bad gateway', async () => {
    wired.intercept = async () => inactive;
    const busy = new ProtocolError('temporarily_unavailable', 'storage');
    expect(await failure({ accept: () => Promise.reject(busy) })).toBe(busy);
    const bug = new Error('disk');
    expect(await failure({ accept: () => Promise.reject(bug) })).toBe(bug);
  });
});

describe('07 §C9: limits of queries', () => {
  /** Starts questions that no relay answers until `release`. */
  const hold = () => {
    const answers: ((answer: RelayAnswer) => void)[] = [];
    const started: Promise<unknown>[] = [];
    wired.intercept = async () => {
      const answer = Promise.withResolvers<RelayAnswer>();
      answers.push(answer.resolve);
      return await answer.promise;
    };
    return {
      start: async (changes: Partial<Question> = {}) => {
        const { length } = answers;
        const question = ask(changes).catch(({ code }: ProtocolError) => code);
        started.push(question);
        await expect.poll(() => answers.length).toBe(length + 1);
      },
      release: async () => {
        for (const answer of answers.splice(0)) answer(inactive);
        await Promise.all(started);
      },
      started,
    };
  };

  test('a late answer is not used, and holds its place until it arrives', async () => {
    await here.restart({ relayQueriesToRelay: 1 });
    const held = hold();
    const accepted: unknown[] = [];
    await held.start({ accept: (value) => accepted.push(value) });
    here.clock.advance(here.context.limits.relayQueryTimeout / 1_000);
    expect(await Promise.all(held.started)).toEqual(['temporarily_unavailable']);
    expect(await failure()).toMatchObject({ code: 'rate_limited', data: { retry_after: 1 } });
    await held.release();
    expect(accepted).toEqual([]);
    wired.intercept = async () => inactive;
    expect(await ask()).toMatchObject({ kind: 'answered' });
  });

  test('an account has a number of queries under way', async () => {
    await here.restart({ relayQueriesOfAccount: 2 });
    const held = hold();
    await held.start();
    await held.start();
    expect(await failure()).toMatchObject({ code: 'rate_limited', data: { retry_after: 1 } });
    const tom = await here.register('tom');
    await held.start({ caller: tom.session() });
    await held.release();
    wired.intercept = async () => inactive;
    expect(await ask()).toMatchObject({ kind: 'answered' });
  });

  test('an account has a number of queries in a second', async () => {
    await here.restart({ relayQueryBurst: 2, relayQueryRate: 1 });
    await ask();
    await ask();
    expect(await failure()).toMatchObject({ code: 'rate_limited', data: { retry_after: 1 } });
    expect(asked()).toHaveLength(2);
    here.clock.advance(1);
    expect(await ask()).toMatchObject({ kind: 'answered' });
  });

  test('refreshes of routes are charged to the account; above its rate the known route serves', async () => {
    await here.restart({ routeLookupBurst: 3, routeLookupRate: 1 });
    const lookups = countLookups();
    wired.intercept = async () => ({ kind: 'unreachable' });
    for (let count = 0; count < 5; count += 1) {
      expect(await codeOf()).toBe('temporarily_unavailable');
    }
    expect(lookups()).toBe(3);
  });

  test('one relay that hangs leaves room for queries to the others', async () => {
    const tom = await third.register('tom');
    const about = { account: tom.account, params: { account: tom.account } };
    await here.restart({ relayQueriesToRelay: 2, relayQueries: 3 });
    const held = hold();
    await held.start();
    await held.start();
    expect(await codeOf()).toBe('rate_limited');
    await held.start(about);
    // Now as many are under way as in all.
    expect(await codeOf(about)).toBe('rate_limited');
    await held.release();
  });
});
