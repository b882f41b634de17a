/**
 * Random histories against the oracle. Signatures are left out: the reducer gets events whose
 * signatures were verified and does not look at them again.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readGroupPayload } from '../../src/groups/events.ts';
import {
  createKeyRotated,
  encodeBase64url,
  type GroupProjection,
  ProtocolError,
  reduceGroup,
  restoreGroup,
  saveGroup,
  type VerifiedGroupEvent,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import { alice, bob, carol, dave, eventOf, fill, groupId, network, Story } from './fixture.ts';
import { type Command, type Model, oracle } from './oracle.ts';

const people = { a: alice, b: bob, c: carol, d: dave } as const;
const letters = ['a', 'b', 'c', 'd'] as const;
const accountOf = (letter: string) => people[letter as 'a'].account;
const keyOf = (value: number) => encodeBase64url(fill(value, 32));
const commitmentOf = (value: number) => `sha256:${keyOf(value)}`;
const signature = encodeBase64url(fill(1, 64));

const kinds = [
  'update',
  'role',
  'transfer',
  'admit',
  'admit',
  'admit',
  'leave',
  'remove',
  'recover',
];
kinds.push('ban', 'unban', 'rotate', 'message', 'message');

const command: fc.Arbitrary<Command> = fc.record({
  // Closing ends the fun, so it is rare; the owner is the likeliest to be allowed something.
  kind: fc.oneof(
    { weight: 40, arbitrary: fc.constantFrom(...kinds) },
    { weight: 1, arbitrary: fc.constant('close') },
  ),
  by: fc.oneof(
    { weight: 2, arbitrary: fc.constant('a') },
    { weight: 3, arbitrary: fc.constantFrom(...letters) },
  ),
  targets: fc.uniqueArray(fc.constantFrom(...letters), { minLength: 1, maxLength: 3 }),
  role: fc.constantFrom('administrator', 'member'),
  capacity: fc.integer({ min: 1, max: 5 }),
  value: fc.integer({ min: 1, max: 4 }),
  withKey: fc.boolean(),
});

function bodyOf({ kind, targets, role, capacity, value, withKey }: Command): JsonObject {
  const account = accountOf(targets[0] as string);
  const accounts = targets.map(accountOf);
  const members = accounts.map((each) => ({
    account: each,
    member_encryption_public_key: keyOf(value),
  }));
  switch (kind) {
    case 'update':
      return { $type: network.type('group.update'), member_capacity: capacity };
    case 'role':
      return { $type: network.type('group.role.update'), account, role };
    case 'transfer':
      return { $type: network.type('group.owner.transfer'), new_owner_account: account };
    case 'admit':
      return { $type: network.type('group.application.approval'), members };
    case 'leave':
      return { $type: network.type('group.member.leave'), account };
    case 'remove':
      return { $type: network.type('group.member.removal'), accounts };
    case 'recover':
      return { $type: network.type('group.member.recovery.approval'), members };
    case 'ban':
      return { $type: network.type('group.member.ban'), accounts };
    case 'unban':
      return { $type: network.type('group.member.unban'), accounts };
    case 'rotate': {
      const key = withKey ? { owner_encryption_public_key: keyOf(value) } : {};
      const client_secret_commitment = commitmentOf(value);
      return { $type: network.type('group.secret.rotation'), client_secret_commitment, ...key };
    }
    default:
      return { $type: network.type('group.close') };
  }
}

interface Place {
  readonly sequence: number;
  readonly epoch: number;
  readonly head: string;
}

function payloadOf(each: Command, { epoch, head }: Place): JsonObject {
  if (each.kind !== 'message') {
    return { ...bodyOf(each), group_id: groupId, prev_hash: head, device_signature: signature };
  }
  return {
    $type: network.type('group.message'),
    message_id: `msg_${encodeBase64url(fill(each.value, 16))}`,
    group_id: groupId,
    epoch,
    created_at: 0,
    payload: {
      alg: 'AES-256-GCM',
      nonce: encodeBase64url(fill(0, 12)),
      ciphertext: encodeBase64url(fill(0, 16)),
    },
    device_signature: signature,
  };
}

function verifiedOf(each: Command, place: Place): VerifiedGroupEvent {
  const { account, deviceId } = people[each.by as 'a'];
  const { sequence, epoch } = place;
  const event = eventOf(payloadOf(each, place), { sequence, epoch, signer_device_id: deviceId });
  const content = readGroupPayload(network, event);
  return { event, content, signer: { account, deviceId } };
}

const initial: Model = {
  roles: { a: 'owner' },
  keys: { a: 9 },
  bans: new Set(),
  capacity: 3,
  commitment: 9,
  closed: false,
};
const creation = new Story({
  member_capacity: 3,
  owner: { account: alice.account, member_encryption_public_key: keyOf(9) },
  client_secret_commitment: commitmentOf(9),
}).group;

/** The part of a projection that the oracle knows. */
function modelOf(group: GroupProjection): unknown {
  const present = letters.filter((letter) => group.members.has(accountOf(letter)));
  const member = (letter: string) => group.members.get(accountOf(letter));
  return {
    roles: Object.fromEntries(present.map((letter) => [letter, member(letter)?.role])),
    keys: Object.fromEntries(
      present.map((letter) => [letter, member(letter)?.member_encryption_public_key]),
    ),
    bans: letters.filter((letter) => group.bans.has(accountOf(letter))),
    capacity: group.member_capacity,
    commitment: group.client_secret_commitment,
    closed: group.status === 'closed',
  };
}

function expected({ roles, keys, bans, capacity, commitment, closed }: Model): unknown {
  return {
    roles,
    keys: Object.fromEntries(Object.entries(keys).map(([letter, key]) => [letter, keyOf(key)])),
    bans: letters.filter((letter) => bans.has(letter)),
    capacity,
    commitment: commitmentOf(commitment),
    closed,
  };
}

/** The next state, or `undefined` where the reducer refuses. */
function attempt(group: GroupProjection, event: VerifiedGroupEvent): GroupProjection | undefined {
  try {
    return reduceGroup(network, group, event);
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}

const gap = fc.integer({ min: 1, max: 3 });
const step = fc.record({ each: command, gap, jump: gap, rotation: fc.integer({ max: 9, min: 0 }) });
const history = fc.array(step, { minLength: 1, maxLength: 40 });

interface Run {
  readonly group: GroupProjection;
  readonly accepted: VerifiedGroupEvent[];
}

/** Plays a history on reducer and oracle side by side. */
function play(steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[]): Run {
  let group = creation;
  let model = initial;
  const accepted: VerifiedGroupEvent[] = [];
  for (const { each, gap: after, jump, rotation } of steps) {
    const sequence = group.sequence + after;
    if (rotation === 0 && !model.closed) {
      const event = eventOf(createKeyRotated(network), { sequence, epoch: group.epoch + jump });
      const rotated: VerifiedGroupEvent = { event, content: { kind: 'group.key.rotated' } };
      group = reduceGroup(network, group, rotated);
      accepted.push(rotated);
      continue;
    }
    const answer = oracle(model, each);
    const epoch = answer?.rises === true ? group.epoch + jump : group.epoch;
    const event = verifiedOf(each, { sequence, epoch, head: group.head });
    const next = attempt(group, event);
    expect(next !== undefined).toBe(answer !== undefined);
    if (next === undefined || answer === undefined) continue;
    group = next;
    model = answer.next;
    accepted.push(event);
    expect(modelOf(group)).toEqual(expected(model));
  }
  return { group, accepted };
}

test('05 §5.4: the reducer accepts and changes exactly what the table lists', () => {
  fc.assert(
    fc.property(history, (steps) => {
      play(steps);
    }),
    { numRuns: 300 },
  );
});

test('one pass and a run resumed from any saved state end in the same state', () => {
  fc.assert(
    fc.property(history, fc.nat(40), (steps, cut) => {
      const { group, accepted } = play(steps);
      const at = cut % (accepted.length + 1);
      let half = creation;
      for (const event of accepted.slice(0, at)) half = reduceGroup(network, half, event);
      let resumed = restoreGroup(JSON.parse(JSON.stringify(saveGroup(half))));
      for (const event of accepted.slice(at)) resumed = reduceGroup(network, resumed, event);
      expect(saveGroup(resumed)).toEqual(saveGroup(group));
    }),
    { numRuns: 100 },
  );
});

test('an event with another prev_hash, an old sequence or a wrong epoch is never accepted', () => {
  const stale = fc.constantFrom('head', 'other', 'sequence', 'epoch');
  fc.assert(
    fc.property(history, command, stale, fc.nat(60), (steps, each, fault, back) => {
      const { group, accepted } = play(steps);
      const message = each.kind === 'message';
      const good = { sequence: group.sequence + 1, epoch: group.epoch, head: group.head };
      const rising = { ...good, epoch: group.epoch + 1 };
      const next = [good, rising].map((place) => attempt(group, verifiedOf(each, place)));
      // Exactly one of the two epochs can be right.
      expect(next.filter((result) => result !== undefined).length).toBeLessThan(2);
      for (const place of [good, rising]) {
        if (fault === 'sequence') {
          const sequence = Math.max(0, group.sequence - back);
          expect(attempt(group, verifiedOf(each, { ...place, sequence }))).toBeUndefined();
        } else if (fault === 'epoch') {
          const epoch = group.epoch - 1 - back;
          if (epoch < 0) continue;
          expect(attempt(group, verifiedOf(each, { ...place, epoch }))).toBeUndefined();
        } else if (!message) {
          const heads = accepted.map(({ event }) => (event.payload as JsonObject).prev_hash);
          const used = heads.filter((head) => typeof head === 'string');
          const old = used[back % Math.max(1, used.length)] ?? commitmentOf(7);
          const head = fault === 'head' ? old : commitmentOf(back % 256);
          expect(attempt(group, verifiedOf(each, { ...place, head }))).toBeUndefined();
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('no event that was accepted is accepted again', () => {
  fc.assert(
    fc.property(history, fc.nat(40), (steps, pick) => {
      const { group, accepted } = play(steps);
      const chain = accepted.filter(({ content }) => 'body' in content);
      const again = chain[pick % Math.max(1, chain.length)];
      if (again === undefined || again.content.kind === 'group.message') return;
      for (const epoch of [group.epoch, group.epoch + 1]) {
        const event = { ...again.event, sequence: group.sequence + 1, epoch };
        expect(attempt(group, { ...again, event })).toBeUndefined();
      }
    }),
    { numRuns: 100 },
  );
});
