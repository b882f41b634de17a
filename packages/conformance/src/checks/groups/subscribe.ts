/** Subscriptions of one connection (05 §13.29, 02 §13). */

import { encodeBase64url } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import { GroupListeners, subscribe } from '../../groups/group-listeners.ts';
import { messagesOf, readChain } from '../../groups/group-reader.ts';
import { TestGroup } from '../../groups/test-group.ts';
import { pendingNotifications } from '../../transport/notifications.ts';

const subscription = checksOf('group.subscribe');
const method = 'group.subscribe';
const onWss = { transports: ['wss'] } as const;

const newGroupId = () => `grp_${encodeBase64url(nodeRandom(16))}`;

/** Asserts a refusal with exactly these groups in its data, or without data. */
async function refuses(
  context: TestContext,
  { caller }: Pick<TestAccount, 'caller'>,
  [code, group_ids]: readonly [
    code: 'bad_request' | 'not_found' | 'forbidden',
    group_ids: readonly string[],
  ],
  named?: readonly string[],
): Promise<void> {
  const { data } = await context.expectError(caller, { method, params: { group_ids } }, code);
  if (named === undefined) {
    assertEqual(data, undefined, 'no data if parameters or session are invalid');
    return;
  }
  const listed = (data as JsonObject | undefined)?.group_ids;
  assertConforms(Array.isArray(listed), 'data names the groups that cannot be subscribed');
  assertEqual(listed.toSorted().join(), named.toSorted().join(), 'exactly the refused groups');
}

/** Makes an update and returns the owner's head; all subscribers must be notified of it. */
async function stir(group: TestGroup): Promise<number> {
  await group.update({ description: encodeBase64url(nodeRandom(6)) });
  return (await readChain(group, group.owner)).state.sequence;
}

subscription.check(
  'replaces',
  {
    source: '05 §13.29, 02 §13.3',
    title: 'replaces the subscriptions of this connection',
    ...onWss,
  },
  async (context) => {
    const { group: first, owner } = await groupFixture(context, { devices: 2 });
    const second = await TestGroup.create(context, owner);
    const other = withDevice(owner, 1);
    const ears = await GroupListeners.of(first, [owner]);
    const seconds = await GroupListeners.of(second, []);
    await ears.waitForHead(owner, await stir(first));
    await subscribe(owner, [first, second]);
    await subscribe(owner, [second, first]);
    await ears.waitForHead(owner, await stir(first));
    await seconds.waitForHead(owner, await stir(second));
    await subscribe(owner, [second]);
    await stir(first);
    await seconds.waitForHead(owner, await stir(second));
    assertEqual(
      pendingNotifications(owner, 'group').length,
      0,
      'no hint of a group that is no longer subscribed',
    );
    assertEqual(
      pendingNotifications(other, 'group').length,
      0,
      'no hint on a connection without subscriptions',
    );
    await subscribe(owner, []);
    await subscribe(other, [second]);
    await seconds.waitForHead(other, await stir(second));
    assertEqual(
      pendingNotifications(owner, 'group').length,
      0,
      'no hint after an empty subscription',
    );
  },
);

subscription.check(
  'silent',
  { source: '05 §13.29', title: 'success pushes no state and no earlier hint', ...onWss },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    await stir(group);
    await subscribe(owner, [group]);
    // An answer comes after anything that subscribing would have pushed.
    await context.expectOk(owner.caller, 'relay.info');
    assertEqual(pendingNotifications(owner, 'group').length, 0, 'no hint after subscribing');
  },
);

subscription.check(
  'parameters',
  {
    source: '05 §13.29 step 1',
    title: 'refuses repeated and malformed IDs, without data',
    ...onWss,
  },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const { groupId } = group;
    await refuses(context, owner, ['bad_request', [groupId, groupId]]);
    await refuses(context, owner, ['bad_request', [groupId, 'grp_short']]);
    await refuses(context, owner, ['bad_request', [groupId.replace('grp_', 'GRP_')]]);
    // Checked before the groups are.
    const unknown = newGroupId();
    await refuses(context, owner, ['bad_request', [unknown, unknown]]);
  },
);

subscription.check(
  'count',
  { source: '02 §13.1', title: 'refuses more groups than max_group_subscriptions', ...onWss },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const limit = await relayLimit(context, 'max_group_subscriptions');
    // A request with more IDs would not fit into a message.
    if (limit > 30_000) return;
    const many = Array.from({ length: limit }, newGroupId);
    await refuses(context, owner, ['bad_request', [...many, group.groupId]]);
    if (limit > 0) await refuses(context, owner, ['not_found', many], many);
  },
);

subscription.check(
  'unavailable',
  { source: '05 §13.29 step 2', title: 'names all groups it cannot subscribe', ...onWss },
  async (context) => {
    const { group, owner, members, strangers } = await groupFixture(context, {
      members: 1,
      strangers: 1,
    });
    const [ben, eve] = [...members, ...strangers] as [TestAccount, TestAccount];
    const own = await TestGroup.create(context, eve);
    await group.ban([ben]);
    const [unknown, missing] = [newGroupId(), newGroupId()];
    const { groupId } = group;
    await refuses(context, eve, ['forbidden', [groupId, own.groupId]], [groupId]);
    await refuses(context, ben, ['forbidden', [groupId]], [groupId]);
    await refuses(context, owner, ['not_found', [groupId, unknown]], [unknown]);
    const mixed = [unknown, own.groupId, groupId, missing];
    await refuses(context, eve, ['not_found', mixed], [unknown, groupId, missing]);
  },
);

subscription.check(
  'whole',
  { source: '05 §13.29', title: 'a refusal leaves the subscriptions unchanged', ...onWss },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const second = await TestGroup.create(context, owner);
    const ears = await GroupListeners.of(group, [owner]);
    const unknown = newGroupId();
    await refuses(context, owner, ['not_found', [second.groupId, unknown]], [unknown]);
    await refuses(context, owner, ['bad_request', [second.groupId, second.groupId]]);
    await stir(second);
    await ears.waitForHead(owner, await stir(group));
    assertEqual(pendingNotifications(owner, 'group').length, 0, 'no hint of a refused group');
  },
);

subscription.check(
  'access',
  {
    source: '05 §10.2, §13.29',
    title: 'starts access of the device; a refusal does not',
    ...onWss,
  },
  async (context) => {
    const { group, owner } = await groupFixture(context, { devices: 3 });
    const [, laptop, tablet] = [0, 1, 2].map((index) => withDevice(owner, index)) as [
      TestAccount,
      TestAccount,
      TestAccount,
    ];
    const unknown = newGroupId();
    await subscribe(laptop, [group]);
    await refuses(context, tablet, ['not_found', [group.groupId, unknown]], [unknown]);
    const first = await group.send(owner, 0);
    await subscribe(laptop, []);
    await subscribe(tablet, [group]);
    const second = await group.send(owner, 0);
    const seen = async (by: TestAccount) => messagesOf(await readChain(group, by)).join();
    assertEqual(await seen(laptop), `${first},${second}`, 'messages since the subscription');
    assertEqual(await seen(tablet), `${second}`, 'messages since the successful subscription');
  },
);

subscription.check(
  'connection',
  { source: '02 §13.3', title: 'subscriptions belong to one connection and end with it', ...onWss },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const another = { ...owner, caller: await context.deviceSession(owner.device) };
    const ears = await GroupListeners.of(group, [owner]);
    await ears.waitForHead(owner, await stir(group));
    assertEqual(
      pendingNotifications(another, 'group').length,
      0,
      'no hint on the other connection',
    );
    owner.caller[Symbol.dispose]();
    await subscribe(another, [group]);
    group.owner = another;
    await ears.waitForHead(another, await stir(group));
  },
);

subscription.check(
  'renewal',
  { source: '02 §13.3', title: 'subscriptions survive a renewal of the session', ...onWss },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const ears = await GroupListeners.of(group, [owner]);
    await context.authenticateDevice(owner.caller, owner.device);
    await ears.waitForHead(owner, await stir(group));
  },
);

subscription.check(
  'http',
  { source: '05 §13.1, 02 §2.1', title: 'does not exist over HTTP', transports: ['https'] },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const params = { group_ids: [group.groupId] };
    for (const verb of ['POST', 'PUT', 'GET'] as const) {
      const answer = await owner.caller.call(method, verb === 'GET' ? {} : params, verb);
      assertConforms(!answer.ok && answer.code === 'method_not_found', 'it is method_not_found');
    }
  },
);

export const groupSubscribeChecks = subscription.list;
