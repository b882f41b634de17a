/** A host that was put back to an earlier state, and the owner who goes on above it (06 §8.12). */
import { closedDescriptor, signAsDevice } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { RestoreLosses } from '../../src/observability/restore-losses.ts';
import { markRestored } from '../../src/storage/restored.ts';
import { TestChannel } from '../fixtures/channel.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
const step = 2 ** 32;
let channel: TestChannel;

/** Returns the code of a refusal. */
const codeOf = (method: string, params: object, by = ann) =>
  relay.call(method, params, { session: by.session() }).then(
    () => undefined,
    (error: { readonly code?: string }) => error.code,
  );

const updateTo = (revision: number, by = ann) => {
  const params = channel.sign({ ...channel.nextDescriptor({ name: 'x' }), revision }, { by });
  return codeOf('channel.update', params, by);
};

const closeAt = (revision: number) => {
  const close = { ...channel.closure(), revision, device_signature: '' };
  const final = closedDescriptor(channel.descriptor, close);
  const { device_signature } = signAsDevice(network, { ...final }, ann.device().signer);
  const params = { ...close, device_signature };
  return codeOf('channel.close', params);
};

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann);
  await channel.update({ name: 'one' });
});

test('06 §8.4, §8.5: a host that was never restored accepts the next revision only', async () => {
  expect(await updateTo(3)).toBe('state_conflict');
  expect(await closeAt(3)).toBe('state_conflict');
  expect(await closeAt(2)).toBe(undefined);
});

test('06 §8.12: the operator learns once a day of a channel of which a reader knows more', async () => {
  const { metrics, storage } = relay.context;
  const known = () => metrics.value('restore_losses', { kind: 'channel' });
  const ask = (revision: number) =>
    codeOf('channel.resolve', { channel_id: channel.channelId, revision }, ben);
  expect(await ask(5)).toBe('not_found');
  expect(known()).toBe(0);
  await markRestored(storage, [], relay.clock.now());
  expect(await ask(1)).toBe(undefined);
  expect(known()).toBe(0);
  for (const revision of [2, 5, 5]) expect(await ask(revision)).toBe('not_found');
  expect(known()).toBe(1);
  relay.clock.advance(86_400);
  await ask(5);
  expect(known()).toBe(2);
  // Callers cannot fill the log.
  const losses = new RestoreLosses(relay.context);
  for (let number = 0; number < 1_001; number += 1) losses.note('channel', String(number));
  expect(known()).toBe(1_002);
});

describe('06 §8.12: a host that was restored', () => {
  beforeEach(async () => {
    await markRestored(relay.context.storage, [], relay.clock.now());
  });

  test.each([2, 3, 2 + step])('accepts revision %d after 1', async (revision) => {
    expect(await updateTo(revision)).toBe(undefined);
    expect((await channel.resolve()).descriptor).toMatchObject({ name: 'x', revision });
    expect(await updateTo(revision)).toBe('state_conflict');
    expect(await updateTo(2)).toBe('state_conflict');
    const { events } = await channel.read({});
    expect(events.map((event) => event.descriptor_rev)).toEqual([0, 1, revision]);
  });

  test.each([0, 1, 3 + step, Number.MAX_SAFE_INTEGER])(
    'refuses revision %d after 1',
    async (revision) => {
      expect(await updateTo(revision)).toBe('state_conflict');
      expect(await closeAt(revision)).toBe('state_conflict');
    },
  );

  test('checks owner, signature and time as before', async () => {
    expect(await updateTo(9, ben)).toBe('forbidden');
    relay.clock.advance(400);
    const late = {
      ...channel.nextDescriptor({}),
      revision: 9,
      updated_at: relay.clock.now() - 301,
    };
    const call = (params: object) => codeOf('channel.update', params);
    expect(await call(channel.sign(late))).toBe('clock_skew');
    expect(await call({ ...channel.nextDescriptor({}), revision: 9 })).toBe('invalid_signature');
  });

  test('closes under a higher revision, for good', async () => {
    expect(await closeAt(7)).toBe(undefined);
    const closed = { status: 'closed', revision: 7, name: 'one' };
    expect((await channel.resolve()).descriptor).toMatchObject(closed);
    expect(await closeAt(9)).toBe('state_conflict');
    expect(await updateTo(9)).toBe('state_conflict');
  });
});
