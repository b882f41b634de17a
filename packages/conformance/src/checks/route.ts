import {
  type AccountRoute,
  type ErrorCode,
  encodeBase64url,
  routeAccountInput,
  verifyRoute,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { type Account, unixSeconds } from '../fixtures/account.ts';
import { tampered, withOtherS } from '../fixtures/tampered.ts';
import type { TestContext } from '../fixtures/test-context.ts';

const publish = checksOf('account.route.publish');
const resolve = checksOf('account.route.resolve');
const method = 'account.route.publish';

/** Makes an account with a pre-stored state, and a caller with its account session. */
async function staged(context: TestContext) {
  const account = context.account();
  const device = await account.device();
  const caller = await context.accountSession(account);
  await context.expectOk(caller, 'device.state.publish', await account.state([device]));
  const draft = (overrides: Partial<Parameters<typeof account.route>[0]> = {}) =>
    account.route({ relayId: context.relayId, ...overrides });
  return { account, device, caller, draft };
}

publish.check(
  'co-signs',
  { source: '03 §9', title: 'adds its signature and nothing else, and the route verifies' },
  async (context) => {
    const { account, caller, draft } = await staged(context);
    const submitted = { ...(await draft()), future: 'kept' };
    const resigned = await resign(context, account, submitted);
    const route = (await context.expectOk(caller, method, resigned)) as JsonObject;
    verifyRoute(context.network, route, { relayPublicKey: context.descriptor.public_key });
    const { relay_signature: _, ...rest } = route;
    assertConforms(sameMembers(rest, resigned), 'nothing but relay_signature differs');
  },
);

/** Adds unknown members to a route and signs it again. */
async function resign(
  context: TestContext,
  account: Account,
  route: AccountRoute,
): Promise<JsonObject> {
  const signature = await account.signer.sign(routeAccountInput(context.network, route));
  return { ...route, account_signature: encodeBase64url(signature) };
}

function sameMembers(a: JsonObject, b: JsonObject): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => JSON.stringify(a[name]) === JSON.stringify(b[name]))
  );
}

publish.check(
  'activates',
  { source: '03 §9', title: 'activates the pre-stored state together with the route' },
  async (context) => {
    const { account, device, caller, draft } = await staged(context);
    await context.expectOk(caller, method, await draft());
    const state = await context.expectOk(caller, 'device.state.resolve', { account: account.id });
    assertEqual((state as JsonObject).account, account.id, 'the state is authoritative');
    await context.deviceSession(device);
  },
);

publish.check(
  'retry',
  { source: '03 §9', title: 'an identical repeat returns the route that was co-signed first' },
  async (context) => {
    const { caller, draft } = await staged(context);
    const params = await draft();
    const first = await context.expectOk(caller, method, params);
    const second = await context.expectOk(caller, method, params);
    assertConforms(sameMembers(first as JsonObject, second as JsonObject), 'the same document');
  },
);

publish.check(
  'same-content-other-signature',
  { source: '03 §3.4', title: 'the same content with other signature bytes is the same route' },
  async (context) => {
    const { caller, draft } = await staged(context);
    const params = await draft();
    await context.expectOk(caller, method, params);
    const account_signature = withOtherS(params.account_signature);
    await context.expectOk(caller, method, { ...params, account_signature });
  },
);

publish.check(
  'higher',
  { source: '03 §9', title: 'a higher revision replaces, a lower one is stale_state' },
  async (context) => {
    const { account, caller, draft } = await staged(context);
    const revision = Date.now();
    await context.expectOk(caller, method, await draft({ revision }));
    await context.expectOk(caller, method, await draft({ revision: revision + 5 }));
    const lower = { method, params: await draft({ revision: revision + 4 }) };
    await context.expectError(caller, lower, 'stale_state');
    const read = { account: account.id };
    const route = await context.expectOk(await context.anonymous(), 'account.route.resolve', read);
    assertEqual((route as JsonObject).revision, revision + 5, 'the highest revision');
  },
);

publish.check(
  'conflict',
  { source: '03 §9', title: 'other content at a known revision is state_conflict' },
  async (context) => {
    const { caller, draft } = await staged(context);
    const revision = Date.now();
    await context.expectOk(caller, method, await draft({ revision }));
    const params = await draft({ revision, expiresAt: unixSeconds() + 4_000 });
    await context.expectError(caller, { method, params }, 'state_conflict');
  },
);

publish.check(
  'no-state',
  { source: '03 §9', title: 'an account without a usable device state is state_conflict' },
  async (context) => {
    const account = context.account();
    const caller = await context.accountSession(account);
    const params = await account.route({ relayId: context.relayId });
    await context.expectError(caller, { method, params }, 'state_conflict');
    const call = { method: 'account.route.resolve', params: { account: account.id } };
    await context.expectError(await context.anonymous(), call, 'not_found');
  },
);

type Draft = (overrides?: { updatedAt?: number; expiresAt?: number }) => Promise<AccountRoute>;

/** Invalid drafts, and the error code of each. */
const refusals: Readonly<Record<string, [(draft: Draft) => Promise<JsonObject>, ErrorCode]>> = {
  'signature-altered': [
    async (draft) => {
      const route = await draft();
      return { ...route, account_signature: tampered(route.account_signature) };
    },
    'invalid_signature',
  ],
  'altered-after-signing': [
    async (draft) => ({ ...(await draft()), revision: 5 }),
    'invalid_signature',
  ],
  'updated-far-ahead': [
    (draft) => {
      const ahead = unixSeconds() + 31_536_000;
      return draft({ updatedAt: ahead, expiresAt: ahead + 60 });
    },
    'clock_skew',
  ],
  'another-relay': [
    async (draft) => ({ ...(await draft()), relay_id: `0x${'ab'.repeat(20)}` }),
    'bad_request',
  ],
  'relay-id-upper-case': [
    async (draft) => ({ ...(await draft()), relay_id: `0x${'AB'.repeat(20)}` }),
    'bad_request',
  ],
  'relay-signature-present': [
    async (draft) => ({ ...(await draft()), relay_signature: 'A'.repeat(86) }),
    'bad_request',
  ],
  'expires-before-update': [
    async (draft) => ({ ...(await draft()), expires_at: 5 }),
    'bad_request',
  ],
  'period-too-long': [
    async (draft) => {
      const route = await draft();
      return { ...route, expires_at: route.updated_at + 315_360_001 };
    },
    'bad_request',
  ],
  'revision-negative': [async (draft) => ({ ...(await draft()), revision: -1 }), 'bad_request'],
  'revision-missing': [
    async (draft) => {
      const { revision: _, ...rest } = await draft();
      return rest;
    },
    'bad_request',
  ],
  'updated-as-text': [async (draft) => ({ ...(await draft()), updated_at: '1' }), 'bad_request'],
  'type-other': [async (draft) => ({ ...(await draft()), $type: 'x' }), 'bad_request'],
  'context-on-the-wire': [async (draft) => ({ ...(await draft()), $context: 'x' }), 'bad_request'],
};

for (const [word, [params, code]] of Object.entries(refusals)) {
  publish.check(
    `refused-${word}`,
    { source: '03 §9', title: `a draft with ${word} is ${code} and changes nothing` },
    async (context) => {
      const { account, caller, draft } = await staged(context);
      await context.expectError(caller, { method, params: await params(draft) }, code);
      const call = { method: 'account.route.resolve', params: { account: account.id } };
      await context.expectError(await context.anonymous(), call, 'not_found');
    },
  );
}

publish.check(
  'period-limit',
  { source: '01 §17.1', title: 'accepts a route of exactly 3,650 days' },
  async (context) => {
    const { caller, draft } = await staged(context);
    const updatedAt = unixSeconds();
    await context.expectOk(
      caller,
      method,
      await draft({ updatedAt, expiresAt: updatedAt + 315_360_000 }),
    );
  },
);

publish.check(
  'foreign',
  { source: '03 §9', title: 'a route of another account is forbidden' },
  async (context) => {
    const { caller } = await staged(context);
    const params = await context.account().route({ relayId: context.relayId });
    await context.expectError(caller, { method, params }, 'forbidden');
  },
);

publish.check(
  'too-large',
  { source: '03 §9', title: 'a final document over 4,096 bytes is request_too_large' },
  async (context) => {
    const { account, caller, draft } = await staged(context);
    const large = { ...(await draft()), note: 'x'.repeat(4_096) };
    const params = await resign(context, account, large);
    await context.expectError(caller, { method, params }, 'request_too_large');
  },
);

publish.check(
  'too-large-with-signature',
  { source: '03 §9', title: 'a draft that is too large only with relay_signature is refused' },
  async (context) => {
    const { account, caller, draft } = await staged(context);
    const empty = { ...(await draft()), note: '' };
    const room = 4_096 - JSON.stringify(empty).length;
    const fitting = { ...empty, note: 'x'.repeat(room) };
    const params = await resign(context, account, fitting);
    await context.expectError(caller, { method, params }, 'request_too_large');
  },
);

resolve.check(
  'verifies',
  { source: '03 §10', title: 'returns the final route without a session' },
  async (context) => {
    const { account } = await context.testAccount();
    const read = { account: account.id };
    const route = await context.expectOk(await context.anonymous(), 'account.route.resolve', read);
    assertEqual((route as JsonObject).account, account.id, "the route is the account's");
    assertEqual((route as JsonObject).relay_id, context.relayId, 'it names this relay');
  },
);

resolve.check(
  'none',
  { source: '03 §10', title: 'an account without a route is not_found' },
  async (context) => {
    const call = { method: 'account.route.resolve', params: { account: context.account().id } };
    await context.expectError(await context.anonymous(), call, 'not_found');
  },
);

resolve.check(
  'malformed',
  { source: '03 §10', title: 'a malformed account is bad_request' },
  async (context) => {
    const caller = await context.anonymous();
    for (const params of [{}, { account: '' }, { account: 'neo:1:x' }]) {
      await context.expectError(caller, { method: 'account.route.resolve', params }, 'bad_request');
    }
  },
);

export const routeChecks = [...publish.list, ...resolve.list];
