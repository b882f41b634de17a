import {
  type ContactGrant,
  type ContactInvite,
  type ErrorCode,
  signDeviceStateQuery,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { type Device, unixSeconds } from '../fixtures/account.ts';
import { grantFor, inviteOf } from '../fixtures/contacts.ts';
import { contactPair } from '../fixtures/direct-messages.ts';
import { tampered } from '../fixtures/tampered.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';

const resolve = checksOf('device.state.resolve');
const method = 'device.state.resolve';

/** Signs a device state query about another account. */
export function deviceStateQuery(
  device: Device,
  target: string,
  authorization: ContactGrant | ContactInvite,
  createdAt = unixSeconds(),
): JsonObject {
  return signDeviceStateQuery(device.account.network, device.signer, {
    account: target,
    authorization,
    signer_certificate: device.certificate,
    created_at: createdAt,
  });
}

resolve.check(
  'own',
  { source: '03 §5.4', title: 'reads its own state, public or not' },
  async (context) => {
    const { account, device, caller } = await context.testAccount({ publicDiscovery: false });
    const state = await context.expectOk(caller, method, { account: account.id });
    const [certificate] = (state as unknown as { certificates: JsonObject[] }).certificates;
    assertEqual(
      certificate?.device_signature,
      device.certificate.device_signature,
      'a state with the device',
    );
  },
);

resolve.check(
  'own-by-post',
  {
    source: '03 §5.1',
    title: 'treats POST without signed members like GET',
    transports: ['https'],
  },
  async (context) => {
    const { account, caller } = await context.testAccount();
    const answer = await caller.call(method, { account: account.id }, 'POST');
    assertConforms(answer.ok, 'POST reads the own state');
  },
);

resolve.check(
  'own-without-home',
  { source: '03 §5.4', title: 'an account without a home here is target_not_local' },
  async (context) => {
    const account = context.account();
    const caller = await context.accountSession(account);
    const call = { method, params: { account: account.id } };
    await context.expectError(caller, call, 'target_not_local');
  },
);

resolve.check(
  'public',
  { source: '03 §5.5', title: 'with public discovery, any device may read the state' },
  async (context) => {
    const [asker, target] = await contactPair(context, true);
    const state = await context.expectOk(asker.caller, method, { account: target.account.id });
    assertEqual((state as JsonObject).account, target.account.id, "the state is the target's");
  },
);

for (const [word, publicDiscovery] of [
  ['off', false],
  ['no-profile', undefined],
] as const) {
  resolve.check(
    `public-${word}`,
    { source: '03 §5.5', title: `a public query is forbidden with ${word}` },
    async (context) => {
      const [asker, target] = await contactPair(context, publicDiscovery);
      const call = { method, params: { account: target.account.id } };
      await context.expectError(asker.caller, call, 'forbidden');
    },
  );
}

resolve.check(
  'unknown-account',
  { source: '03 §5.6', title: 'an account without a known route is route_not_found' },
  async (context) => {
    const { caller } = await context.testAccount();
    const call = { method, params: { account: context.account().id } };
    await context.expectError(caller, call, 'route_not_found');
  },
);

for (const member of [
  '$type',
  'authorization',
  'signer_certificate',
  'created_at',
  'device_signature',
]) {
  resolve.check(
    `get-with-${member}`,
    {
      source: '03 §5.1',
      title: `GET with ${member} is refused and is not treated as a public query`,
      transports: ['https'],
    },
    async (context) => {
      const [asker, target] = await contactPair(context, true);
      const credentials = await context.authenticateDevice(asker.caller, asker.device);
      const caller = context.https();
      const name = encodeURIComponent(member);
      const answer = await caller.raw(method, {
        verb: 'GET',
        path: `${caller.path(method)}?account=${target.account.id}&${name}=1`,
        headers: { [context.network.sessionHeader]: credentials.token },
      });
      assertConforms(!answer.ok && answer.code === 'bad_request', 'it is bad_request');
    },
  );
}

for (const credential of ['grant', 'invite'] as const) {
  resolve.check(
    `signed-${credential}`,
    { source: '03 §5.6', title: `a valid ${credential} lets the caller read the state` },
    async (context) => {
      const [asker, target] = await contactPair(context, false);
      const authorization =
        credential === 'grant'
          ? grantFor(target.device, asker.account.id)
          : inviteOf(target.device);
      const params = deviceStateQuery(asker.device, target.account.id, authorization);
      const state = await context.expectOk(asker.caller, method, params);
      assertEqual((state as JsonObject).account, target.account.id, "the state is the target's");
    },
  );
}

type Party = Pick<TestAccount, 'account' | 'device'>;
type Parties = { readonly asker: Party; readonly target: Party; readonly context: TestContext };

/** Invalid signed queries; public discovery is on, and the relay must not fall back to it. */
export const stateQueryRefusals: Readonly<
  Record<string, [(parties: Parties) => JsonObject | Promise<JsonObject>, ErrorCode]>
> = {
  'grant-expired': [
    ({ asker, target }) =>
      deviceStateQuery(
        asker.device,
        target.account.id,
        grantFor(target.device, asker.account.id, unixSeconds() - 60),
      ),
    'forbidden',
  ],
  'grant-for-another': [
    ({ asker, target, context }) =>
      deviceStateQuery(
        asker.device,
        target.account.id,
        grantFor(target.device, context.account().id),
      ),
    'forbidden',
  ],
  'grant-reversed': [
    ({ asker, target }) =>
      deviceStateQuery(asker.device, target.account.id, grantFor(asker.device, target.account.id)),
    'forbidden',
  ],
  'grant-signature': [
    ({ asker, target }) => {
      const grant = grantFor(target.device, asker.account.id);
      const signatures = Object.fromEntries(
        Object.entries(grant.signatures).map(([id, signature]) => [id, tampered(signature)]),
      );
      return deviceStateQuery(asker.device, target.account.id, { ...grant, signatures });
    },
    'forbidden',
  ],
  'grant-of-unknown-device': [
    async ({ asker, target }) => {
      const unknown = await target.account.device();
      return deviceStateQuery(asker.device, target.account.id, grantFor(unknown, asker.account.id));
    },
    'forbidden',
  ],
  'invite-expired': [
    ({ asker, target }) =>
      deviceStateQuery(
        asker.device,
        target.account.id,
        inviteOf(target.device, unixSeconds() - 60),
      ),
    'forbidden',
  ],
  'invite-of-another': [
    ({ asker, target }) =>
      deviceStateQuery(asker.device, target.account.id, inviteOf(asker.device)),
    'forbidden',
  ],
  'invite-signature': [
    ({ asker, target }) => {
      const invite = inviteOf(target.device);
      const device_signature = tampered(invite.device_signature);
      return deviceStateQuery(asker.device, target.account.id, { ...invite, device_signature });
    },
    'invalid_signature',
  ],
  'invite-of-unknown-device': [
    async ({ asker, target }) => {
      const unknown = await target.account.device();
      return deviceStateQuery(asker.device, target.account.id, inviteOf(unknown));
    },
    'forbidden',
  ],
  'request-signature': [
    ({ asker, target }) => {
      const params = deviceStateQuery(asker.device, target.account.id, inviteOf(target.device));
      return { ...params, device_signature: tampered(String(params.device_signature)) };
    },
    'invalid_signature',
  ],
  'created-long-ago': [
    ({ asker, target }) =>
      deviceStateQuery(
        asker.device,
        target.account.id,
        inviteOf(target.device),
        unixSeconds() - 31_536_000,
      ),
    'clock_skew',
  ],
  'created-far-ahead': [
    ({ asker, target }) =>
      deviceStateQuery(
        asker.device,
        target.account.id,
        inviteOf(target.device),
        unixSeconds() + 31_536_000,
      ),
    'clock_skew',
  ],
  'own-account': [
    ({ asker }) => deviceStateQuery(asker.device, asker.account.id, inviteOf(asker.device)),
    'forbidden',
  ],
  'foreign-certificate': [
    async ({ asker, target, context }) => {
      const other = await context.account().device();
      return deviceStateQuery(
        { ...other, id: asker.device.id },
        target.account.id,
        inviteOf(target.device),
      );
    },
    'forbidden',
  ],
  'member-missing': [
    ({ asker, target }) => {
      const { created_at: _, ...rest } = deviceStateQuery(
        asker.device,
        target.account.id,
        inviteOf(target.device),
      );
      return rest;
    },
    'bad_request',
  ],
  'one-signed-member': [
    ({ target }) => ({ account: target.account.id, created_at: unixSeconds() }),
    'bad_request',
  ],
  'type-other': [
    ({ asker, target }) => ({
      ...deviceStateQuery(asker.device, target.account.id, inviteOf(target.device)),
      $type: 'x',
    }),
    'bad_request',
  ],
  'signatures-empty': [
    ({ asker, target }) => ({
      ...deviceStateQuery(
        asker.device,
        target.account.id,
        grantFor(target.device, asker.account.id),
      ),
      authorization: { ...grantFor(target.device, asker.account.id), signatures: {} },
    }),
    'bad_request',
  ],
};

for (const [word, [params, code]] of Object.entries(stateQueryRefusals)) {
  resolve.check(
    `refused-${word}`,
    { source: '03 §5.6', title: `a signed query with ${word} is ${code}` },
    async (context) => {
      const [asker, target] = await contactPair(context, true);
      const call = { method, params: await params({ asker, target, context }) };
      await context.expectError(asker.caller, call, code);
    },
  );
}

export const deviceQueryChecks = resolve.list;
