/** Queries of other relays about accounts at home here (07 §C4 to §C7). */
import { verifyDeviceCertificate, verifyDeviceState, verifyProfile } from '@posthouse/protocol';
import { isJsonObject, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { grantFor, inviteOf } from '../../fixtures/contacts.ts';
import { relayTime, untilRelayTime } from '../../fixtures/relay-info.ts';
import { publishDevices } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import type { HomeAccount } from '../../seat/home-account.ts';
import type { RelayConnection } from '../../seat/relay-connection.ts';
import { deviceStateQuery, stateQueryRefusals } from '../device-query.ts';
import { relayChecksOf } from './common.ts';

const status = relayChecksOf('rpc.device.status');
const states = relayChecksOf('rpc.device.state.resolve');
const profiles = relayChecksOf('rpc.profile.resolve');

async function connect(context: TestContext): Promise<RelayConnection> {
  return await (await context.seat()).connect();
}

const statusOf = (account: string, device_id: string) => ({ account, device_id });

status.check(
  'active',
  { source: '07 §C5', title: 'answers active with the end of the latest certificate' },
  async (context) => {
    const { account, device } = await context.testAccount();
    const connection = await connect(context);
    const answer = await connection.expectResult('device.status', statusOf(account.id, device.id));
    assertEqual(answer.status, 'active', 'status of a current device');
    assertEqual(answer.expires_at, device.certificate.expires_at, 'end of the certificate');
  },
);

status.check(
  'renewed',
  { source: '07 §C5', title: 'answers with the end of a renewed certificate at once' },
  async (context) => {
    const { account, device, devices, caller, callers } = await context.testAccount();
    const connection = await connect(context);
    await connection.expectResult('device.status', statusOf(account.id, device.id));
    const expiresAt = device.certificate.expires_at - 1_000;
    const certificate = await account.certify(device.signer, { expiresAt });
    const renewed = { account, devices, device, caller, callers };
    await publishDevices(context, renewed, [{ ...device, certificate }]);
    const answer = await connection.expectResult('device.status', statusOf(account.id, device.id));
    assertEqual(answer.expires_at, expiresAt, 'end of the renewed certificate');
  },
);

/** Devices that are not current; the answer does not say why. */
const inactive: Readonly<
  Record<string, (context: TestContext, account: TestAccount) => Promise<string>>
> = {
  unknown: async (_context, { account }) => (await account.device()).id,
  removed: async (context, known) => {
    const [first, second] = known.devices;
    if (first === undefined || second === undefined) throw new Error('two devices are needed');
    await publishDevices(context, known, [first]);
    return second.id;
  },
  'not-yet-valid': async (context, known) => {
    const notBefore = (await relayTime(context)) + 86_400;
    const later = await known.account.device({ notBefore });
    await publishDevices(context, known, [known.device, later]);
    return later.id;
  },
  expired: async (context, known) => {
    const expiresAt = (await relayTime(context)) + 3;
    const short = await known.account.device({ expiresAt });
    await publishDevices(context, known, [known.device, short]);
    await untilRelayTime(context, expiresAt);
    return short.id;
  },
};

for (const [word, makeDevice] of Object.entries(inactive)) {
  status.check(
    `inactive-${word}`,
    { source: '07 §C5', title: `answers inactive, and nothing else, for a device that is ${word}` },
    async (context) => {
      const known = await context.testAccount({ devices: 2 });
      const connection = await connect(context);
      const deviceId = await makeDevice(context, known);
      const params = statusOf(known.account.id, deviceId);
      const answer = await connection.expectResult('device.status', params);
      assertEqual(answer.status, 'inactive', `status of a device that is ${word}`);
      assertConforms(!Object.hasOwn(answer, 'expires_at'), 'inactive has no expires_at');
    },
  );
}

/** Requests about an account that does not live here, and those that are malformed. */
for (const [method, { check }] of [
  ['device.status', status],
  ['device.state.resolve', states],
  ['profile.resolve', profiles],
] as const) {
  const source = '07 §C4';
  const params = (account: string, deviceId: string): JsonObject =>
    method === 'device.status' ? statusOf(account, deviceId) : { account };

  check(
    'unknown-account',
    { source, title: 'an account whose home cannot be determined is target_not_local' },
    async (context) => {
      const connection = await connect(context);
      const account = context.account();
      const device = await account.device();
      const call = { method, params: params(account.id, device.id) };
      await connection.expectRefused(call, 'target_not_local');
    },
  );

  check(
    'elsewhere',
    { source, title: 'an account with a route to another relay is route_stale, never forwarded' },
    async (context) => {
      const [seat, other] = [await context.seat(), await context.seat()];
      const connection = await seat.connect();
      await other.connect();
      const home = await other.home();
      await connection.storeRoute(home.route);
      const call = { method, params: params(home.id, home.device.id) };
      await connection.expectRefused(call, 'route_stale');
      assertEqual(other.service.calls(method).length, 0, 'requests that were passed on');
    },
  );

  check(
    'malformed',
    { source: '07 §C3', title: 'malformed parameters are bad_request' },
    async (context) => {
      const { account, device } = await context.testAccount();
      const connection = await connect(context);
      const good = params(account.id, device.id);
      const { account: _, ...without } = good;
      const bad: readonly JsonObject[] = [
        without,
        { ...good, account: 5 },
        { ...good, account: '' },
        { ...good, account: 'neo:1:x' },
        { ...good, account: null },
        ...(method === 'device.status'
          ? [{ account: account.id }, { ...good, device_id: 'dev_short' }]
          : []),
      ];
      for (const wrong of bad) {
        await connection.expectRefused({ method, params: wrong }, 'bad_request');
      }
    },
  );
}

states.check(
  'public',
  { source: '07 §C6', title: 'answers a public query with the complete state' },
  async (context) => {
    const { account, device } = await context.testAccount({ publicDiscovery: true });
    const connection = await connect(context);
    const state: unknown = await connection.expectResult('device.state.resolve', {
      account: account.id,
    });
    verifyDeviceState(context.network, state);
    assertEqual(state.account, account.id, 'account of the state');
    assertEqual(state.certificates, [device.certificate], 'certificates of the state');
  },
);

states.check(
  'public-no-devices',
  { source: '07 §C6', title: 'answers with a state without devices, and keeps the profile' },
  async (context) => {
    const known = await context.testAccount({ publicDiscovery: true });
    const connection = await connect(context);
    await publishDevices(context, known, []);
    const params = { account: known.account.id };
    const state = await connection.expectResult('device.state.resolve', params);
    assertEqual(state.certificates, [], 'certificates of the state');
    const { profile } = await connection.expectResult('profile.resolve', params);
    assertConforms(isJsonObject(profile), 'the profile of a device that was removed stays');
  },
);

for (const [word, publicDiscovery] of [
  ['not-public', false],
  ['no-profile', undefined],
] as const) {
  states.check(
    `public-${word}`,
    { source: '07 §C6', title: `a public query of an account with ${word} is forbidden` },
    async (context) => {
      const options = publicDiscovery === undefined ? {} : { publicDiscovery };
      const { account } = await context.testAccount(options);
      const connection = await connect(context);
      const call = { method: 'device.state.resolve', params: { account: account.id } };
      await connection.expectRefused(call, 'forbidden');
    },
  );
}

for (const credential of ['grant', 'invite'] as const) {
  states.check(
    `signed-${credential}`,
    { source: '07 §C6', title: `answers a query that a device signed with a valid ${credential}` },
    async (context) => {
      const target = await context.testAccount({ publicDiscovery: false });
      const seat = await context.seat();
      const connection = await seat.connect();
      const asker = await seat.home();
      const authorization =
        credential === 'grant' ? grantFor(target.device, asker.id) : inviteOf(target.device);
      const params = deviceStateQuery(asker.device, target.account.id, authorization);
      const state = await connection.expectResult('device.state.resolve', params);
      assertEqual(state.account, target.account.id, 'account of the state');
    },
  );
}

/** A fault of the session's device, which there is not between relays. */
const sessionFaults = new Set(['foreign-certificate']);

for (const [word, [build, code]] of Object.entries(stateQueryRefusals)) {
  if (sessionFaults.has(word)) continue;
  states.check(
    `refused-${word}`,
    {
      source: '07 §C6',
      title: `a signed query with ${word} is ${code}, also with a public profile`,
    },
    async (context) => {
      const seat = await context.seat();
      const connection = await seat.connect();
      // A query of one's own state is possible only for an account at home here.
      const isOwn = word === 'own-account';
      const target = await context.testAccount({ publicDiscovery: true });
      const asker: HomeAccount | TestAccount = isOwn ? target : await seat.home();
      const params = await build({ context, asker, target });
      const call = { method: 'device.state.resolve', params, what: word };
      await connection.expectRefused(call, code);
    },
  );
}

profiles.check(
  'profile',
  { source: '07 §C7', title: 'answers with the profile and the certificate of its signer' },
  async (context) => {
    const { account } = await context.testAccount({ publicDiscovery: false });
    const connection = await connect(context);
    const params = { account: account.id };
    const answer = await connection.expectResult('profile.resolve', params);
    const [profile, certificate]: unknown[] = [answer.profile, answer.signer_certificate];
    verifyDeviceCertificate(context.network, certificate);
    verifyProfile(context.network, profile, certificate);
    assertEqual(profile.account, account.id, 'account of the profile');
  },
);

profiles.check(
  'none',
  { source: '07 §C7', title: 'an account without a profile is not_found' },
  async (context) => {
    const { account } = await context.testAccount();
    const connection = await connect(context);
    const call = { method: 'profile.resolve', params: { account: account.id } };
    await connection.expectRefused(call, 'not_found');
  },
);

export const homeQueryChecks = [...status.list, ...states.list, ...profiles.list];
