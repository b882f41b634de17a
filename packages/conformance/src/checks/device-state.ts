import { isJsonObject, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { type Account, type Device, unixSeconds } from '../fixtures/account.ts';
import { tampered } from '../fixtures/tampered.ts';
import type { TestContext } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';

const publish = checksOf('device.state.publish');
const method = 'device.state.publish';

/** Makes an account that is not registered yet, a caller with its account session, and a device. */
async function newcomer(context: TestContext) {
  const account = context.account();
  return { account, device: await account.device(), caller: await context.accountSession(account) };
}

function statusOf(result: unknown): JsonObject {
  assertConforms(isJsonObject(result), 'the answer is an object');
  return result;
}

publish.check(
  'staged',
  { source: '01 §10.1, 03 §4.2', title: 'a state without a home is pre-stored with a deadline' },
  async (context) => {
    const { account, device, caller } = await newcomer(context);
    const status = statusOf(await context.expectOk(caller, method, await account.state([device])));
    assertEqual(status.status, 'staged', 'status is staged');
    assertConforms(Number(status.staged_until) > unixSeconds(), 'staged_until in the future');
  },
);

publish.check(
  'staged-repeat',
  { source: '03 §4.2', title: 'an identical staged state keeps its original deadline' },
  async (context) => {
    const { account, device, caller } = await newcomer(context);
    const state = await account.state([device]);
    const first = statusOf(await context.expectOk(caller, method, state));
    const second = statusOf(await context.expectOk(caller, method, state));
    assertEqual(second.status, 'staged', 'still staged');
    assertEqual(first.staged_until, second.staged_until, 'the original staged_until');
  },
);

publish.check(
  'staged-then-accepted',
  { source: '03 §4.2', title: 'an activated staged state repeats as accepted' },
  async (context) => {
    const account = context.account();
    const device = await account.device();
    const state = await account.state([device]);
    const caller = await context.accountSession(account);
    await context.expectOk(caller, method, state);
    const route = await account.route({ relayId: context.relayId });
    await context.expectOk(caller, 'account.route.publish', route);
    const status = statusOf(await context.expectOk(caller, method, state));
    assertEqual(status.status, 'accepted', 'status is accepted');
    assertEqual(status.staged_until, undefined, 'accepted has no staged_until');
  },
);

publish.check(
  'accepted',
  { source: '01 §10.1', title: 'a higher revision is accepted in device and account sessions' },
  async (context) => {
    const { account, device, caller } = await context.testAccount();
    const accountSession = await context.accountSession(account);
    for (const by of [caller, accountSession]) {
      const state = await account.state([device]);
      const status = statusOf(await context.expectOk(by, method, state));
      assertEqual(status.status, 'accepted', 'status is accepted');
      const read = await context.expectOk(by, 'device.state.resolve', { account: account.id });
      assertEqual((read as JsonObject).revision, state.revision, 'the new state is read back');
    }
  },
);

publish.check(
  'repeat',
  { source: '01 §10.1', title: 'an identical repeat is accepted and changes nothing' },
  async (context) => {
    const { account, device, caller } = await context.testAccount();
    const state = await account.state([device]);
    await context.expectOk(caller, method, state);
    const status = statusOf(await context.expectOk(caller, method, state));
    assertConforms(
      status.status === 'accepted' && status.staged_until === undefined,
      'accepted again',
    );
  },
);

for (const home of ['staged', 'accepted'] as const) {
  publish.check(
    `lower-${home}`,
    { source: '01 §10.1', title: `a revision below the ${home} one is stale_state` },
    async (context) => {
      const { account, device, caller, current } = await published(context, home);
      const params = await account.state([device], current.revision - 1);
      await context.expectError(caller, { method, params }, 'stale_state');
    },
  );
  publish.check(
    `conflict-${home}`,
    { source: '01 §10.1', title: `other content at the ${home} revision is state_conflict` },
    async (context) => {
      const { account, device, caller, current } = await published(context, home);
      const other = await account.device();
      const params = await account.state([device, other], current.revision);
      await context.expectError(caller, { method, params }, 'state_conflict');
      // Nothing was overwritten: the first content still counts as a repeat.
      await context.expectOk(caller, method, current);
    },
  );
}

async function published(context: TestContext, home: 'staged' | 'accepted') {
  const place = home === 'staged' ? await newcomer(context) : await context.testAccount();
  const current = await place.account.state([place.device]);
  await context.expectOk(place.caller, method, current);
  return { ...place, current };
}

publish.check(
  'empty',
  { source: '01 §10 A4', title: 'a state without certificates permits no device' },
  async (context) => {
    const { account, caller } = await context.testAccount();
    const accountSession = await context.accountSession(account);
    await context.expectOk(accountSession, method, await account.state([]));
    await context.expectError(caller, { method: 'message.timeline.sync' }, 'unauthorized');
    const read = await context.expectOk(accountSession, 'device.state.resolve', {
      account: account.id,
    });
    assertEqual((read as { certificates: unknown[] }).certificates.length, 0, 'no certificates');
  },
);

for (const count of [8, 9]) {
  publish.check(
    `certificates-${count}`,
    { source: '01 §10', title: `${count} certificates are ${count > 8 ? 'too many' : 'enough'}` },
    async (context) => {
      const { account, device, caller } = await newcomer(context);
      const state = await account.state([device]);
      const certificates = [state.certificates[0]];
      while (certificates.length < count) certificates.push((await account.device()).certificate);
      if (count > 8) {
        const params = { ...state, certificates } as unknown as JsonObject;
        await context.expectError(caller, { method, params }, 'bad_request');
      } else {
        const devices = await Promise.all(Array.from({ length: 8 }, () => account.device()));
        await context.expectOk(caller, method, await account.state(devices));
      }
    },
  );
}

type Change = (state: JsonObject, account: Account, device: Device) => JsonObject;

/** Alterations of a valid state, and the error code of each. */
const alterations: Readonly<Record<string, [Change, 'bad_request' | 'invalid_signature']>> = {
  'signature-altered': [
    (state) => ({ ...state, account_signature: tampered(String(state.account_signature)) }),
    'invalid_signature',
  ],
  'revision-altered': [
    (state) => ({ ...state, revision: Number(state.revision) + 1 }),
    'invalid_signature',
  ],
  'unknown-member-added': [(state) => ({ ...state, note: 'x' }), 'invalid_signature'],
  'certificate-signature': [
    (state, _account, { certificate }) => ({
      ...state,
      certificates: [{ ...certificate, device_signature: tampered(certificate.device_signature) }],
    }),
    'invalid_signature',
  ],
  'type-missing': [({ $type: _, ...state }) => state, 'bad_request'],
  'type-other': [(state) => ({ ...state, $type: `${state.$type}.v2` }), 'bad_request'],
  'context-on-the-wire': [(state) => ({ ...state, $context: null }), 'bad_request'],
  'context-in-certificate': [
    (state, account, { certificate }) => ({
      ...state,
      certificates: [{ ...certificate, $context: account.network.context }],
    }),
    'bad_request',
  ],
  'revision-negative': [(state) => ({ ...state, revision: -1 }), 'bad_request'],
  'revision-text': [(state) => ({ ...state, revision: '1' }), 'bad_request'],
  'certificates-missing': [({ certificates: _, ...state }) => state, 'bad_request'],
  'certificates-null': [(state) => ({ ...state, certificates: null }), 'bad_request'],
  'null-in-unknown-member': [(state) => ({ ...state, note: { x: null } }), 'bad_request'],
  'signature-not-canonical': [
    (state) => ({ ...state, account_signature: `${'A'.repeat(85)}B` }),
    'bad_request',
  ],
  'device-twice': [
    (state) => ({
      ...state,
      certificates: [
        ...(state.certificates as JsonObject[]),
        ...(state.certificates as JsonObject[]),
      ],
    }),
    'bad_request',
  ],
};

for (const [word, [change, code]] of Object.entries(alterations)) {
  publish.check(
    `altered-${word}`,
    { source: '03 §4.3, 01 §10', title: `a state with ${word} is ${code}` },
    async (context) => {
      const { account, device, caller } = await newcomer(context);
      const state = await account.state([device]);
      const params = change(state, account, device);
      await context.expectError(caller, { method, params }, code);
      // Nothing was stored: the valid state is accepted as the first.
      await context.expectOk(caller, method, state);
    },
  );
}

publish.check(
  'foreign',
  { source: '03 §4.3', title: 'a state of another account is forbidden' },
  async (context) => {
    const { caller } = await newcomer(context);
    const other = context.account();
    const params = await other.state([await other.device()]);
    await context.expectError(caller, { method, params }, 'forbidden');
  },
);

publish.check(
  'too-large',
  { source: '01 §10 A2', title: 'a state over 131,072 bytes is request_too_large' },
  async (context) => {
    const { account, device, caller } = await newcomer(context);
    const params = { ...(await account.state([device])), note: 'x'.repeat(131_072) };
    await context.expectError(caller, { method, params }, 'request_too_large');
  },
);

publish.check(
  'notice',
  {
    source: '02 §12.4',
    title: 'notifies every device that stays valid of a new state, and no removed device',
    transports: ['wss'],
  },
  async (context) => {
    const { account, devices, callers } = await context.testAccount({ devices: 3 });
    const [first, second, third] = callers as [WssCaller, WssCaller, WssCaller];
    const remaining = [devices[0] as Device, devices[1] as Device];
    const state = await account.state(remaining);
    await context.expectOk(first, method, state);
    const notified = await second.notification('device.state.changed');
    assertEqual(notified.revision, state.revision, 'the revision is the new one');
    // A repeat causes no notification: the next one is about the next revision.
    await context.expectOk(first, method, state);
    const next = await account.state(remaining);
    await context.expectOk(first, method, next);
    const again = await second.notification('device.state.changed');
    assertEqual(again.revision, next.revision, 'an identical repeat sends nothing');
    await context.expectError(third, { method: 'message.timeline.sync' }, 'unauthorized');
    assertConforms(
      third.socket.pending.every((text) => !text.includes('device.state.changed')),
      'no notification to the removed device',
    );
  },
);

export const deviceStatePublishChecks = publish.list;
