/**
 * Unknown, not the caller's, and wrong secret take one path: the same statements, the same number of
 * signature checks, the same bytes of the answer. One caller can thus not learn from an answer, nor
 * from its time, what another one has here.
 */
import {
  accountAuthInput,
  createGroupInviteId,
  deviceAuthInput,
  encodeBase64url,
  type GroupInvite,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { Person } from '../fixtures/person.ts';
import { type CallOptions, InProcessRelay } from '../support/in-process-relay.ts';
import { network, origin } from '../support/modules.ts';
import { type Trace, traceCall, watch } from './traced-relay.ts';

type Attempt = readonly [method: string, params: unknown, options?: CallOptions];
type Attempts = Readonly<Record<string, Attempt>>;
type WithId = Pick<GroupInvite, 'invite_id'>;

let relay: InProcessRelay;
/** Has no profile. Of her devices one was removed, one expired, one is not valid yet, one never was. */
let ann: Person;
/** Hides its devices; member of the group. */
let ben: Person;
/** Stranger to the group. */
let cem: Person;
/** Has no account here. */
let dan: Person;
/** Member of the group, not more. */
let eve: Person;
/** Applied to the group. */
let fay: Person;
/** Banned from the group. */
let gus: Person;
/** Ann's. */
let group: TestGroup;
/** Ann's, and closed. */
let closedGroup: TestGroup;
/** Invitations that do not admit a stranger. */
let invitations: Readonly<Record<string, WithId>>;
let openInvitation: WithId;
let channel: TestChannel;

const notCurrent = ['removed', 'expired', 'early', 'never'] as const;
const wrongHash = `sha256:${'A'.repeat(43)}`;
const now = () => relay.clock.now();
const by = (person: Person): CallOptions => ({ session: person.session() });

/** Makes an attempt of each item. */
function each<T>(items: Readonly<Record<string, T>>, attempt: (item: T) => Attempt): Attempts {
  return Object.fromEntries(Object.entries(items).map(([name, item]) => [name, attempt(item)]));
}

/** Makes an attempt for each of Ann's devices that are not valid. */
const eachDevice = (attempt: (name: string) => Attempt): Attempts =>
  Object.fromEntries(notCurrent.map((name) => [name, attempt(name)]));

beforeAll(async () => {
  relay = await InProcessRelay.start();
  ann = await relay.register('ann', ['phone', 'removed']);
  await ann.addDevice('expired', { notBefore: now() - 100, expiresAt: now() + 10 });
  await ann.addDevice('early', { notBefore: now() + 8_640_000 });
  await ann.publishState();
  await ann.publishState(await ann.state({ devices: ['phone', 'expired', 'early'] }));
  await ann.addDevice('never');
  ben = await relay.register('ben');
  await ben.publishProfile({ public_discovery: false });
  cem = await relay.register('cem');
  dan = new Person(relay, 'dan');
  eve = await relay.register('eve');
  fay = await relay.register('fay');
  gus = await relay.register('gus');
  channel = await TestChannel.create(relay, ann);
  await channel.post();
  await makeGroups();
  relay.clock.advance(1_000);
});
afterAll(() => relay[Symbol.asyncDispose]());

async function makeGroups(): Promise<void> {
  group = await TestGroup.create(relay, ann);
  closedGroup = await TestGroup.create(relay, ann);
  await closedGroup.admit(ben);
  await closedGroup.close();
  const usedUp = await group.invite({ max_uses: 1 });
  await group.apply(eve, usedUp);
  await group.approve([eve]);
  await group.admit(ben);
  const revoked = await group.invite();
  const { invite_id } = revoked;
  await relay.call('group.invite.revoke', { group_id: group.groupId, invite_id }, by(ann));
  const ofAnother = await group.invite({ invitee: dan.account });
  const expired = await group.invite({ expires_at: now() + 100 });
  const unknown = { invite_id: createGroupInviteId(nodeRandom) };
  invitations = { unknown, revoked, ofAnother, expired, usedUp };
  openInvitation = await group.invite();
  await group.apply(fay, openInvitation);
  await group.ban([gus]);
}

/**
 * Makes the calls, and compares what the callers received and what the relay did with the first.
 * @returns the answer
 */
async function expectOnePath(attempts: Attempts): Promise<string> {
  const all = Object.entries(attempts);
  const [first, ...others] = await traces(all);
  expect(others.length).toBeGreaterThan(0);
  for (const other of others) expect(other).toEqual({ ...first, name: other.name });
  return first?.answer ?? '';
}

async function traces(all: readonly (readonly [string, Attempt])[]) {
  const found: (Trace & { readonly name: string })[] = [];
  for (const [name, [method, params, options]] of all) {
    found.push({ name, ...(await traceCall(relay, method, params, options)) });
  }
  return found;
}

async function challenge({ account }: Person): Promise<string> {
  return ((await relay.call('auth.challenge', { account })) as { nonce: string }).nonce;
}

async function deviceProof(name: string, nonce: string): Promise<JsonObject> {
  const { certificate, deviceId, signer } = ann.device(name);
  const timestamp = now();
  const input = deviceAuthInput(network, {
    ...{ relay_id: relay.relayId, origin, account: ann.account, device_id: deviceId },
    ...{ nonce, timestamp },
  });
  const device_signature = encodeBase64url(signer.sign(input));
  return { nonce, timestamp, signer_certificate: certificate, device_signature };
}

async function accountProof({ signer, account }: Person): Promise<JsonObject> {
  const nonce = await challenge({ account } as Person);
  const facts = { account, account_public_key: signer.publicKey, nonce };
  const input = accountAuthInput(network, { relay_id: relay.relayId, origin, ...facts });
  const account_signature = encodeBase64url(await signer.sign(input));
  return { nonce, account_public_key: signer.publicKey, account_signature };
}

describe('02 §9, §10: sessions', () => {
  test('a challenge is made for every account', async () => {
    const people = { known: ann, unknown: dan };
    const answer = expectOnePath(each(people, ({ account }) => ['auth.challenge', { account }]));
    expect(await answer).toBe('ok');
  });

  test('02 §9.4: a session is opened for the key of every account', async () => {
    const attempts = {
      known: ['auth.account.verify', await accountProof(ann)],
      unknown: ['auth.account.verify', await accountProof(dan)],
    } as const;
    expect(await expectOnePath(attempts)).toBe('ok');
  });

  test('02 §4.1: devices that are not valid now are not told apart', async () => {
    const attempts: Record<string, Attempt> = {};
    for (const name of notCurrent) {
      attempts[name] = ['auth.device.verify', await deviceProof(name, await challenge(ann))];
    }
    expect(await expectOnePath(attempts)).toContain('"device_unknown"');
  });

  test('02 §9.2: unknown, used and expired challenges are not told apart', async () => {
    const expired = await challenge(ann);
    relay.clock.advance(301);
    const used = await challenge(ann);
    await relay.codeOf('auth.device.verify', await deviceProof('phone', used));
    const nonces = { unknown: encodeBase64url(nodeRandom(32)), used, expired };
    const attempts: Record<string, Attempt> = {};
    for (const [name, nonce] of Object.entries(nonces)) {
      attempts[name] = ['auth.device.verify', await deviceProof('phone', nonce)];
    }
    expect(await expectOnePath(attempts)).toContain('"unauthorized"');
  });

  test('02 §10.2: unknown and expired tokens and those of another address take one look-up', async () => {
    const { token } = (await relay.call(
      'auth.device.verify',
      await deviceProof('phone', await challenge(ann)),
    )) as { token: string };
    const { sessions } = relay.context;
    const look = async (asked: string, at: string) => {
      const steps: string[] = [];
      using _watched = watch(relay, steps);
      expect(await sessions.find(asked, at)).toBeUndefined();
      return steps;
    };
    const unknown = await look(encodeBase64url(nodeRandom(32)), origin);
    expect(unknown).toHaveLength(1);
    expect(await look(token, 'https://elsewhere.example')).toEqual(unknown);
    relay.clock.advance(86_401);
    expect(await look(token, origin)).toEqual(unknown);
  });
});

describe('03 §5, §8, 04 §12: accounts', () => {
  test('03 §5.5: hidden devices and an account without profile are not told apart', async () => {
    const people = { withoutProfile: ann, hidden: ben };
    const ask = ({ account }: Person): Attempt => ['device.state.resolve', { account }, by(cem)];
    expect(await expectOnePath(each(people, ask))).toContain('"forbidden"');
    const send = (to: Person): Attempt => [
      'message.send',
      cem.message(to, { boxes: ['phone'] }),
      by(cem),
    ];
    // Reads what is remembered of an account, hidden or not.
    await traces(Object.entries(each(people, send)));
    expect(await expectOnePath(each(people, send))).toContain('"forbidden"');
  });

  test("03 §5.6: an invite's signers that are not valid devices are not told apart", async () => {
    const invite = (name: string) => ann.invite(now() + 1_000, name);
    const asked = eachDevice((name) => [
      'device.state.resolve',
      cem.stateQuery(ann.account, invite(name)),
      by(cem),
    ]);
    expect(await expectOnePath(asked)).toContain('"forbidden"');
    const sent = eachDevice((name) => [
      'message.send',
      cem.message(ann, { authorization: invite(name), boxes: ['phone'] }),
      by(cem),
    ]);
    expect(await expectOnePath(sent)).toContain('"forbidden"');
  });

  test("03 §5.6: a grant's signers that are not valid devices are not told apart", async () => {
    const asked = eachDevice((name) => [
      'device.state.resolve',
      cem.stateQuery(ann.account, ann.grant(cem, {}, name)),
      by(cem),
    ]);
    expect(await expectOnePath(asked)).toContain('"forbidden"');
  });

  test('04 §13: boxes for devices that are not valid are not told apart', async () => {
    const authorization = ann.grant(cem);
    // A grant is verified once.
    await relay.call('device.state.resolve', cem.stateQuery(ann.account, authorization), by(cem));
    const sent = eachDevice((name) => [
      'message.send',
      cem.message(ann, { authorization, boxes: [name] }),
      by(cem),
    ]);
    expect(await expectOnePath(sent)).toContain('"device_unknown"');
  });

  test("04 §12.1, §14.3: another account's message IDs are as if unused", async () => {
    const theirs = ben.message(ann, { authorization: ann.grant(ben), boxes: ['phone'] });
    await relay.call('message.send', theirs, by(ben));
    const { message_id: messageId } = theirs.envelope;
    const unused = `msg_${encodeBase64url(nodeRandom(16))}`;
    const status = each({ unused, messageId }, (message_id) => [
      'message.delivery.status',
      { message_id },
      by(cem),
    ]);
    expect(await expectOnePath(status)).toContain('"not_found"');
    const authorization = ann.grant(cem);
    await relay.call('device.state.resolve', cem.stateQuery(ann.account, authorization), by(cem));
    const sent = each({ unused, messageId }, (id) => [
      'message.send',
      cem.message(ann, { authorization, boxes: ['phone'], messageId: id }),
      by(cem),
    ]);
    expect(await expectOnePath(sent)).toBe('ok');
  });
});

describe('05 §12.4: invitations', () => {
  test('that admit no stranger are not told apart', async () => {
    const { groupId: group_id } = group;
    const apply = each(invitations, (invite) => [
      'group.application.submit',
      group.application(cem, invite),
      by(cem),
    ]);
    expect(await expectOnePath(apply)).toContain('"forbidden"');
    const look = each(invitations, ({ invite_id }) => [
      'group.resolve',
      { group_id, invite_id },
      by(cem),
    ]);
    expect(await expectOnePath(look)).toContain('"forbidden"');
  });

  test.each(['group.invite.resolve', 'group.invite.revoke'])(
    '%s: none is there for strangers',
    async (method) => {
      const { groupId: group_id } = group;
      const all = { ...invitations, openInvitation };
      const attempts = each(all, ({ invite_id }) => [method, { group_id, invite_id }, by(cem)]);
      expect(await expectOnePath(attempts)).toContain('"forbidden"');
    },
  );

  test('DECISION at 05 §12.4: a member is told whether an ID is of an invitation', async () => {
    const { groupId: group_id } = group;
    const code = ({ invite_id }: WithId) =>
      relay.codeOf('group.invite.resolve', { group_id, invite_id }, by(eve));
    expect(await code(invitations.unknown as WithId)).toBe('not_found');
    expect(await code(openInvitation)).toBe('forbidden');
  });
});

describe('05 §12.4: what a group is like', () => {
  const acts: Readonly<Record<string, (of: TestGroup, target: Person, caller: Person) => object>> =
    {
      'group.member.remove': (of, { account }, caller) =>
        of.link('group.member.removal', { accounts: [account] }, { by: caller }),
      'group.member.ban': (of, { account }, caller) =>
        of.link('group.member.ban', { accounts: [account] }, { by: caller }),
      'group.member.unban': (of, { account }, caller) =>
        of.link('group.member.unban', { accounts: [account] }, { by: caller }),
      'group.role.update': (of, { account }, caller) =>
        of.link('group.role.update', { account, role: 'administrator' }, { by: caller }),
      'group.owner.transfer': (of, { account }, caller) =>
        of.link('group.owner.transfer', { new_owner_account: account }, { by: caller }),
      'group.application.reject': ({ groupId }, { account }) => ({
        ...{ group_id: groupId, accounts: [account] },
      }),
    };
  const roles = () => ({ owner: ann, member: ben, applicant: fay, banned: gus, none: dan });

  for (const [method, params] of Object.entries(acts)) {
    test(`${method}: neither a stranger nor a member learns what another account is`, async () => {
      for (const caller of [cem, eve]) {
        const attempts = each(roles(), (target) => [
          method,
          params(group, target, caller),
          by(caller),
        ]);
        expect(await expectOnePath(attempts)).toContain('"forbidden"');
      }
    });
  }

  const reads: Readonly<Record<string, (of: TestGroup) => object>> = {
    ...{ 'group.application.list': () => ({}), 'group.member.recovery.list': () => ({}) },
    ...{ 'group.invite.list': () => ({}), 'group.resolve': () => ({}) },
    ...{ 'group.sync': () => ({ after: 0 }), 'group.key.sync': () => ({ after: 0 }) },
    'group.message.send': (of) => of.message(cem, 1),
    'group.close': (of) => of.link('group.close', {}, { by: cem }),
    'group.update': (of) => of.link('group.update', { name: 'x' }, { by: cem }),
    'group.member.leave': (of) =>
      of.link('group.member.leave', { account: cem.account }, { by: cem }),
    'group.member.recovery.submit': (of) => of.recoveryRequest(cem),
    'group.secret.rotation.prepare': (of) => of.preparation(nodeRandom(32)),
    'group.secret.rotation.commit': (of) =>
      of.sign({ ...of.rotation(nodeRandom(32)) } as JsonObject, { by: cem }),
    'group.invite.create': (of) => of.invitation({ inviter: cem.account }, { by: cem }),
    'group.application.submit': (of) => of.application(cem, invitations.unknown as WithId),
  };
  for (const [method, params] of Object.entries(reads)) {
    test(`${method}: a stranger does not learn whether a group is closed`, async () => {
      const attempts = each({ group, closedGroup }, (of) => [
        method,
        { group_id: of.groupId, ...params(of) },
        by(cem),
      ]);
      expect(await expectOnePath(attempts)).toContain('"forbidden"');
    });
  }

  test('head, epoch and positions are not learned by trying', async () => {
    const { groupId: group_id } = group;
    const heads = each({ right: {}, wrong: { prev_hash: wrongHash } }, (facts) => [
      'group.update',
      group.link('group.update', { name: 'x', ...facts }, { by: cem }),
      by(cem),
    ]);
    expect(await expectOnePath(heads)).toContain('"forbidden"');
    const epochs = each({ one: 1, four: 4, many: 999 }, (epoch) => [
      'group.message.send',
      group.message(cem, epoch),
      by(cem),
    ]);
    expect(await expectOnePath(epochs)).toContain('"forbidden"');
    for (const method of ['group.sync', 'group.key.sync']) {
      const pages = each({ low: 0, high: 1_000_000 }, (after) => [
        method,
        { group_id, after },
        by(cem),
      ]);
      expect(await expectOnePath(pages)).toContain('"forbidden"');
    }
    const preparation = group.preparation(nodeRandom(32));
    const bases = each({ right: {}, wrong: { base_commitment: wrongHash } }, (facts) => [
      'group.secret.rotation.prepare',
      { ...preparation, ...facts },
      by(cem),
    ]);
    expect(await expectOnePath(bases)).toContain('"forbidden"');
  });
});

describe('06 §8: channels', () => {
  test('8.7, 8.8: only those who may write learn whether a post can be changed', async () => {
    const edits = each({ post: 2, nothing: 9 }, (target) => [
      'channel.post.edit',
      channel.newEdit(target, { body: text('x') }, { by: cem }),
      by(cem),
    ]);
    expect(await expectOnePath(edits)).toContain('"forbidden"');
    const deletions = each({ post: 2, nothing: 9 }, (target) => [
      'channel.post.delete',
      channel.newDeletion(target, {}, { by: cem }),
      by(cem),
    ]);
    expect(await expectOnePath(deletions)).toContain('"forbidden"');
  });
});
