import {
  type GroupMessageEnvelope,
  type GroupSyncPage,
  limits,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../../src/limits.ts';
import { TestGroup } from '../../fixtures/group.ts';
import type { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const dan = relay.person('dan');
let group: TestGroup;

/** Ann owns the group, Ben is a member, Dan is not. The creation and an approval were before. */
beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
  relay.takeNotices();
});

type Rows = readonly Record<string, unknown>[];
const rows = (table: string) => relay.rows(table);
const tolerance = defaultLimits.authClockTolerance;
const retention = defaultLimits.groupMessageRetention;

const send = (message: object, by = ben, device = 'phone') =>
  relay.call('group.message.send', message, { session: by.session(device) });
const codeOf = (message: object, by = ben, device = 'phone') =>
  relay.codeOf('group.message.send', message, { session: by.session(device) });
/** A message with other facts, signed. */
const withFacts = (facts: object, by = ben): GroupMessageEnvelope => {
  const { device_signature: _, ...bare } = group.message(by, 1);
  return group.sign({ ...bare, ...facts }, { by }) as unknown as GroupMessageEnvelope;
};
const messagesOf = async (reader: Person) => {
  const params = { group_id: group.groupId, after: 1 };
  const answer = await relay.call('group.sync', params, { session: reader.session() });
  verifyGroupSyncPage(network, answer, params);
  return (answer as unknown as GroupSyncPage).events;
};

describe('05 §13.28: sending', () => {
  test('appends the envelope unchanged, returns its sequence and publishes the head', async () => {
    const message = withFacts({ extra: { deep: ['é'] }, from: 'unknown', prev_hash: 'none' });
    const before = await relay.dump();
    expect(await send(message)).toEqual({ sequence: 2 });
    expect(relay.takeNotices()).toEqual([
      { kind: 'group-timeline', group: group.groupId, head: 2, accessEnded: 0 },
    ]);
    const after = await relay.dump();
    const changed = Object.keys(after).filter(
      (table) => JSON.stringify(after[table]) !== JSON.stringify(before[table]),
    );
    expect(new Set(changed)).toEqual(
      new Set(['group_certificates', 'group_epochs', 'group_messages', 'group_sent', 'groups']),
    );
    const [stored] = after.groups as Rows;
    const [was] = before.groups as Rows;
    const [row] = after.group_messages as Rows;
    const stored_bytes = (was?.stored_bytes as number) + (row?.bytes as number);
    expect(stored).toEqual({ ...was, sequence: 2, stored_bytes });
    expect(await messagesOf(ann)).toEqual([
      {
        sequence: 2,
        epoch: 1,
        payload: message,
        accepted_at: relay.clock.now(),
        signer_device_id: ben.device().deviceId,
      },
    ]);
  });

  test('shares sequences with management events, and leaves the chain head', async () => {
    expect(await group.send(ben, 1)).toBe(2);
    await group.update({ name: 'later' });
    expect(await group.send(ann, 1, 'laptop')).toBe(4);
    await group.update({ name: 'last' });
    expect((await messagesOf(ben)).map(({ sequence }) => sequence)).toEqual([2, 3, 4, 5]);
  });

  test('05 §10.2: opens no interval', async () => {
    const before = await rows('group_intervals');
    await group.send(ann, 1, 'laptop');
    expect(await rows('group_intervals')).toEqual(before);
  });

  test('02 §7.2: without a next sequence nothing is appended', async () => {
    const { sequence } = (await send(group.message(ben, 1))) as { sequence: number };
    expect(sequence).toBe(2);
    await relay.context.storage.write(`group:${group.groupId}`, (tx) =>
      tx.run('UPDATE groups SET sequence = ?', Number.MAX_SAFE_INTEGER),
    );
    expect(await codeOf(group.message(ben, 1))).toBe('state_conflict');
    expect(await rows('group_messages')).toHaveLength(1);
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    const message = group.message(ben, 1);
    // Certificate, message, result, the epoch, the head.
    expect(await throughEveryFault(relay, () => codeOf(message))).toBe(5);
  });

  test('05 §12.6: an accepted message exists after a crash', async () => {
    const message = group.message(ben, 1);
    await send(message);
    await relay.restart();
    expect((await messagesOf(ann)).map(({ payload }) => payload)).toEqual([message]);
    expect(await send(message)).toEqual({ sequence: 2 });
  });
});

describe('05 §13.28: refusals', () => {
  test.each([
    ['an ID that is none', { message_id: 'msg_short' }],
    ['another $type', { $type: network.type('group.create') }],
    ['an epoch below 0', { epoch: -1 }],
    ['a time that is a text', { created_at: '1' }],
    ['another algorithm', { payload: { alg: 'none', nonce: 'AAAAAAAAAAAAAAAA', ciphertext: '' } }],
    ['a payload without nonce', { payload: { alg: 'AES-256-GCM', ciphertext: 'AAAA' } }],
    ['null', { extra: null }],
    ['a $context', { $context: 'x' }],
  ])('%s is bad_request', async (_, facts) => {
    expect(await codeOf({ ...group.message(ben, 1), ...facts })).toBe('bad_request');
  });

  test.each([
    ['as large as allowed', 0, 'ok'],
    ['a byte larger', 1, 'request_too_large'],
  ])('05 §20: an envelope %s', async (_, more, code) => {
    const padding = limits.groupMessageBytes - sizeOf(withFacts({ extra: '' })) + more;
    expect(await codeOf(withFacts({ extra: 'x'.repeat(padding) }))).toBe(code);
  });

  test.each([
    ['as far back as the tolerance', -tolerance, 'ok'],
    ['further back', -tolerance - 1, 'clock_skew'],
    ['as far ahead as the tolerance', tolerance, 'ok'],
    ['further ahead', tolerance + 1, 'clock_skew'],
  ])('05 §12.4: created %s', async (_, offset, code) => {
    expect(await codeOf(withFacts({ created_at: relay.clock.now() + offset }))).toBe(code);
  });

  test.each([0, 2])('an epoch that is not the current one is state_conflict: %i', async (epoch) => {
    expect(await codeOf(group.message(ben, epoch))).toBe('state_conflict');
  });

  test('changed after signing, or sent by another device, it is invalid_signature', async () => {
    const message = group.message(ann, 1);
    expect(await codeOf({ ...message, extra: 1 }, ann)).toBe('invalid_signature');
    expect(await codeOf(message, ann, 'laptop')).toBe('invalid_signature');
    expect(await codeOf(message, ben)).toBe('invalid_signature');
    await send(message, ann);
    expect(await codeOf(message, ann, 'laptop')).toBe('invalid_signature');
  });

  test('05 §12.4: a caller that is no member learns only that', async () => {
    const ask = () => Promise.all([0, 1, 7].map((epoch) => codeOf(group.message(dan, epoch), dan)));
    expect(await ask()).toEqual(['forbidden', 'forbidden', 'forbidden']);
    await group.ban([dan]);
    await group.close();
    expect(await ask()).toEqual(['forbidden', 'forbidden', 'forbidden']);
  });

  test.each(['leave', 'remove', 'ban'] as const)('after a %s it is forbidden', async (how) => {
    const sent = group.message(ben, 1);
    await send(sent);
    if (how === 'leave') await group.leave(ben);
    else await group[how]([ben]);
    expect(await codeOf(group.message(ben, 2))).toBe('forbidden');
    expect(await codeOf(sent)).toBe('forbidden');
  });

  test('an unknown group is not_found, a closed one state_conflict', async () => {
    const elsewhere = withFacts({ group_id: 'grp_AAAAAAAAAAAAAAAAAAAAAA' });
    expect(await codeOf(elsewhere)).toBe('not_found');
    const sent = group.message(ben, 1);
    await send(sent);
    await group.close();
    expect(await codeOf(group.message(ben, 1))).toBe('state_conflict');
    expect(await codeOf(sent)).toBe('state_conflict');
  });
});

describe('05 §12.6: changes while the signature is verified', () => {
  const after = async (change: () => Promise<unknown>, by = ben) => {
    const message = group.message(by, 1);
    relay.meanwhile = async () => void (await change());
    return await codeOf(message, by);
  };

  test('created_at is checked when the message takes effect', async () => {
    expect(await after(async () => relay.clock.advance(tolerance + 1))).toBe('clock_skew');
    expect(await after(async () => relay.clock.advance(tolerance))).toBe('ok');
    const [{ accepted_at, keep_until } = {}] = await rows('group_messages');
    expect(accepted_at).toBe(relay.clock.now());
    expect(keep_until).toBe(relay.clock.now() + retention);
  });

  test('the device must be valid when the message takes effect', async () => {
    const expiresAt = relay.clock.now() + 10;
    await ben.addDevice('phone', { expiresAt });
    await ben.publishState();
    expect(await after(async () => relay.clock.advance(10))).toBe('unauthorized');
    expect(await rows('group_messages')).toEqual([]);
  });

  test('device, membership, epoch and open group are checked when it takes effect', async () => {
    await ann.publishState();
    const keepLaptop = async () => ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await after(keepLaptop, ann)).toBe('unauthorized');
    await ann.publishState();
    expect(await after(() => group.leave(ben))).toBe('forbidden');
    expect(await after(() => group.rotate(), ann)).toBe('state_conflict');
    expect(await after(() => group.close(), ann)).toBe('state_conflict');
  });
});

describe('05 §13.28: an identical retry', () => {
  test('returns the first sequence, changes nothing and publishes no notice', async () => {
    const message = group.message(ben, 1);
    await send(message);
    await send(group.message(ann, 1), ann);
    relay.takeNotices();
    const before = await relay.dump();
    expect(await send(message)).toEqual({ sequence: 2 });
    expect(await send(Object.fromEntries(Object.entries(message).reverse()))).toEqual({
      sequence: 2,
    });
    expect(await relay.dump()).toEqual(before);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('succeeds later, in another epoch, after a restart with another retention', async () => {
    const message = group.message(ben, 1);
    await send(message);
    await group.rotate();
    relay.clock.advance(tolerance + 1);
    await relay.restart({ groupMessageRetention: 10 });
    const before = await relay.dump();
    expect(await send(message)).toEqual({ sequence: 2 });
    expect(await relay.dump()).toEqual(before);
  });

  test('succeeds after leaving and joining again', async () => {
    const message = group.message(ben, 1);
    await send(message);
    await group.leave(ben);
    await group.admit(ben);
    expect(await send(message)).toEqual({ sequence: 2 });
  });

  test('other content under its ID is state_conflict, and the first message stays', async () => {
    const message = group.message(ben, 1);
    const { message_id } = message;
    await send(message);
    const before = await relay.dump();
    expect(await codeOf(withFacts({ message_id }))).toBe('state_conflict');
    expect(await codeOf(withFacts({ message_id, created_at: 1 }))).toBe('state_conflict');
    const extended = { ...bareOf(message), extra: 1 };
    expect(await codeOf(group.sign(extended, { by: ben }))).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
    expect(await send(message)).toEqual({ sequence: 2 });
  });

  test('an ID belongs to its account: in every group, and to no other account', async () => {
    const other = await TestGroup.create(relay, ben);
    const message = group.message(ben, 1);
    await send(message);
    const { message_id } = message;
    const elsewhere = { ...bareOf(other.message(ben, 0)), message_id };
    expect(await codeOf(other.sign(elsewhere, { by: ben }))).toBe('state_conflict');
    const ofAnn = { ...bareOf(group.message(ann, 1)), message_id };
    expect(await codeOf(group.sign(ofAnn, { by: ann }), ann)).toBe('ok');
  });

  test('many concurrent retries are one message', async () => {
    const message = group.message(ben, 1);
    const answers = await Promise.all(Array.from({ length: 5 }, () => send(message)));
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(
      new Set(['{"sequence":2}']),
    );
    expect(await rows('group_messages')).toHaveLength(1);
  });

  test('of one ID in two groups at once one is accepted', async () => {
    const other = await TestGroup.create(relay, ben);
    const message = group.message(ben, 1);
    const { message_id } = message;
    const elsewhere = other.sign({ ...bareOf(other.message(ben, 0)), message_id }, { by: ben });
    const codes = await Promise.all([codeOf(message), codeOf(elsewhere)]);
    expect(codes.sort()).toEqual(['ok', 'state_conflict']);
    expect(await rows('group_messages')).toHaveLength(1);
  });
});

describe('05 §11.2, §11.3: retention', () => {
  test('message and result are deleted at the time fixed at acceptance', async () => {
    const message = group.message(ben, 1);
    await send(message);
    const [{ keep_until } = {}] = await rows('group_messages');
    expect(keep_until).toBe(relay.clock.now() + retention);
    await relay.restart({ groupMessageRetention: 10 });
    relay.clock.advance(retention - 1);
    await relay.runJob('groups.retention');
    expect(await send(message)).toEqual({ sequence: 2 });
    expect(await messagesOf(ann)).toHaveLength(1);
    relay.clock.advance(1);
    await relay.runJob('groups.retention');
    expect(await messagesOf(ann)).toEqual([]);
    // The place in the timeline is not given again, and the repeat is too old to be new.
    expect(await codeOf(message)).toBe('clock_skew');
    expect(await group.send(ben, 1)).toBe(3);
  });

  test('the keys of its epoch are stored at least as long as the message', async () => {
    relay.clock.advance(retention / 2);
    await group.send(ben, 1);
    await group.rotate();
    relay.clock.advance(retention - 1);
    await relay.runJob('groups.retention');
    const params = { group_id: group.groupId };
    const { keys } = (await relay.call('group.key.sync', params, {
      session: ben.session(),
    })) as unknown as { keys: { epoch: number }[] };
    expect(keys.map(({ epoch }) => epoch)).toEqual([1, 2]);
  });
});

function bareOf({ device_signature: _, ...bare }: GroupMessageEnvelope) {
  return bare;
}

function sizeOf(value: object): number {
  return Buffer.byteLength(JSON.stringify(value));
}
