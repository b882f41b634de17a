/** Every method with unexpected members, and with removed devices. */

import {
  createGroupInviteId,
  createGroupNonce,
  createGroupSecret,
  deriveGroupId,
  encodeBase64url,
} from '@posthouse/protocol';
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, expect, test } from 'vitest';
import { readGroup } from '../../src/groups/chain/group-store.ts';
import { TestGroup } from '../fixtures/group.ts';
import type { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben', ['phone', 'laptop']);
const eve = relay.person('eve', ['phone', 'laptop']);
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
});

/** Unexpected values, each of them JSON. */
const values: readonly JsonValue[] = [
  ...['', ' ', '\u0000', 'a\u0000b', '__proto__', '%_', "'; --", '\u{1f600}'.repeat(64)],
  ...[0, 1, -1, -2, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, true, false, null],
  ...[[], [[]], ['a\u0000b'], {}, { 'a\u0000b': 'a\u0000b' }, { constructor: 1 }],
  parseJson('{"__proto__":{"a":1}}'),
];

/** Everything that differs from a value in one place. */
function* differing(value: JsonValue): Generator<JsonValue> {
  yield* values;
  if (Array.isArray(value)) {
    yield [...value, ...value];
    for (const [index, item] of value.entries()) {
      for (const other of differing(item)) yield value.with(index, other);
    }
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) {
      const { [name]: member = null, ...rest } = value;
      yield rest;
      yield { ...rest, [`${name}\u0000`]: member };
      for (const other of differing(member)) yield { ...rest, [name]: other };
    }
    for (const other of values) yield { ...value, 'unknown\u0000': other };
  }
}

interface Hostility {
  readonly method: string;
  readonly by: () => Person;
  readonly params: () => object | Promise<object>;
  /** The member that is signed; the parameters themselves where it is empty. */
  readonly signed?: string;
}

const ofGroup = (facts: object) => () => ({ group_id: group.groupId, ...facts });
const invite_id = createGroupInviteId(nodeRandom);
const page = { after: 0, limit: 3 };
const list = { cursor: 'abc', limit: 3 };
const secret = createGroupSecret(nodeRandom);
const asAnn = { by: () => ann };
const byAnn = { ...asAnn, signed: '' };
const byBen = { by: () => ben, signed: '' };
const byEve = { by: () => eve, signed: '' };
const facts = { name: 'n', description: 'd', member_capacity: 9 };

const hostilities: readonly Hostility[] = [
  {
    ...byEve,
    method: 'group.create',
    params: () => TestGroup.draft(relay, eve).params,
    signed: 'create',
  },
  { ...asAnn, method: 'group.resolve', params: ofGroup({ invite_id }) },
  { ...asAnn, method: 'group.sync', params: ofGroup(page) },
  { ...asAnn, method: 'group.key.sync', params: ofGroup(page) },
  { ...byAnn, method: 'group.update', params: () => group.link('group.update', facts) },
  {
    ...byAnn,
    method: 'group.role.update',
    params: () => group.link('group.role.update', { account: ben.account, role: 'member' }),
  },
  {
    ...byAnn,
    method: 'group.owner.transfer',
    params: () => group.link('group.owner.transfer', { new_owner_account: eve.account }),
  },
  {
    ...byAnn,
    method: 'group.member.remove',
    params: () => group.link('group.member.removal', { accounts: [eve.account] }),
  },
  {
    ...byAnn,
    method: 'group.member.ban',
    params: () => group.link('group.member.ban', { accounts: [eve.account] }),
  },
  {
    ...byAnn,
    method: 'group.member.unban',
    params: () => group.link('group.member.unban', { accounts: [eve.account] }),
  },
  {
    ...byAnn,
    method: 'group.invite.create',
    params: () => group.invitation({ max_uses: 3 }),
  },
  { ...asAnn, method: 'group.invite.resolve', params: ofGroup({ invite_id }) },
  { ...asAnn, method: 'group.invite.list', params: ofGroup(list) },
  { ...asAnn, method: 'group.invite.revoke', params: ofGroup({ invite_id }) },
  {
    ...byEve,
    method: 'group.application.submit',
    params: async () => group.application(eve, await group.invite()),
  },
  { ...asAnn, method: 'group.application.list', params: ofGroup(list) },
  {
    ...asAnn,
    method: 'group.application.approve',
    params: async () => {
      await group.apply(eve, await group.invite());
      return group.approval([eve]);
    },
    signed: 'approval',
  },
  {
    ...asAnn,
    method: 'group.application.reject',
    params: () => ({ group_id: group.groupId, accounts: [eve.account] }),
  },
  { ...byBen, method: 'group.member.recovery.submit', params: () => group.recoveryRequest(ben) },
  { ...asAnn, method: 'group.member.recovery.list', params: ofGroup(list) },
  {
    ...asAnn,
    method: 'group.member.recovery.approve',
    params: async () => {
      await group.requestRecovery(ben);
      return group.approval([ben], { kind: 'group.member.recovery.approval' });
    },
    signed: 'approval',
  },
  {
    ...asAnn,
    method: 'group.member.recovery.reject',
    params: () => ({ group_id: group.groupId, accounts: [ben.account] }),
  },
  {
    ...asAnn,
    method: 'group.secret.rotation.prepare',
    params: () => group.preparation(secret),
  },
  { ...byAnn, method: 'group.secret.rotation.commit', params: () => group.rotation(secret) },
  { ...byBen, method: 'group.message.send', params: () => group.message(ben, 1) },
];

test.each(hostilities)(
  '01 §19: $method answers any value with a protocol error',
  async (hostility) => {
    const { method, by, params, signed } = hostility;
    const base = parseJson(JSON.stringify(await params())) as JsonObject;
    const upsetting: string[] = [];
    const codes = new Set<string>();
    for (const other of differing(base)) {
      const attempt = signed === undefined ? other : signedAnew(other, { by: by(), signed, base });
      const code = await relay.codeOf(method, attempt, { session: by().session() });
      if (code === 'internal_error') upsetting.push(JSON.stringify(attempt));
      if (code === 'ok') await followHead();
      codes.add(code);
    }
    expect(upsetting).toEqual([]);
    expect(codes).toContain('bad_request');
  },
);

test.each(hostilities)('02 §12: $method refuses a device that was removed', async (hostility) => {
  const { method, by, params } = hostility;
  const { cursor: _wrong, ...valid } = (await params()) as JsonObject;
  const session = by().session('laptop');
  await by().publishState(await by().state({ devices: ['phone'] }));
  expect(await relay.codeOf(method, valid, { session })).toBe('unauthorized');
});

/** With a signature that holds, and nothing of it used up by the attempts before. */
function signedAnew(
  value: JsonValue,
  { by, signed, base }: { readonly by: Person; readonly signed: string; readonly base: JsonObject },
): JsonValue {
  const object = signed === '' || !isJsonObject(value) ? value : (value[signed] ?? null);
  if (!isJsonObject(object) || !isJsonObject(value)) return value;
  const { device_signature: _before, ...rest } = object;
  const was = (signed === '' ? base : base[signed]) as JsonObject;
  const fresh = group.sign({ ...rest, ...unused(rest, was, by) }, { by });
  return signed === '' ? fresh : { ...value, [signed]: fresh };
}

/** New values for members that one accepted attempt takes away from the next. */
function unused(object: JsonObject, was: JsonObject, { account: creator }: Person): JsonObject {
  const isAsItWas = (name: string) => was[name] !== undefined && object[name] === was[name];
  const nonce = createGroupNonce(nodeRandom);
  const relay_id = relay.relayId;
  return {
    ...(isAsItWas('prev_hash') && { prev_hash: group.head }),
    ...(isAsItWas('message_id') && { message_id: `msg_${encodeBase64url(nodeRandom(16))}` }),
    ...(isAsItWas('nonce') && {
      nonce,
      group_id: deriveGroupId(network, { creator, nonce, relay_id }),
    }),
  };
}

async function followHead(): Promise<void> {
  const { groupId } = group;
  const stored = await relay.context.storage.read((tx) => readGroup(tx, groupId));
  group.head = stored?.chain_head ?? group.head;
}
