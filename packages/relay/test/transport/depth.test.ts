import {
  type AccountDeviceState,
  createGroupSecret,
  type DeviceCertificate,
  deviceCertificateAccountInput,
  deviceCertificateDeviceInput,
  deviceStateSigningInput,
  encodeBase64url,
  type MethodDefinition,
  type MethodName,
  methods,
  signAsDevice,
  signRouteDraft,
} from '@posthouse/protocol';
import { type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Session } from '../../src/sessions/session.ts';
import { TestChannel } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import type { Person } from '../fixtures/person.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

/** 01 J5: what a relay takes, it can hand out again in a text that is not too deep itself. */

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben');
beforeEach(async () => {
  channel = await TestChannel.create(relay, ann);
  group = await TestGroup.create(relay, ann);
});

/** Arrays in arrays: a value whose deepest node is `depth` below it. */
function nested(depth: number): JsonValue {
  let value: JsonValue = 0;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

/** A write whose parameters have `deep` at some depth, and the read that gives it back. */
interface Kept {
  readonly method: MethodName;
  /** Depth of the object, in the parameters, that has the extension as a member. */
  readonly at: number;
  readonly session?: () => Session;
  readonly params: (deep: JsonValue) => Promise<object>;
  /** What shows the extension again. */
  readonly read: readonly [method: MethodName, params: () => object];
}

const signed = <T extends object>({ device_signature: _, ...object }: T & JsonObject) =>
  signAsDevice(network, object, ann.device().signer);

/** Ann's next state with further members, signed by her account. */
async function stateOf(extensions: JsonObject): Promise<AccountDeviceState> {
  const { account_signature: _, ...state } = { ...(await ann.state()), ...extensions };
  const signature = await ann.signer.sign(deviceStateSigningInput(network, state));
  return { ...state, account_signature: encodeBase64url(signature) };
}

/** The certificate of Ann's phone with further members, signed by both. */
async function certificateOf(extensions: JsonObject): Promise<DeviceCertificate> {
  const { signer, certificate } = ann.device();
  const { device_signature: _, account_signature: __, ...facts } = certificate;
  const named = { ...facts, ...extensions };
  const own = signer.sign(deviceCertificateDeviceInput(network, named));
  const signed = { ...named, device_signature: encodeBase64url(own) };
  const account = await ann.signer.sign(deviceCertificateAccountInput(network, signed));
  return { ...signed, account_signature: encodeBase64url(account) };
}

/** Parameters whose members are objects. */
type Parts = Readonly<Record<string, JsonObject>>;
type Extend = (params: Parts, deep: JsonValue) => object;

let channel: TestChannel;
let group: TestGroup;
const readChannel = ['channel.read', () => ({ channel_id: channel.channelId })] as const;
const readGroup = ['group.sync', () => ({ group_id: group.groupId })] as const;

const writes: readonly Kept[] = [
  {
    method: 'device.state.publish',
    at: 0,
    params: async (deep) => await stateOf({ deep }),
    read: ['device.state.resolve', () => ({ account: ann.account })],
  },
  {
    method: 'profile.publish',
    at: 0,
    params: async (deep) => signed({ ...ann.profile(), deep }),
    read: ['profile.resolve', () => ({ account: ann.account })],
  },
  {
    method: 'account.route.publish',
    at: 0,
    session: () => ann.accountSession(),
    params: async (deep) => {
      const { account_signature: _, ...draft } = await ann.route();
      return await signRouteDraft(network, ann.signer, { ...draft, deep } as never);
    },
    read: ['account.route.resolve', () => ({ account: ann.account })],
  },
  {
    method: 'channel.create',
    at: 0,
    params: async (deep) => {
      channel = TestChannel.draft(relay, ann, { deep });
      return channel.descriptor;
    },
    read: readChannel,
  },
  {
    method: 'channel.update',
    at: 0,
    params: async (deep) => channel.nextDescriptor({ deep }),
    read: readChannel,
  },
  {
    method: 'channel.post',
    at: 0,
    params: async (deep) =>
      channel.newPost({ body: { content_type: 'text/plain', text: 'x' }, deep }),
    read: readChannel,
  },
  {
    method: 'channel.post.edit',
    at: 0,
    params: async (deep) => channel.newEdit(await channel.post(), { deep }),
    read: readChannel,
  },
  {
    method: 'channel.post.delete',
    at: 0,
    params: async (deep) => channel.newDeletion(await channel.post(), { deep }),
    read: readChannel,
  },
  {
    method: 'group.update',
    at: 0,
    params: async (deep) => group.link('group.update', { name: 'Family', deep } as never),
    read: readGroup,
  },
  {
    method: 'group.message.send',
    at: 0,
    params: async (deep) => signed({ ...group.message(ann, 0), deep }),
    read: readGroup,
  },
  {
    method: 'group.invite.create',
    at: 0,
    params: async (deep) => signed({ ...group.invitation(), deep }),
    read: ['group.invite.list', () => ({ group_id: group.groupId })],
  },
  {
    method: 'group.application.submit',
    at: 0,
    session: () => ben.session(),
    params: async (deep) => {
      const invite = await group.invite();
      return group.application(ben, invite, { deep } as never);
    },
    read: ['group.application.list', () => ({ group_id: group.groupId })],
  },
];

test('01 J5: a certificate is as deep as the pages it will come with can show', async () => {
  const session = ann.session();
  const most = methods['device.state.publish'].memberDepth.certificates - 2;
  const publish = async (depth: number) => {
    const certificates = [await certificateOf({ deep: nested(depth) })];
    return await relay.codeOf('device.state.publish', await stateOf({ certificates }), { session });
  };
  expect(await publish(most + 1)).toBe('bad_request');
  expect(await publish(most)).toBe('ok');
  await relay.call('message.send', ann.message(ann), { session });
  channel = await TestChannel.create(relay, ann);
  group = await TestGroup.create(relay, ben);
  await group.apply(ann, await group.invite());
  const applications = ['group.application.list', () => ({ group_id: group.groupId })] as const;
  const readers = [['message.timeline.sync', () => ({})] as const, readChannel, applications];
  for (const [reader, query] of readers) {
    const by = reader === 'group.application.list' ? ben : ann;
    const result = await relay.call(reader, query(), { session: by.session() });
    expect(() => parseJson(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))).not.toThrow();
    expect(JSON.stringify(result)).toContain(JSON.stringify(nested(most)));
  }
});

for (const { method, at, session, params, read } of writes) {
  test(`01 J5: ${method} takes what its answers can show, and nothing deeper`, async () => {
    const definition: MethodDefinition = methods[method];
    const most = (definition.depth ?? 0) - at - 1;
    const options = { session: session?.() ?? ann.session() };
    expect(await relay.codeOf(method, await params(nested(most + 1)), options)).toBe('bad_request');
    await relay.call(method, await params(nested(most)), options);
    const [reader, query] = read;
    const result = await relay.call(reader, query(), { session: ann.session() });
    const message = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
    expect(message).toContain(JSON.stringify(nested(most)));
    expect(parseJson(message)).toHaveProperty('result');
  });
}

const inside = (params: Parts, name: string, deep: JsonValue) => ({
  ...params,
  [name]: { ...params[name], deep },
});
/** The same, signed again. */
const insideSigned = (params: Parts, name: string, deep: JsonValue) => ({
  ...params,
  [name]: signed({ ...params[name], deep } as never),
});
/** With the extension in each of the boxes. */
const inBoxes = (params: Parts, deep: JsonValue) => {
  const boxes = Object.entries(params.client_secret_boxes as object);
  const extended = boxes.map(([account, box]) => [account, { ...box, deep }] as const);
  return { ...params, client_secret_boxes: Object.fromEntries(extended) };
};
/** With the extension in the only box. */
const inBox = (params: Parts, name: string, deep: JsonValue) => {
  const [box] = params[name] as unknown as JsonObject[];
  return { ...params, [name]: [{ ...box, deep }] };
};
const mail = (to: Person) =>
  ann.message(to, {
    ...(to === ann ? {} : { senders: ['phone'], authorization: to.grant(ann) }),
  }) as unknown as Parts;
const approval = async (kind: 'application' | 'member.recovery') => {
  if (kind === 'application') await group.apply(ben, await group.invite());
  else {
    await group.admit(ben);
    await group.requestRecovery(ben);
  }
  return group.approval([ben], { kind: `group.${kind}.approval` }) as unknown as Parts;
};
const founding = () => TestGroup.draft(relay, ann).params as unknown as Parts;

describe.each<[MethodName, string, number, () => Promise<Parts> | Parts, Extend]>([
  [
    'message.send',
    'its envelope',
    11,
    () => mail(ben),
    (params, deep) => insideSigned(params, 'envelope', deep),
  ],
  [
    'message.send',
    'a box',
    11,
    () => mail(ann),
    (params, deep) => inBox(params, 'recipient_boxes', deep),
  ],
  [
    'message.send',
    'a box for the sender',
    11,
    () => mail(ben),
    (params, deep) => inBox(params, 'sender_boxes', deep),
  ],
  [
    'group.create',
    'its body',
    11,
    founding,
    (params, deep) => insideSigned(params, 'create', deep),
  ],
  [
    'group.create',
    'the box',
    11,
    founding,
    (params, deep) => inside(params, 'client_secret_box', deep),
  ],
  [
    'group.application.approve',
    'its body',
    11,
    () => approval('application'),
    (params, deep) => insideSigned(params, 'approval', deep),
  ],
  ['group.application.approve', 'a box', 11, () => approval('application'), inBoxes],
  [
    'group.member.recovery.approve',
    'its body',
    11,
    () => approval('member.recovery'),
    (params, deep) => insideSigned(params, 'approval', deep),
  ],
  ['group.member.recovery.approve', 'a box', 11, () => approval('member.recovery'), inBoxes],
  [
    'group.secret.rotation.prepare',
    'a box',
    11,
    () => group.preparation(createGroupSecret(nodeRandom)) as unknown as Parts,
    inBoxes,
  ],
])('01 J5: %s', (method, part, most, make, extend) => {
  test(`takes ${part} as deep as answers can show it, and nothing deeper`, async () => {
    const session = ann.session();
    const params = await make();
    const codeOf = (depth: number) =>
      relay.codeOf(method, extend(params, nested(depth)), { session });
    expect(await codeOf(most + 1)).toBe('bad_request');
    expect(await codeOf(most)).toBe('ok');
    if (method !== 'message.send') return;
    const result = await relay.call('message.timeline.sync', {}, { session });
    expect(() => parseJson(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))).not.toThrow();
    expect(JSON.stringify(result)).toContain(JSON.stringify(nested(most)));
  });
  test('does not mind how deep a member is that it does not keep (02 §2.5)', async () => {
    const params = { ...(await make()), deep: nested(15) };
    expect(await relay.codeOf(method, params, { session: ann.session() })).toBe('ok');
  });
});
