import { expect, test } from 'vitest';
import { attachment, TestChannel, text } from '../../fixtures/channel.ts';
import { Person } from '../../fixtures/person.ts';
import { refusal } from '../../fixtures/refusal.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

const relay = inProcessRelay();

test('01 N6, 06 §8: $context is refused in parameters that are not a signed object too', async () => {
  const ann = await Person.register(relay, 'ann');
  const channel = await TestChannel.create(relay, ann);
  const target_sequence = await channel.post();
  const { channelId: channel_id } = channel;
  const calls: readonly (readonly [string, object])[] = [
    ['channel.resolve', { channel_id }],
    ['channel.read', { channel_id }],
    ['channel.post.report', { channel_id, target_sequence, reason: 'spam' }],
    ['channel.close', channel.closure()],
  ];
  const session = ann.session();
  for (const [method, params] of calls) {
    const call = (given: object) => relay.call(method, given, { session });
    for (const $context of ['x', null]) {
      expect(await refusal(relay, () => call({ ...params, $context }))).toBe('bad_request');
    }
    await call(params);
  }
});

test('01 §4 K2: $context is refused in a body, an attachment and its encryption, not elsewhere', async () => {
  const ann = await Person.register(relay, 'ann');
  const channel = await TestChannel.create(relay, ann);
  const body = { ...text('hi'), $context: 'x' };
  const encryption = {
    ...{ alg: 'AES-256-GCM' as const, key: 'A'.repeat(43), nonce: 'A'.repeat(16) },
    $context: 'x',
  };
  const target = await channel.post();
  for (const parts of [
    { body },
    { attachments: [{ ...attachment(), $context: 'x' }] },
    { attachments: [{ ...attachment(), encryption }] },
  ]) {
    expect(await refusal(relay, () => channel.post(parts))).toBe('bad_request');
    expect(await refusal(relay, () => channel.edit(target, parts))).toBe('bad_request');
  }
  await channel.post({ body: text('hi'), unknown: { $context: 'x' } });
});
