import {
  type ErrorCode,
  type JsonObject,
  type ProfileFacts,
  verifyDeviceCertificate,
  verifyProfile,
} from '@posthouse/protocol';
import { demand } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';
import { flipped } from '../fixtures/tampered.ts';
import type { Resident, Stage } from '../fixtures/test-context.ts';

const publish = checksOf('profile.publish');
const resolve = checksOf('profile.resolve');

publish.check(
  'round-trip',
  { source: '03 §7, §8', title: 'a published profile verifies for any other device' },
  async (stage) => {
    const owner = await stage.resident();
    const reader = await stage.resident();
    const profile = stage.profile(owner.device, { nickname: 'Ann é😀', bio: 'hello' });
    await stage.succeed(owner.caller, 'profile.publish', { ...profile });
    const answer = await stage.succeed(reader.caller, 'profile.resolve', {
      account: owner.account.id,
    });
    const { profile: read, signer_certificate } = answer as JsonObject;
    verifyDeviceCertificate(stage.network, signer_certificate);
    verifyProfile(stage.network, read, signer_certificate);
    demand(read.account === owner.account.id, "the profile is the account's");
    demand(read.nickname === 'Ann é😀', 'texts come back unchanged');
  },
);

publish.check(
  'unknown-members',
  { source: '01 §2.3 U1', title: 'unknown members come back signed and in place' },
  async (stage) => {
    const owner = await stage.resident();
    const future = { deep: [1, { x: 'y' }] };
    const facts = { future } as Partial<ProfileFacts>;
    await stage.succeed(owner.caller, 'profile.publish', { ...stage.profile(owner.device, facts) });
    const params = { account: owner.account.id };
    const answer = (await stage.succeed(owner.caller, 'profile.resolve', params)) as JsonObject;
    verifyProfile(stage.network, answer.profile, owner.device.certificate);
    demand(
      JSON.stringify((answer.profile as JsonObject).future) === JSON.stringify(future),
      'the unknown member is kept',
    );
  },
);

publish.check(
  'order',
  {
    source: '01 §11 F4',
    title: 'a later profile replaces, an earlier one is stale, equal replaces',
  },
  async (stage) => {
    const owner = await stage.resident();
    const now = unixSeconds();
    const send = (updated_at: number, nickname: string) => ({
      ...stage.profile(owner.device, { updated_at, nickname }),
    });
    await stage.succeed(owner.caller, 'profile.publish', send(now - 10, 'first'));
    const earlier = { method: 'profile.publish', params: send(now - 11, 'earlier') };
    await stage.fail(owner.caller, earlier, 'stale_state');
    demand((await nicknameOf(stage, owner)) === 'first', 'a stale profile replaces nothing');
    await stage.succeed(owner.caller, 'profile.publish', send(now - 10, 'equal'));
    demand((await nicknameOf(stage, owner)) === 'equal', 'an equal time replaces');
    await stage.succeed(owner.caller, 'profile.publish', send(now - 9, 'later'));
    demand((await nicknameOf(stage, owner)) === 'later', 'a later time replaces');
  },
);

async function nicknameOf(stage: Stage, { account, caller }: Resident): Promise<unknown> {
  const answer = await stage.succeed(caller, 'profile.resolve', { account: account.id });
  return ((answer as JsonObject).profile as JsonObject).nickname;
}

/** Profiles that must be refused, as a resident would send them. */
const refusals: Readonly<
  Record<string, [(stage: Stage, owner: Resident) => JsonObject | Promise<JsonObject>, ErrorCode]>
> = {
  future: [
    (stage, { device }) => ({
      ...stage.profile(device, { updated_at: unixSeconds() + 31_536_000 }),
    }),
    'clock_skew',
  ],
  signature: [
    (stage, { device }) => {
      const profile = stage.profile(device);
      return { ...profile, device_signature: flipped(profile.device_signature) };
    },
    'invalid_signature',
  ],
  altered: [
    (stage, { device }) => ({ ...stage.profile(device), nickname: 'another' }),
    'invalid_signature',
  ],
  'of-another-account': [
    async (stage) => ({ ...stage.profile(await stage.account().device()) }),
    'forbidden',
  ],
  'by-another-device': [
    async (stage, { account }) => ({ ...stage.profile(await account.device()) }),
    'invalid_signature',
  ],
  'nickname-blank': [
    (stage, { device }) => ({ ...stage.profile(device), nickname: '\u2003\u0085 ' }),
    'bad_request',
  ],
  'nickname-too-long': [
    (stage, { device }) => ({ ...stage.profile(device), nickname: `${'é'.repeat(128)}x` }),
    'bad_request',
  ],
  'bio-too-long': [
    (stage, { device }) => ({ ...stage.profile(device), bio: 'x'.repeat(2_049) }),
    'bad_request',
  ],
  'discovery-missing': [
    (stage, { device }) => {
      const { public_discovery: _, ...rest } = stage.profile(device);
      return rest;
    },
    'bad_request',
  ],
  'time-as-text': [
    (stage, { device }) => ({ ...stage.profile(device), updated_at: '1' }),
    'bad_request',
  ],
  'too-large': [
    (stage, { device }) => ({ ...stage.profile(device), note: 'x'.repeat(8_192) }),
    'request_too_large',
  ],
  'avatar-not-an-image': [
    (stage, { device }) => ({
      ...stage.profile(device),
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
    (stage, { device }) => ({
      ...stage.profile(device),
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
    (stage, { device }) => ({ ...stage.profile(device), nickname: null }),
    'bad_request',
  ],
};

for (const [word, [params, code]] of Object.entries(refusals)) {
  publish.check(
    `refused-${word}`,
    { source: '01 §11 F1–F4, 03 §7', title: `a profile that is ${word} is ${code}` },
    async (stage) => {
      const owner = await stage.resident({ publicDiscovery: true });
      const call = { method: 'profile.publish', params: await params(stage, owner) };
      await stage.fail(owner.caller, call, code);
      const read = { account: owner.account.id };
      const answer = (await stage.succeed(owner.caller, 'profile.resolve', read)) as JsonObject;
      demand(
        (answer.profile as JsonObject).public_discovery === true,
        'a refused profile replaces nothing',
      );
    },
  );
}

for (const [word, facts] of [
  ['nickname-limit', { nickname: 'é'.repeat(128) }],
  ['bio-limit', { bio: 'x'.repeat(2_048) }],
  ['nickname-empty', { nickname: '' }],
  ['nickname-byte-order-mark', { nickname: '\ufeff' }],
] as const) {
  publish.check(word, { source: '01 §11, §2.4', title: `accepts ${word}` }, async (stage) => {
    const owner = await stage.resident();
    await stage.succeed(owner.caller, 'profile.publish', { ...stage.profile(owner.device, facts) });
  });
}

publish.check(
  'size-limit',
  { source: '01 §11 F1', title: 'accepts a profile of exactly 8,192 bytes' },
  async (stage) => {
    const owner = await stage.resident();
    const empty = stage.profile(owner.device, { note: '' } as Partial<ProfileFacts>);
    const room = 8_192 - new TextEncoder().encode(JSON.stringify(empty)).length;
    const facts = { note: 'x'.repeat(room) } as Partial<ProfileFacts>;
    await stage.succeed(owner.caller, 'profile.publish', { ...stage.profile(owner.device, facts) });
  },
);

resolve.check(
  'none',
  { source: '03 §8', title: 'an account without a profile is not_found' },
  async (stage) => {
    const { account, caller } = await stage.resident();
    const call = { method: 'profile.resolve', params: { account: account.id } };
    await stage.fail(caller, call, 'not_found');
  },
);

resolve.check(
  'no-route',
  { source: '03 §8', title: 'an account without a known route is route_not_found' },
  async (stage) => {
    const { caller } = await stage.resident();
    const call = { method: 'profile.resolve', params: { account: stage.account().id } };
    await stage.fail(caller, call, 'route_not_found');
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
    async (stage) => {
      const { caller } = await stage.resident();
      await stage.fail(caller, { method: 'profile.resolve', params }, 'bad_request');
    },
  );
}

resolve.check(
  'closed-profile',
  { source: '03 §8', title: 'a profile is readable with public discovery off' },
  async (stage) => {
    const owner = await stage.resident({ publicDiscovery: false });
    const reader = await stage.resident();
    await stage.succeed(reader.caller, 'profile.resolve', { account: owner.account.id });
  },
);

export const profileChecks = [...publish.list, ...resolve.list];
