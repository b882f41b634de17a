import { describe, expect, test } from 'vitest';
import {
  checkDeliveryStatus,
  deliveryDeadline,
  deliveryEndCode,
  deliveryErrorAction,
  errorCatalogue,
} from '../../src/index.ts';
import { codeOf, now } from '../contacts/accounts.ts';

const error = { code: 'device_unknown', message: 'no recipient device available' };
const check = (value: unknown) => codeOf(() => checkDeliveryStatus(value));

describe('04 §14.1: DeliveryStatus', () => {
  test.each([
    { status: 'delivering', accepted_at: now },
    { status: 'target_accepted', accepted_at: now, x: 1 },
    { status: 'failed', accepted_at: now, error },
    { status: 'failed', accepted_at: now, error: { ...error, data: { retry_after: 1 } } },
    { status: 'failed', accepted_at: now, error: { ...error, code: 'unheard_of' } },
  ])('%j passes', (value) => {
    expect(check(value)).toBeUndefined();
  });

  test.each([
    null,
    {},
    { status: 'delivering' },
    { status: 'accepted', accepted_at: now },
    { status: 'delivering', accepted_at: `${now}` },
    { status: 'delivering', accepted_at: now, error },
    { status: 'target_accepted', accepted_at: now, error },
    { status: 'delivering', accepted_at: now, error: null },
    { status: 'failed', accepted_at: now },
    { status: 'failed', accepted_at: now, error: null },
    { status: 'failed', accepted_at: now, error: 'device_unknown' },
    { status: 'failed', accepted_at: now, error: { code: -32005, message: 'x' } },
    { status: 'failed', accepted_at: now, error: { code: 'device_unknown' } },
    { status: 'failed', accepted_at: now, error: { ...error, data: null } },
    { status: 'failed', accepted_at: now, error: { ...error, data: { x: null } } },
    { status: 'delivering', accepted_at: now, x: null },
  ])('%j is refused', (value) => {
    expect(check(value)).toBe('bad_request');
  });
});

describe('04 §16.1: the deadline', () => {
  const deadline = (changes: object) =>
    deliveryDeadline({
      createdAt: now,
      acceptedAt: now + 10,
      deliveryAgeLimit: 100,
      messageRetention: 90,
      ...changes,
    });
  test('the earlier of age limit and retention', () => {
    expect(deadline({})).toBe(now + 100);
    expect(deadline({ messageRetention: 89 })).toBe(now + 99);
    expect(deadline({ messageRetention: 1_000 })).toBe(now + 100);
    expect(deadline({ createdAt: now + 5 })).toBe(now + 100);
    expect(deadline({ createdAt: now - 5 })).toBe(now + 95);
  });
});

describe('04 §16.2: errors before the deadline', () => {
  const retried = ['internal_error', 'bad_gateway', 'rate_limited', 'temporarily_unavailable'];
  const rerouted = [
    'route_stale',
    'target_not_local',
    'route_not_found',
    'not_found',
    'invalid_state',
  ];
  test.each(Object.keys(errorCatalogue))('%s', (code) => {
    const expected = retried.includes(code) ? 'retry' : rerouted.includes(code) ? 'reroute' : 'end';
    expect(deliveryErrorAction(code)).toBe(expected);
    expect(deliveryEndCode(code)).toBe(code);
  });
  test.each(['', 'unheard_of', 'toString', '__proto__', 'Rate_limited', '-32700'])(
    'unrecognised %j ends as a bad gateway',
    (code) => {
      expect([deliveryErrorAction(code), deliveryEndCode(code)]).toEqual(['end', 'bad_gateway']);
    },
  );
});
