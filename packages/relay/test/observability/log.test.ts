import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import type { RelayContext } from '../../src/context.ts';
import { CallLog } from '../../src/dispatch/call-log.ts';
import { refusalOf } from '../../src/dispatch/refusal.ts';
import { callAnswered, callFailed } from '../../src/observability/events.ts';
import { hideAddresses } from '../../src/observability/hidden-addresses.ts';
import { createLog } from '../../src/observability/log.ts';
import { type LogAddresses, loggedAddress } from '../../src/observability/logged-addresses.ts';
import { Metrics } from '../../src/observability/metrics.ts';

/** A destination that keeps its lines. */
function lines(): { readonly all: string[]; write(line: string): void } {
  const all: string[] = [];
  return { all, write: (line) => all.push(line) };
}

test('secrets are not logged even where a call site passes them', () => {
  const kept = lines();
  const log = createLog('debug', kept);
  log.info({ token: 'secret-1', request: { nonce: 'secret-2', body: 'secret-3' } }, 'mistake');
  expect(kept.all).toHaveLength(1);
  expect(kept.all[0]).not.toContain('secret-');
  expect(kept.all[0]).toContain('[secret]');
});

test('an event is one line and one counter', () => {
  const kept = lines();
  const observed = { log: createLog('debug', kept), metrics: new Metrics() };
  const call = { method: 'relay.info', transport: 'http', code: 'ok', milliseconds: 2 } as const;
  callAnswered(observed, call);
  callAnswered(observed, call);
  callFailed(observed, { method: 'relay.info', id: 'x', error: new Error('why') });
  const labels = { method: 'relay.info', transport: 'http', code: 'ok' };
  expect(observed.metrics.value('calls', labels)).toBe(2);
  expect(observed.metrics.value('internal_errors', { method: 'relay.info' })).toBe(1);
  expect(kept.all.map((line) => JSON.parse(line).msg)).toEqual([
    'call answered',
    'call answered',
    'call failed',
  ]);
  expect(kept.all[2]).toContain('why');
});

describe('logAddresses', () => {
  const day = 86_400_000;
  const shown = (how: LogAddresses, address = '203.0.113.9') => {
    const kept = lines();
    createLog('info', kept, how).child({ client: address }).info({ address }, 'seen');
    return JSON.parse(kept.all[0] as string) as { address?: string; client?: string };
  };

  test('off leaves addresses out, full shows them, hashed is the default', () => {
    expect(Object.keys(shown('off'))).not.toContain('address');
    expect(shown('off').client).toBeUndefined();
    expect(shown('full')).toMatchObject({ address: '203.0.113.9', client: '203.0.113.9' });
    const kept = lines();
    createLog('info', kept).info({ address: '203.0.113.9' }, 'seen');
    expect(kept.all[0]).toMatch(/"address":"#[0-9a-f]{16}"/);
  });

  test('errors have no public address then, neither in their words nor as a member', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 203.0.113.5:4201'), {
      ...{ code: 'ECONNREFUSED', address: '2001:db8::7', port: 4201 },
    });
    const logged = (how: LogAddresses) => {
      const kept = lines();
      const error = new Error('unreachable', { cause });
      createLog('info', kept, how).info({ error: cause.message, err: error }, 'failing');
      createLog('info', kept, how).info({ err: cause }, 'failing');
      return kept.all.join('');
    };
    expect(logged('full').match(/203\.0\.113\.5:4201/g)?.length).toBeGreaterThan(3);
    for (const how of ['off', 'hashed'] as const) {
      expect(logged(how)).not.toMatch(/203\.0\.113\.5|2001:db8/);
      expect(logged(how)).toContain('connect ECONNREFUSED [address]:4201');
      expect(logged(how)).toContain('"code":"ECONNREFUSED"');
    }
  });

  test.each([
    ['203.0.113.5', '[address]'],
    ['dial [2001:db8::7]:4201: refused', 'dial [[address]]:4201: refused'],
    ['2001:db8::7: refused', '[address]: refused'],
    [
      'fe80::1%eth0, ::1, 127.0.0.1:5432 and 10.1.2.3',
      'fe80::1%eth0, ::1, 127.0.0.1:5432 and 10.1.2.3',
    ],
    ['at 12:30:59 in storage.ts:12:34', 'at 12:30:59 in storage.ts:12:34'],
    ['version 1.2.3', 'version 1.2.3'],
  ])('%s is logged as %s', (text, hidden) => expect(hideAddresses(text)).toBe(hidden));

  test('a hash is the same on one day, and another one on the next day and in another process', () => {
    let now = 10 * day;
    const first = loggedAddress('hashed', () => now);
    const [hash, other] = [first('203.0.113.9'), first('203.0.113.8')];
    expect(hash).not.toBe(other);
    now += day - 1;
    expect(first('203.0.113.9')).toBe(hash);
    now += 1;
    expect(first('203.0.113.9')).not.toBe(hash);
    expect(loggedAddress('hashed', () => now)('203.0.113.9')).not.toBe(hash);
  });
});

test('each line of a call has its ID and caller, and a call without lines makes none', () => {
  const kept = lines();
  let made = 0;
  const random = (length: number) => {
    made += 1;
    return new Uint8Array(length).fill(made);
  };
  const observed = { log: createLog('info', kept, 'full'), metrics: new Metrics(), random };
  const silent = new CallLog(observed, { client: '203.0.113.9' });
  const answered = {
    method: 'relay.info',
    transport: 'http',
    code: 'ok',
    milliseconds: 1,
  } as const;
  callAnswered(observed, answered, silent);
  expect([kept.all, made]).toEqual([[], 0]);
  const call = new CallLog(observed, { client: '203.0.113.9' });
  const refusal = refusalOf(
    observed as unknown as RelayContext,
    'relay.info',
    new Error('why'),
    call,
  );
  call.log.warn('a line of its handler');
  const found = kept.all.map((line) => JSON.parse(line) as object);
  expect(found).toMatchObject([
    { request: call.id, client: '203.0.113.9', msg: 'call failed' },
    { request: call.id, client: '203.0.113.9', msg: 'a line of its handler' },
  ]);
  expect(refusal.message).toBe(`internal error ${call.id}`);
  expect(made).toBe(1);
});

test('a level keeps the rest out', () => {
  const kept = lines();
  createLog('warn', kept).info('nothing');
  expect(kept.all).toEqual([]);
  expect(pino.levels.values).toHaveProperty('warn');
});
