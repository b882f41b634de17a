/** Errors, and errors as plain data: what another thread, tab or program gets of them. */
import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import { ProtocolError } from '@posthouse/protocol';
import { JsonError } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { checkRelayAnswer } from '../src/errors.ts';
import {
  ClientError,
  isClientError,
  isRefusal,
  RelayMisbehaviour,
  RelayRefused,
  RelayUnreachable,
} from '../src/index.ts';

const cause = new Error('socket closed');
const limited = { message: 'slow down', data: { retry_after: 3 } };

const errors = {
  ClientError: [
    new ClientError('not_a_contact', 'no contact', { cause }),
    { code: 'not_a_contact', message: 'no contact' },
  ],
  RelayUnreachable: [
    new RelayUnreachable('no answer', { outcomeUnknown: true, kept: true, cause }),
    { code: 'relay_unreachable', message: 'no answer', outcomeUnknown: true, kept: true },
  ],
  RelayRefused: [
    new RelayRefused('message.send', 'rate_limited', limited),
    {
      ...{ code: 'relay_refused', message: 'message.send: rate_limited: slow down' },
      ...{ method: 'message.send', error: 'rate_limited', data: limited.data, retryAfter: 3 },
    },
  ],
  RelayMisbehaviour: [
    new RelayMisbehaviour('page_order', 'wrong', { method: 'message.timeline', cause }),
    {
      ...{ code: 'relay_misbehaviour', message: 'page_order: wrong' },
      ...{ reason: 'page_order', method: 'message.timeline' },
    },
  ],
} as const;

async function posted(value: unknown): Promise<unknown> {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(value);
  const [received] = await once(port2, 'message');
  port1.close();
  return received;
}

describe.each(Object.entries(errors))('%s as plain data', (name, [error, members]) => {
  const plain = { source: '@posthouse/client', name, ...members };

  test('has its members, without stack and cause', () => {
    expect(error.toJSON()).toEqual(plain);
    expect(JSON.parse(JSON.stringify({ error }))).toEqual({ error: plain });
  });

  test('is an error of the client after postMessage', async () => {
    for (const value of [error, await posted(error.toJSON())]) {
      expect(isClientError(value)).toBe(true);
      expect(isClientError(value, error.code)).toBe(true);
      expect(isClientError(value, 'no_relay')).toBe(false);
      expect(isRefusal(value)).toBe(name === 'RelayRefused');
      expect(isRefusal(value, 'forbidden', 'rate_limited')).toBe(name === 'RelayRefused');
      expect(isRefusal(value, 'forbidden')).toBe(false);
    }
    expect(await posted(error.toJSON())).toEqual(plain);
  });
});

test.each([
  ['undefined', undefined],
  ['null', null],
  ['a text', 'relay_refused'],
  ['an object with a code', { code: 'relay_refused', error: 'forbidden' }],
  ['another error', new Error('relay_refused')],
])('%s is no error of the client', (_, value) => {
  expect(isClientError(value)).toBe(false);
  expect(isRefusal(value)).toBe(false);
});

test('an error of a second copy of the package is an error of the client', async () => {
  const copy = '../src/errors.ts?copy';
  const { ClientError: Second } = (await import(copy)) as typeof import('../src/errors.ts');
  expect(Second).not.toBe(ClientError);
  expect(isClientError(new Second('no_relay', 'none'), 'no_relay')).toBe(true);
});

test('only rate_limited says how long to wait', () => {
  const { data } = limited;
  const refused = new RelayRefused('message.send', 'forbidden', { message: 'no', data });
  expect(refused.retryAfter).toBeUndefined();
});

test('a check of an answer blames the relay for what it sent, not for faults of this program', () => {
  const failing = (cause: Error) => () =>
    checkRelayAnswer('page_order', 'message.sync', () => {
      throw cause;
    });
  const malformed = new ProtocolError('bad_request', 'to: expected an account');
  for (const fault of [malformed, new JsonError('rule', 'a member twice', 1)]) {
    const expected = { reason: 'page_order', method: 'message.sync', cause: fault };
    expect(failing(fault)).toThrow(expect.objectContaining(expected));
  }
  for (const fault of [new TypeError('no function'), new ClientError('no_relay', 'none')]) {
    expect(failing(fault)).toThrow(expect.toSatisfy((thrown) => thrown === fault));
  }
});
