import { assertConforms } from '../assert.ts';
import { checksOf } from '../check.ts';
import type { WssCaller } from '../transport/caller.ts';

const session = checksOf('session');

session.check(
  'account-mode-bounds',
  { source: '02 §9.5', title: 'an account session cannot call methods that need a device' },
  async (context) => {
    const { account: owner } = await context.testAccount();
    const caller = await context.accountSession(owner);
    await context.expectOk(caller, 'device.state.resolve', { account: owner.id });
    for (const [method, params] of [
      ['device.state.resolve', { account: context.account().id }],
      ['profile.resolve', { account: owner.id }],
      ['message.timeline.sync', {}],
      ['message.delivery.status', { message_id: 'msg_AAECAwQFBgcICQoLDA0ODw' }],
    ] as const) {
      await context.expectError(caller, { method, params }, 'forbidden');
    }
  },
);

session.check(
  'device-mode-bounds',
  { source: '02 §9.5', title: 'a device session may not publish a route' },
  async (context) => {
    const { account: owner, caller } = await context.testAccount();
    const params = await owner.route({ relayId: context.relayId });
    await context.expectError(caller, { method: 'account.route.publish', params }, 'forbidden');
  },
);

session.check(
  'missing',
  { source: '02 §4.1', title: 'a call without the session it needs is unauthorized' },
  async (context) => {
    const caller = await context.anonymous();
    const account = context.account().id;
    for (const [method, params] of [
      ['device.state.resolve', { account }],
      ['profile.resolve', { account }],
      ['message.timeline.sync', {}],
    ] as const) {
      await context.expectError(caller, { method, params }, 'unauthorized');
    }
  },
);

session.check(
  'revoked',
  { source: '02 §10.3', title: 'removing a device ends its sessions at once' },
  async (context) => {
    const { account: owner, devices, callers } = await context.testAccount({ devices: 2 });
    const [first, second] = callers as [(typeof callers)[0], (typeof callers)[0]];
    await context.expectOk(second, 'message.timeline.sync');
    const state = await owner.state([devices[0] as (typeof devices)[0]]);
    await context.expectOk(first, 'device.state.publish', state);
    await context.expectError(second, { method: 'message.timeline.sync' }, 'unauthorized');
    await context.expectOk(first, 'message.timeline.sync');
  },
);

session.check(
  'renewal',
  { source: '02 §10.6', title: 'renews the session on the same connection', transports: ['wss'] },
  async (context) => {
    const { device: first, caller } = await context.testAccount();
    const before = await context.authenticateDevice(caller, first);
    const after = await context.authenticateDevice(caller, first);
    assertConforms(before.token !== after.token, 'renewal gives a new token');
    await context.expectOk(caller, 'message.timeline.sync');
  },
);

session.check(
  'rebinding',
  {
    source: '02 §10.5',
    title: 'a bound connection refuses another identity and keeps its own',
    transports: ['wss'],
  },
  async (context) => {
    const { account: owner, devices, caller } = await context.testAccount({ devices: 2 });
    const other = await context.testAccount();
    for (const foreign of [devices[1] as (typeof devices)[0], other.device]) {
      const nonce = await context.challenge(caller, foreign.account.id);
      const params = context.deviceProof(foreign, nonce);
      await context.expectError(caller, { method: 'auth.device.verify', params }, 'forbidden');
    }
    const params = await context.accountProof(owner, await context.challenge(caller, owner.id));
    await context.expectError(caller, { method: 'auth.account.verify', params }, 'forbidden');
    await context.expectOk(caller, 'message.timeline.sync');
  },
);

session.check(
  'dead-binding',
  {
    source: '02 §10.5',
    title: 'a connection whose device was removed cannot be authenticated again',
    transports: ['wss'],
  },
  async (context) => {
    const { account: owner, devices, callers } = await context.testAccount({ devices: 2 });
    const [first, second] = callers as [WssCaller, WssCaller];
    const [remaining, removed] = devices as [(typeof devices)[0], (typeof devices)[0]];
    await context.expectOk(first, 'device.state.publish', await owner.state([remaining]));
    await context.expectOk(first, 'device.state.publish', await owner.state([remaining, removed]));
    await context.expectError(second, { method: 'message.timeline.sync' }, 'unauthorized');
    const nonce = await context.challenge(second, owner.id);
    const params = context.deviceProof(removed, nonce);
    await context.expectError(second, { method: 'auth.device.verify', params }, 'unauthorized');
    await context.expectOk(second, 'relay.info');
    await context.authenticateDevice(await context.anonymous(), removed);
  },
);

export const sessionChecks = session.list;
