import { encodeBase64url } from '@posthouse/protocol';
import { isJsonObject, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';
import { tampered, withOtherS } from '../fixtures/tampered.ts';

const challenge = checksOf('auth.challenge');

challenge.check(
  'fresh',
  { source: '02 §9.2', title: 'returns a new nonce and an expiry after its creation' },
  async (context) => {
    const caller = await context.anonymous();
    const account = context.account().id;
    const first = (await context.expectOk(caller, 'auth.challenge', { account })) as JsonObject;
    const second = (await context.expectOk(caller, 'auth.challenge', { account })) as JsonObject;
    assertConforms(first.nonce !== second.nonce, 'a new nonce for each call');
    assertConforms(
      /^[!-~]{1,256}$/.test(String(first.nonce)),
      'nonce is 1 to 256 visible ASCII characters',
    );
    assertConforms(
      Number(first.expires_at) > Number(first.created_at),
      'expires_at is after created_at',
    );
  },
);

const malformedAccounts: readonly (readonly [string, (valid: string) => JsonObject])[] = [
  ['missing', () => ({})],
  ['null', () => ({ account: null })],
  ['empty', () => ({ account: '' })],
  ['number', () => ({ account: 7 })],
  ['array', (valid) => ({ account: [valid] })],
  ['checksum', (valid) => ({ account: swapLastCharacters(valid) })],
  ['other-network', (valid) => ({ account: valid.replace(/^neo:[0-9]+/, 'neo:1') })],
  ['leading-zero', (valid) => ({ account: valid.replace(/^neo:/, 'neo:0') })],
  ['upper-case', (valid) => ({ account: valid.replace(/^neo/, 'NEO') })],
  ['line-feed', (valid) => ({ account: `${valid}\n` })],
];

/** Swaps the last characters, so that the Base58Check checksum is wrong. */
function swapLastCharacters(account: string): string {
  const last = account.at(-1) === 'a' ? 'b' : 'a';
  return account.slice(0, -1) + last;
}

for (const [word, params] of malformedAccounts) {
  challenge.check(
    `account-${word}`,
    { source: '02 §9.2, 01 §7', title: `refuses a malformed account (${word})` },
    async (context) => {
      const method = 'auth.challenge';
      const caller = await context.anonymous();
      await context.expectError(
        caller,
        { method, params: params(context.account().id) },
        'bad_request',
      );
    },
  );
}

const device = checksOf('auth.device.verify');

device.check(
  'session',
  { source: '02 §9.3, §10.1', title: 'a current device gets a device session' },
  async (context) => {
    const { account, device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const credentials = await context.authenticateDevice(caller, first);
    assertEqual(credentials.mode, 'device', 'mode is device');
    assertConforms(
      credentials.expires_at <= first.certificate.expires_at,
      'the session does not outlive the certificate (02 §10.2)',
    );
    await context.expectOk(caller, 'device.state.resolve', { account: account.id });
  },
);

device.check(
  'nonce-once',
  { source: '02 §9.2', title: 'a nonce is accepted once' },
  async (context) => {
    const { device: first } = await context.testAccount();
    const nonce = await context.challenge(await context.anonymous(), first.account.id);
    const params = context.deviceProof(first, nonce);
    await context.expectOk(await context.anonymous(), 'auth.device.verify', params);
    const again = await context.anonymous();
    await context.expectError(again, { method: 'auth.device.verify', params }, 'unauthorized');
  },
);

device.check(
  'nonce-consumed-by-failure',
  { source: '02 §9.2', title: 'a failed attempt consumes the nonce' },
  async (context) => {
    const { device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, first.account.id);
    const good = context.deviceProof(first, nonce);
    const bad = { ...good, device_signature: tampered(String(good.device_signature)) };
    const method = 'auth.device.verify';
    await context.expectError(caller, { method, params: bad }, 'invalid_signature');
    await context.expectError(caller, { method, params: good }, 'unauthorized');
  },
);

device.check(
  'nonce-unknown',
  { source: '02 §9.3', title: 'an unknown nonce is unauthorized' },
  async (context) => {
    const { device: first } = await context.testAccount();
    const nonce = encodeBase64url(new Uint8Array(32).fill(9));
    const params = context.deviceProof(first, nonce);
    const caller = await context.anonymous();
    await context.expectError(caller, { method: 'auth.device.verify', params }, 'unauthorized');
  },
);

device.check(
  'nonce-of-another-account',
  { source: '02 §18', title: 'a nonce issued for another account is unauthorized' },
  async (context) => {
    const { device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, context.account().id);
    const params = context.deviceProof(first, nonce);
    await context.expectError(caller, { method: 'auth.device.verify', params }, 'unauthorized');
  },
);

for (const [word, seconds] of [
  ['past', -31_536_000],
  ['future', 31_536_000],
] as const) {
  device.check(
    `timestamp-${word}`,
    { source: '02 §9.3', title: `a timestamp a year in the ${word} is clock_skew` },
    async (context) => {
      const { device: first } = await context.testAccount();
      const caller = await context.anonymous();
      const nonce = await context.challenge(caller, first.account.id);
      const params = context.deviceProof(first, nonce, { timestamp: unixSeconds() + seconds });
      await context.expectError(caller, { method: 'auth.device.verify', params }, 'clock_skew');
    },
  );
}

device.check(
  'timestamp-type',
  {
    source: '02 §9.3',
    title: 'a timestamp that is not an integer is refused and consumes the nonce',
  },
  async (context) => {
    const { device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, first.account.id);
    const good = context.deviceProof(first, nonce);
    const method = 'auth.device.verify';
    await context.expectError(
      caller,
      { method, params: { ...good, timestamp: 'now' } },
      'bad_request',
    );
    await context.expectError(caller, { method, params: good }, 'unauthorized');
  },
);

device.check(
  'certificate-missing',
  { source: '02 §18', title: 'a request without a certificate is bad_request' },
  async (context) => {
    const { device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, first.account.id);
    const { signer_certificate: _, ...params } = context.deviceProof(first, nonce);
    await context.expectError(caller, { method: 'auth.device.verify', params }, 'bad_request');
  },
);

device.check(
  'certificate-signature',
  { source: '02 §9.3, 01 §8', title: 'a certificate with a bad signature is invalid_signature' },
  async (context) => {
    const { device: first } = await context.testAccount();
    for (const member of ['device_signature', 'account_signature'] as const) {
      const caller = await context.anonymous();
      const nonce = await context.challenge(caller, first.account.id);
      const certificate = {
        ...first.certificate,
        [member]: tampered(first.certificate[member]),
      };
      const params = context.deviceProof(first, nonce, { certificate });
      await context.expectError(
        caller,
        { method: 'auth.device.verify', params },
        'invalid_signature',
      );
    }
  },
);

device.check(
  'bound-to-relay',
  { source: '02 §9.3', title: 'a proof for another relay does not verify' },
  async (context) => {
    const { device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, first.account.id);
    const params = context.deviceProof(first, nonce, { relayId: `0x${'ab'.repeat(20)}` });
    await context.expectError(
      caller,
      { method: 'auth.device.verify', params },
      'invalid_signature',
    );
  },
);

device.check(
  'request-members-do-not-replace',
  {
    source: '02 §9.3',
    title: 'request members named like parts of the signing input have no effect',
  },
  async (context) => {
    const { device: first } = await context.testAccount();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, first.account.id);
    const proof = context.deviceProof(first, nonce, { relayId: `0x${'ab'.repeat(20)}` });
    const params = { ...proof, relay_id: `0x${'ab'.repeat(20)}`, origin: context.origin };
    await context.expectError(
      caller,
      { method: 'auth.device.verify', params },
      'invalid_signature',
    );
  },
);

const unavailable = {
  removed: 'is no longer in the state',
  expired: 'has expired',
  'not-yet': 'is not yet effective',
  never: 'was never in the state',
} as const;

for (const [word, what] of Object.entries(unavailable)) {
  device.check(
    `device-${word}`,
    { source: '02 §9.3, 01 §8', title: `a device whose certificate ${what} is device_unknown` },
    async (context) => {
      const now = unixSeconds();
      const { account, device: first, caller: owner } = await context.testAccount();
      const period = {
        removed: {},
        expired: { notBefore: now - 7_200, expiresAt: now - 3_600 },
        'not-yet': { notBefore: now + 3_600, expiresAt: now + 7_200 },
        never: {},
      }[word];
      const other = await account.device(period);
      if (word !== 'never') {
        await context.expectOk(owner, 'device.state.publish', await account.state([first, other]));
      }
      if (word === 'removed') {
        await context.expectOk(owner, 'device.state.publish', await account.state([first]));
      }
      const caller = await context.anonymous();
      const nonce = await context.challenge(caller, account.id);
      const params = context.deviceProof(other, nonce);
      await context.expectError(caller, { method: 'auth.device.verify', params }, 'device_unknown');
    },
  );
}

device.check(
  'older-certificate',
  {
    source: '02 §9.3, §10.2',
    title: 'a renewed device may authenticate with an older certificate',
  },
  async (context) => {
    const { account, device: first, caller: owner } = await context.testAccount();
    const renewed = await account.certify(first.signer, { expiresAt: unixSeconds() + 1_800 });
    const state = await account.state([{ ...first, certificate: renewed }]);
    await context.expectOk(owner, 'device.state.publish', state);
    const credentials = await context.authenticateDevice(await context.anonymous(), first);
    assertConforms(
      credentials.expires_at <= renewed.expires_at,
      'the latest certificate caps the session, not the one attached',
    );
  },
);

device.check(
  'staged-state',
  { source: '02 §9.3', title: 'a pre-stored state does not allow device sessions' },
  async (context) => {
    const account = context.account();
    const first = await account.device();
    const owner = await context.accountSession(account, 'https');
    const status = await context.expectOk(
      owner,
      'device.state.publish',
      await account.state([first]),
    );
    assertConforms(isJsonObject(status) && status.status === 'staged', 'the state is staged');
    const caller = await context.anonymous();
    const params = context.deviceProof(first, await context.challenge(caller, account.id));
    const call = { method: 'auth.device.verify', params };
    // 02 §18: the error table decides how an account without a home is answered.
    const codes = ['route_not_found', 'device_unknown', 'temporarily_unavailable'] as const;
    await context.expectError(caller, call, ...codes);
  },
);

const account = checksOf('auth.account.verify');

account.check(
  'session',
  { source: '02 §9.4', title: 'the holder of an account key gets an account session' },
  async (context) => {
    const owner = context.account();
    const credentials = await context.authenticateAccount(await context.anonymous(), owner);
    assertEqual(credentials.mode, 'account', 'mode is account');
  },
);

account.check(
  'signature',
  { source: '02 §9.4', title: 'a bad signature is invalid_signature and consumes the nonce' },
  async (context) => {
    const owner = context.account();
    const caller = await context.anonymous();
    const good = await context.accountProof(owner, await context.challenge(caller, owner.id));
    const bad = { ...good, account_signature: tampered(String(good.account_signature)) };
    const method = 'auth.account.verify';
    await context.expectError(caller, { method, params: bad }, 'invalid_signature');
    await context.expectError(caller, { method, params: good }, 'unauthorized');
  },
);

account.check(
  'key-of-another-account',
  { source: '02 §18', title: 'a key that does not derive the account is bad_request' },
  async (context) => {
    const owner = context.account();
    const caller = await context.anonymous();
    const nonce = await context.challenge(caller, owner.id);
    const params = await context.accountProof(context.account(), nonce);
    await context.expectError(caller, { method: 'auth.account.verify', params }, 'bad_request');
  },
);

account.check(
  'high-s',
  { source: '01 §5.1 S2', title: 'both forms of s are valid' },
  async (context) => {
    const owner = context.account();
    const caller = await context.anonymous();
    const proof = await context.accountProof(owner, await context.challenge(caller, owner.id));
    const params = { ...proof, account_signature: withOtherS(String(proof.account_signature)) };
    await context.expectOk(caller, 'auth.account.verify', params);
  },
);

export const authChecks = [...challenge.list, ...device.list, ...account.list];
