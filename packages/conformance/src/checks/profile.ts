import {
  type ErrorCode,
  type ProfileFields,
  verifyDeviceCertificate,
  verifyProfile,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';
import { tampered } from '../fixtures/tampered.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';

const publish = checksOf('profile.publish');
const resolve = checksOf('profile.resolve');

publish.check(
  'round-trip',
  { source: '03 §7, §8', title: 'a published profile verifies for any other device' },
  async (context) => {
    const owner = await context.testAccount();
    const reader = await context.testAccount();
    const profile = context.profile(owner.device, { nickname: 'Ann é😀', bio: 'hello' });
    await context.expectOk(owner.caller, 'profile.publish', { ...profile });
    const answer = await context.expectOk(reader.caller, 'profile.resolve', {
      account: owner.account.id,
    });
    const { profile: read, signer_certificate } = answer as JsonObject;
    verifyDeviceCertificate(context.network, signer_certificate);
    verifyProfile(context.network, read, signer_certificate);
    assertEqual(read.account, owner.account.id, "the profile is the account's");
    assertEqual(read.nickname, 'Ann é😀', 'texts come back unchanged');
  },
);

publish.check(
  'unknown-members',
  { source: '01 §2.3 U1', title: 'unknown members are stored and returned unchanged' },
  async (context) => {
    const owner = await context.testAccount();
    const future = { deep: [1, { x: 'y' }] };
    const overrides = { future } as Partial<ProfileFields>;
    await context.expectOk(owner.caller, 'profile.publish', {
      ...context.profile(owner.device, overrides),
    });
    const params = { account: owner.account.id };
    const answer = (await context.expectOk(owner.caller, 'profile.resolve', params)) as JsonObject;
    verifyProfile(context.network, answer.profile, owner.device.certificate);
    assertEqual(
      JSON.stringify((answer.profile as JsonObject).future),
      JSON.stringify(future),
      'the unknown member',
    );
  },
);

publish.check(
  'order',
  {
    source: '01 §11 F4',
    title: 'a profile of a later or equal time replaces; an earlier one is stale',
  },
  async (context) => {
    const owner = await context.testAccount();
    const now = unixSeconds();
    const send = (updated_at: number, nickname: string) => ({
      ...context.profile(owner.device, { updated_at, nickname }),
    });
    await context.expectOk(owner.caller, 'profile.publish', send(now - 10, 'first'));
    const earlier = { method: 'profile.publish', params: send(now - 11, 'earlier') };
    await context.expectError(owner.caller, earlier, 'stale_state');
    assertEqual(await nicknameOf(context, owner), 'first', 'a stale profile replaces nothing');
    await context.expectOk(owner.caller, 'profile.publish', send(now - 10, 'equal'));
    assertEqual(await nicknameOf(context, owner), 'equal', 'an equal time replaces');
    await context.expectOk(owner.caller, 'profile.publish', send(now - 9, 'later'));
    assertEqual(await nicknameOf(context, owner), 'later', 'a later time replaces');
  },
);

async function nicknameOf(
  context: TestContext,
  { account, caller }: TestAccount,
): Promise<unknown> {
  const answer = await context.expectOk(caller, 'profile.resolve', { account: account.id });
  return ((answer as JsonObject).profile as JsonObject).nickname;
}

/** Invalid profiles, and the error code of each. */
const refusals: Readonly<
  Record<
    string,
    [(context: TestContext, owner: TestAccount) => JsonObject | Promise<JsonObject>, ErrorCode]
  >
> = {
  future: [
    (context, { device }) => ({
      ...context.profile(device, { updated_at: unixSeconds() + 31_536_000 }),
    }),
    'clock_skew',
  ],
  signature: [
    (context, { device }) => {
      const profile = context.profile(device);
      return { ...profile, device_signature: tampered(profile.device_signature) };
    },
    'invalid_signature',
  ],
  altered: [
    (context, { device }) => ({ ...context.profile(device), nickname: 'another' }),
    'invalid_signature',
  ],
  'of-another-account': [
    async (context) => ({ ...context.profile(await context.account().device()) }),
    'forbidden',
  ],
  'by-another-device': [
    async (context, { account }) => ({ ...context.profile(await account.device()) }),
    'invalid_signature',
  ],
  'nickname-blank': [
    (context, { device }) => ({ ...context.profile(device), nickname: '\u2003\u0085 ' }),
    'bad_request',
  ],
  'nickname-too-long': [
    (context, { device }) => ({ ...context.profile(device), nickname: `${'é'.repeat(128)}x` }),
    'bad_request',
  ],
  'bio-too-long': [
    (context, { device }) => ({ ...context.profile(device), bio: 'x'.repeat(2_049) }),
    'bad_request',
  ],
  'discovery-missing': [
    (context, { device }) => {
      const { public_discovery: _, ...rest } = context.profile(device);
      return rest;
    },
    'bad_request',
  ],
  'time-as-text': [
    (context, { device }) => ({ ...context.profile(device), updated_at: '1' }),
    'bad_request',
  ],
  'too-large': [
    (context, { device }) => ({ ...context.profile(device), note: 'x'.repeat(8_192) }),
    'request_too_large',
  ],
  'avatar-not-an-image': [
    (context, { device }) => ({
      ...context.profile(device),
      avatar: {
        uri: 'https://content.example/a',
        hash: `sha256:${'A'.repeat(43)}`,
        content_type: 'text/plain',
        size: 1,
      },
    }),
    'bad_request',
  ],
  'avatar-not-https': [
    (context, { device }) => ({
      ...context.profile(device),
      avatar: {
        uri: 'http://content.example/a',
        hash: `sha256:${'A'.repeat(43)}`,
        content_type: 'image/png',
        size: 1,
      },
    }),
    'bad_request',
  ],
  'null-nickname': [
    (context, { device }) => ({ ...context.profile(device), nickname: null }),
    'bad_request',
  ],
};

for (const [word, [params, code]] of Object.entries(refusals)) {
  publish.check(
    `refused-${word}`,
    { source: '01 §11 F1–F4, 03 §7', title: `a profile that is ${word} is ${code}` },
    async (context) => {
      const owner = await context.testAccount({ publicDiscovery: true });
      const call = { method: 'profile.publish', params: await params(context, owner) };
      await context.expectError(owner.caller, call, code);
      const read = { account: owner.account.id };
      const answer = (await context.expectOk(owner.caller, 'profile.resolve', read)) as JsonObject;
      assertEqual(
        (answer.profile as JsonObject).public_discovery,
        true,
        'a refused profile replaces nothing',
      );
    },
  );
}

for (const [word, overrides] of [
  ['nickname-limit', { nickname: 'é'.repeat(128) }],
  ['bio-limit', { bio: 'x'.repeat(2_048) }],
  ['nickname-empty', { nickname: '' }],
  ['nickname-byte-order-mark', { nickname: '\ufeff' }],
] as const) {
  publish.check(word, { source: '01 §11, §2.4', title: `accepts ${word}` }, async (context) => {
    const owner = await context.testAccount();
    await context.expectOk(owner.caller, 'profile.publish', {
      ...context.profile(owner.device, overrides),
    });
  });
}

publish.check(
  'size-limit',
  { source: '01 §11 F1', title: 'accepts a profile of exactly 8,192 bytes' },
  async (context) => {
    const owner = await context.testAccount();
    const empty = context.profile(owner.device, { note: '' } as Partial<ProfileFields>);
    const room = 8_192 - new TextEncoder().encode(JSON.stringify(empty)).length;
    const overrides = { note: 'x'.repeat(room) } as Partial<ProfileFields>;
    await context.expectOk(owner.caller, 'profile.publish', {
      ...context.profile(owner.device, overrides),
    });
  },
);

resolve.check(
  'none',
  { source: '03 §8', title: 'an account without a profile is not_found' },
  async (context) => {
    const { account, caller } = await context.testAccount();
    const call = { method: 'profile.resolve', params: { account: account.id } };
    await context.expectError(caller, call, 'not_found');
  },
);

resolve.check(
  'no-route',
  { source: '03 §8', title: 'an account without a known route is route_not_found' },
  async (context) => {
    const { caller } = await context.testAccount();
    const call = { method: 'profile.resolve', params: { account: context.account().id } };
    await context.expectError(caller, call, 'route_not_found');
  },
);

for (const [word, params] of [
  ['missing', {}],
  ['empty', { account: '' }],
  ['malformed', { account: 'neo:1:N' }],
] as const) {
  resolve.check(
    `account-${word}`,
    { source: '03 §8', title: `an account that is ${word} is bad_request` },
    async (context) => {
      const { caller } = await context.testAccount();
      await context.expectError(caller, { method: 'profile.resolve', params }, 'bad_request');
    },
  );
}

resolve.check(
  'closed-profile',
  { source: '03 §8', title: 'a profile is readable with public discovery off' },
  async (context) => {
    const owner = await context.testAccount({ publicDiscovery: false });
    const reader = await context.testAccount();
    await context.expectOk(reader.caller, 'profile.resolve', { account: owner.account.id });
  },
);

export const profileChecks = [...publish.list, ...resolve.list];
