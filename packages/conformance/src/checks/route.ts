import {
  type AccountRoute,
  type ErrorCode,
  encodeBase64url,
  type JsonObject,
  routeAccountInput,
  verifyRoute,
} from '@posthouse/protocol';
import { demand } from '../assert.ts';
import { checksOf } from '../check.ts';
import { type Account, unixSeconds } from '../fixtures/account.ts';
import { flipped, withOtherS } from '../fixtures/tampered.ts';
import type { Stage } from '../fixtures/test-context.ts';

const publish = checksOf('account.route.publish');
const resolve = checksOf('account.route.resolve');
const method = 'account.route.publish';

/** An account whose state is pre-stored here, and its key holder's caller. */
async function staged(stage: Stage) {
  const account = stage.account();
  const device = await account.device();
  const caller = await stage.keyHolder(account);
  await stage.succeed(caller, 'device.state.publish', await account.state([device]));
  const draft = (facts: Partial<Parameters<typeof account.route>[0]> = {}) =>
    account.route({ relayId: stage.relayId, ...facts });
  return { account, device, caller, draft };
}

publish.check(
  'co-signs',
  { source: '03 §9', title: 'adds its signature and nothing else, and the route verifies' },
  async (stage) => {
    const { account, caller, draft } = await staged(stage);
    const submitted = { ...(await draft()), future: 'kept' };
    const resigned = await resign(stage, account, submitted);
    const route = (await stage.succeed(caller, method, resigned)) as JsonObject;
    verifyRoute(stage.network, route, { relayPublicKey: stage.descriptor.public_key });
    const { relay_signature: _, ...rest } = route;
    demand(sameMembers(rest, resigned), 'nothing but relay_signature differs');
  },
);

/** Signs a route with unknown members again. */
async function resign(stage: Stage, account: Account, route: AccountRoute): Promise<JsonObject> {
  const signature = await account.signer.sign(routeAccountInput(stage.network, route));
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
  async (stage) => {
    const { account, device, caller, draft } = await staged(stage);
    await stage.succeed(caller, method, await draft());
    const state = await stage.succeed(caller, 'device.state.resolve', { account: account.id });
    demand((state as JsonObject).account === account.id, 'the state is authoritative');
    await stage.member(device);
  },
);

publish.check(
  'retry',
  { source: '03 §9', title: 'an unchanged retry gets the document that was co-signed first' },
  async (stage) => {
    const { caller, draft } = await staged(stage);
    const params = await draft();
    const first = await stage.succeed(caller, method, params);
    const second = await stage.succeed(caller, method, params);
    demand(sameMembers(first as JsonObject, second as JsonObject), 'the same document answers');
  },
);

publish.check(
  'same-content-other-signature',
  { source: '03 §3.4', title: 'the same content with other signature bytes is the same route' },
  async (stage) => {
    const { caller, draft } = await staged(stage);
    const params = await draft();
    await stage.succeed(caller, method, params);
    const account_signature = withOtherS(params.account_signature);
    await stage.succeed(caller, method, { ...params, account_signature });
  },
);

publish.check(
  'higher',
  { source: '03 §9', title: 'a higher revision replaces, a lower one is stale_state' },
  async (stage) => {
    const { account, caller, draft } = await staged(stage);
    const revision = Date.now();
    await stage.succeed(caller, method, await draft({ revision }));
    await stage.succeed(caller, method, await draft({ revision: revision + 5 }));
    const lower = { method, params: await draft({ revision: revision + 4 }) };
    await stage.fail(caller, lower, 'stale_state');
    const read = { account: account.id };
    const route = await stage.succeed(await stage.visitor(), 'account.route.resolve', read);
    demand((route as JsonObject).revision === revision + 5, 'the highest stays');
  },
);

publish.check(
  'conflict',
  { source: '03 §9', title: 'other content at a known revision is state_conflict' },
  async (stage) => {
    const { caller, draft } = await staged(stage);
    const revision = Date.now();
    await stage.succeed(caller, method, await draft({ revision }));
    const params = await draft({ revision, expiresAt: unixSeconds() + 4_000 });
    await stage.fail(caller, { method, params }, 'state_conflict');
  },
);

publish.check(
  'no-state',
  { source: '03 §9', title: 'without a usable device state it is state_conflict' },
  async (stage) => {
    const account = stage.account();
    const caller = await stage.keyHolder(account);
    const params = await account.route({ relayId: stage.relayId });
    await stage.fail(caller, { method, params }, 'state_conflict');
    const call = { method: 'account.route.resolve', params: { account: account.id } };
    await stage.fail(await stage.visitor(), call, 'not_found');
  },
);

type Draft = (facts?: { updatedAt?: number; expiresAt?: number }) => Promise<AccountRoute>;

/** Drafts that must be refused. */
const refusals: Readonly<Record<string, [(draft: Draft) => Promise<JsonObject>, ErrorCode]>> = {
  'signature-altered': [
    async (draft) => {
      const route = await draft();
      return { ...route, account_signature: flipped(route.account_signature) };
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
    async (stage) => {
      const { account, caller, draft } = await staged(stage);
      await stage.fail(caller, { method, params: await params(draft) }, code);
      const call = { method: 'account.route.resolve', params: { account: account.id } };
      await stage.fail(await stage.visitor(), call, 'not_found');
    },
  );
}

publish.check(
  'period-limit',
  { source: '01 §17.1', title: 'accepts a route of exactly 3,650 days' },
  async (stage) => {
    const { caller, draft } = await staged(stage);
    const updatedAt = unixSeconds();
    await stage.succeed(
      caller,
      method,
      await draft({ updatedAt, expiresAt: updatedAt + 315_360_000 }),
    );
  },
);

publish.check(
  'foreign',
  { source: '03 §9', title: 'a route of another account is forbidden' },
  async (stage) => {
    const { caller } = await staged(stage);
    const params = await stage.account().route({ relayId: stage.relayId });
    await stage.fail(caller, { method, params }, 'forbidden');
  },
);

publish.check(
  'too-large',
  { source: '03 §9', title: 'a final document over 4,096 bytes is request_too_large' },
  async (stage) => {
    const { account, caller, draft } = await staged(stage);
    const large = { ...(await draft()), note: 'x'.repeat(4_096) };
    const params = await resign(stage, account, large);
    await stage.fail(caller, { method, params }, 'request_too_large');
  },
);

publish.check(
  'too-large-with-signature',
  { source: '03 §9', title: 'a draft that fits but not with relay_signature is too large' },
  async (stage) => {
    const { account, caller, draft } = await staged(stage);
    const empty = { ...(await draft()), note: '' };
    const room = 4_096 - JSON.stringify(empty).length;
    const fitting = { ...empty, note: 'x'.repeat(room) };
    const params = await resign(stage, account, fitting);
    await stage.fail(caller, { method, params }, 'request_too_large');
  },
);

resolve.check(
  'verifies',
  { source: '03 §10', title: 'gives the final route to anybody without a session' },
  async (stage) => {
    const { account } = await stage.resident();
    const read = { account: account.id };
    const route = await stage.succeed(await stage.visitor(), 'account.route.resolve', read);
    demand((route as JsonObject).account === account.id, "the route is the account's");
    demand((route as JsonObject).relay_id === stage.relayId, 'it names this relay');
  },
);

resolve.check(
  'none',
  { source: '03 §10', title: 'an account without a route is not_found' },
  async (stage) => {
    const call = { method: 'account.route.resolve', params: { account: stage.account().id } };
    await stage.fail(await stage.visitor(), call, 'not_found');
  },
);

resolve.check(
  'malformed',
  { source: '03 §10', title: 'a malformed account is bad_request' },
  async (stage) => {
    const caller = await stage.visitor();
    for (const params of [{}, { account: '' }, { account: 'neo:1:x' }]) {
      await stage.fail(caller, { method: 'account.route.resolve', params }, 'bad_request');
    }
  },
);

export const routeChecks = [...publish.list, ...resolve.list];
