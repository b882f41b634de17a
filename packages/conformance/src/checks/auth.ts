import { encodeBase64url, isJsonObject, type JsonObject } from '@posthouse/protocol';
import { demand } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';
import { flipped, withOtherS } from '../fixtures/tampered.ts';
import type { WssCaller } from '../transport/caller.ts';

const challenge = checksOf('auth.challenge');

challenge.check(
  'fresh',
  { source: '02 §9.2', title: 'gives 32 fresh random bytes and an expiry after its creation' },
  async (stage) => {
    const caller = await stage.visitor();
    const account = stage.account().id;
    const first = (await stage.succeed(caller, 'auth.challenge', { account })) as JsonObject;
    const second = (await stage.succeed(caller, 'auth.challenge', { account })) as JsonObject;
    demand(first.nonce !== second.nonce, 'each call issues a new nonce');
    demand(
      /^[!-~]{1,256}$/.test(String(first.nonce)),
      'nonce is 1 to 256 visible ASCII characters',
    );
    demand(Number(first.expires_at) > Number(first.created_at), 'expires_at is after created_at');
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

/** Another text of the same shape whose Base58Check checksum is wrong. */
function swapLastCharacters(account: string): string {
  const last = account.at(-1) === 'a' ? 'b' : 'a';
  return account.slice(0, -1) + last;
}

for (const [word, params] of malformedAccounts) {
  challenge.check(
    `account-${word}`,
    { source: '02 §9.2, 01 §7', title: `refuses a malformed account (${word})` },
    async (stage) => {
      const method = 'auth.challenge';
      const caller = await stage.visitor();
      await stage.fail(caller, { method, params: params(stage.account().id) }, 'bad_request');
    },
  );
}

const device = checksOf('auth.device.verify');

device.check(
  'session',
  { source: '02 §9.3, §10.1', title: 'a current device gets a device session' },
  async (stage) => {
    const { account, device: first } = await stage.resident();
    const caller = await stage.visitor();
    const credentials = await stage.enterDevice(caller, first);
    demand(credentials.mode === 'device', 'mode is device');
    demand(
      credentials.expires_at <= first.certificate.expires_at,
      'the session does not outlive the certificate (02 §10.2)',
    );
    await stage.succeed(caller, 'device.state.resolve', { account: account.id });
  },
);

device.check('nonce-once', { source: '02 §9.2', title: 'a nonce serves once' }, async (stage) => {
  const { device: first } = await stage.resident();
  const nonce = await stage.challenge(await stage.visitor(), first.account.id);
  const params = stage.deviceProof(first, nonce);
  await stage.succeed(await stage.visitor(), 'auth.device.verify', params);
  const again = await stage.visitor();
  await stage.fail(again, { method: 'auth.device.verify', params }, 'unauthorized');
});

device.check(
  'nonce-consumed-by-failure',
  { source: '02 §9.2', title: 'a failed attempt consumes the nonce' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, first.account.id);
    const good = stage.deviceProof(first, nonce);
    const bad = { ...good, device_signature: flipped(String(good.device_signature)) };
    const method = 'auth.device.verify';
    await stage.fail(caller, { method, params: bad }, 'invalid_signature');
    await stage.fail(caller, { method, params: good }, 'unauthorized');
  },
);

device.check(
  'nonce-unknown',
  { source: '02 §9.3', title: 'an unknown nonce is unauthorized' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const nonce = encodeBase64url(new Uint8Array(32).fill(9));
    const params = stage.deviceProof(first, nonce);
    const caller = await stage.visitor();
    await stage.fail(caller, { method: 'auth.device.verify', params }, 'unauthorized');
  },
);

device.check(
  'nonce-of-another-account',
  { source: '02 §18', title: 'a nonce issued for another account is unauthorized' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, stage.account().id);
    const params = stage.deviceProof(first, nonce);
    await stage.fail(caller, { method: 'auth.device.verify', params }, 'unauthorized');
  },
);

for (const [word, seconds] of [
  ['past', -31_536_000],
  ['future', 31_536_000],
] as const) {
  device.check(
    `timestamp-${word}`,
    { source: '02 §9.3', title: `a timestamp a year in the ${word} is clock_skew` },
    async (stage) => {
      const { device: first } = await stage.resident();
      const caller = await stage.visitor();
      const nonce = await stage.challenge(caller, first.account.id);
      const params = stage.deviceProof(first, nonce, { timestamp: unixSeconds() + seconds });
      await stage.fail(caller, { method: 'auth.device.verify', params }, 'clock_skew');
    },
  );
}

device.check(
  'timestamp-type',
  { source: '02 §9.3', title: 'a timestamp that is no integer is refused and consumes the nonce' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, first.account.id);
    const good = stage.deviceProof(first, nonce);
    const method = 'auth.device.verify';
    await stage.fail(caller, { method, params: { ...good, timestamp: 'now' } }, 'bad_request');
    await stage.fail(caller, { method, params: good }, 'unauthorized');
  },
);

device.check(
  'certificate-missing',
  { source: '02 §18', title: 'a request without a certificate is bad_request' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, first.account.id);
    const { signer_certificate: _, ...params } = stage.deviceProof(first, nonce);
    await stage.fail(caller, { method: 'auth.device.verify', params }, 'bad_request');
  },
);

device.check(
  'certificate-signature',
  { source: '02 §9.3, 01 §8', title: 'a certificate with a bad signature is invalid_signature' },
  async (stage) => {
    const { device: first } = await stage.resident();
    for (const member of ['device_signature', 'account_signature'] as const) {
      const caller = await stage.visitor();
      const nonce = await stage.challenge(caller, first.account.id);
      const certificate = {
        ...first.certificate,
        [member]: flipped(first.certificate[member]),
      };
      const params = stage.deviceProof(first, nonce, { certificate });
      await stage.fail(caller, { method: 'auth.device.verify', params }, 'invalid_signature');
    }
  },
);

device.check(
  'bound-to-relay',
  { source: '02 §9.3', title: 'a proof for another relay does not verify' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, first.account.id);
    const params = stage.deviceProof(first, nonce, { relayId: `0x${'ab'.repeat(20)}` });
    await stage.fail(caller, { method: 'auth.device.verify', params }, 'invalid_signature');
  },
);

device.check(
  'request-members-do-not-replace',
  { source: '02 §9.3', title: 'members of the signing input that a request brings have no effect' },
  async (stage) => {
    const { device: first } = await stage.resident();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, first.account.id);
    const proof = stage.deviceProof(first, nonce, { relayId: `0x${'ab'.repeat(20)}` });
    const params = { ...proof, relay_id: `0x${'ab'.repeat(20)}`, origin: stage.origin };
    await stage.fail(caller, { method: 'auth.device.verify', params }, 'invalid_signature');
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
    async (stage) => {
      const now = unixSeconds();
      const { account, device: first, caller: owner } = await stage.resident();
      const period = {
        removed: {},
        expired: { notBefore: now - 7_200, expiresAt: now - 3_600 },
        'not-yet': { notBefore: now + 3_600, expiresAt: now + 7_200 },
        never: {},
      }[word];
      const other = await account.device(period);
      if (word !== 'never') {
        await stage.succeed(owner, 'device.state.publish', await account.state([first, other]));
      }
      if (word === 'removed') {
        await stage.succeed(owner, 'device.state.publish', await account.state([first]));
      }
      const caller = await stage.visitor();
      const nonce = await stage.challenge(caller, account.id);
      const params = stage.deviceProof(other, nonce);
      await stage.fail(caller, { method: 'auth.device.verify', params }, 'device_unknown');
    },
  );
}

device.check(
  'older-certificate',
  { source: '02 §9.3, §10.2', title: 'an older certificate of a renewed device proves it' },
  async (stage) => {
    const { account, device: first, caller: owner } = await stage.resident();
    const renewed = await account.certify(first.signer, { expiresAt: unixSeconds() + 1_800 });
    const state = await account.state([{ ...first, certificate: renewed }]);
    await stage.succeed(owner, 'device.state.publish', state);
    const credentials = await stage.enterDevice(await stage.visitor(), first);
    demand(
      credentials.expires_at <= renewed.expires_at,
      'the latest certificate caps the session, not the one attached',
    );
  },
);

device.check(
  'staged-state',
  { source: '02 §9.3', title: 'a pre-stored state backs no device session' },
  async (stage) => {
    const account = stage.account();
    const first = await account.device();
    const owner = await stage.keyHolder(account, 'https');
    const status = await stage.succeed(owner, 'device.state.publish', await account.state([first]));
    demand(isJsonObject(status) && status.status === 'staged', 'the state is staged');
    const caller = await stage.visitor();
    const params = stage.deviceProof(first, await stage.challenge(caller, account.id));
    const call = { method: 'auth.device.verify', params };
    // 02 §18: how an account without any home is answered follows the error table.
    const codes = ['route_not_found', 'device_unknown', 'temporarily_unavailable'] as const;
    await stage.fail(caller, call, ...codes);
  },
);

const account = checksOf('auth.account.verify');

account.check(
  'session',
  { source: '02 §9.4', title: 'the holder of an account key gets an account session' },
  async (stage) => {
    const owner = stage.account();
    const credentials = await stage.enterAccount(await stage.visitor(), owner);
    demand(credentials.mode === 'account', 'mode is account');
  },
);

account.check(
  'signature',
  { source: '02 §9.4', title: 'a bad signature is invalid_signature and consumes the nonce' },
  async (stage) => {
    const owner = stage.account();
    const caller = await stage.visitor();
    const good = await stage.accountProof(owner, await stage.challenge(caller, owner.id));
    const bad = { ...good, account_signature: flipped(String(good.account_signature)) };
    const method = 'auth.account.verify';
    await stage.fail(caller, { method, params: bad }, 'invalid_signature');
    await stage.fail(caller, { method, params: good }, 'unauthorized');
  },
);

account.check(
  'key-of-another-account',
  { source: '02 §18', title: 'a key that does not derive the account is bad_request' },
  async (stage) => {
    const owner = stage.account();
    const caller = await stage.visitor();
    const nonce = await stage.challenge(caller, owner.id);
    const params = await stage.accountProof(stage.account(), nonce);
    await stage.fail(caller, { method: 'auth.account.verify', params }, 'bad_request');
  },
);

account.check(
  'high-s',
  { source: '01 §5.1 S2', title: 'both forms of s are valid' },
  async (stage) => {
    const owner = stage.account();
    const caller = await stage.visitor();
    const proof = await stage.accountProof(owner, await stage.challenge(caller, owner.id));
    const params = { ...proof, account_signature: withOtherS(String(proof.account_signature)) };
    await stage.succeed(caller, 'auth.account.verify', params);
  },
);

const session = checksOf('session');

session.check(
  'account-mode-bounds',
  { source: '02 §9.5', title: 'an account session may not do what needs a device' },
  async (stage) => {
    const { account: owner } = await stage.resident();
    const caller = await stage.keyHolder(owner);
    await stage.succeed(caller, 'device.state.resolve', { account: owner.id });
    for (const [method, params] of [
      ['device.state.resolve', { account: stage.account().id }],
      ['profile.resolve', { account: owner.id }],
      ['message.timeline.sync', {}],
      ['message.delivery.status', { message_id: 'msg_AAECAwQFBgcICQoLDA0ODw' }],
    ] as const) {
      await stage.fail(caller, { method, params }, 'forbidden');
    }
  },
);

session.check(
  'device-mode-bounds',
  { source: '02 §9.5', title: 'a device session may not publish a route' },
  async (stage) => {
    const { account: owner, caller } = await stage.resident();
    const params = await owner.route({ relayId: stage.relayId });
    await stage.fail(caller, { method: 'account.route.publish', params }, 'forbidden');
  },
);

session.check(
  'missing',
  { source: '02 §4.1', title: 'a call that needs a session and has none is unauthorized' },
  async (stage) => {
    const caller = await stage.visitor();
    const account = stage.account().id;
    for (const [method, params] of [
      ['device.state.resolve', { account }],
      ['profile.resolve', { account }],
      ['message.timeline.sync', {}],
    ] as const) {
      await stage.fail(caller, { method, params }, 'unauthorized');
    }
  },
);

session.check(
  'revoked',
  { source: '02 §10.3', title: 'removing a device ends its sessions at once' },
  async (stage) => {
    const { account: owner, devices, callers } = await stage.resident({ devices: 2 });
    const [first, second] = callers as [(typeof callers)[0], (typeof callers)[0]];
    await stage.succeed(second, 'message.timeline.sync');
    const state = await owner.state([devices[0] as (typeof devices)[0]]);
    await stage.succeed(first, 'device.state.publish', state);
    await stage.fail(second, { method: 'message.timeline.sync' }, 'unauthorized');
    await stage.succeed(first, 'message.timeline.sync');
  },
);

session.check(
  'renewal',
  { source: '02 §10.6', title: 'renews on its own connection', transports: ['wss'] },
  async (stage) => {
    const { device: first, caller } = await stage.resident();
    const before = await stage.enterDevice(caller, first);
    const after = await stage.enterDevice(caller, first);
    demand(before.token !== after.token, 'renewal gives a new token');
    await stage.succeed(caller, 'message.timeline.sync');
  },
);

session.check(
  'rebinding',
  {
    source: '02 §10.5',
    title: 'a bound connection takes no other identity and keeps its own',
    transports: ['wss'],
  },
  async (stage) => {
    const { account: owner, devices, caller } = await stage.resident({ devices: 2 });
    const other = await stage.resident();
    for (const foreign of [devices[1] as (typeof devices)[0], other.device]) {
      const nonce = await stage.challenge(caller, foreign.account.id);
      const params = stage.deviceProof(foreign, nonce);
      await stage.fail(caller, { method: 'auth.device.verify', params }, 'forbidden');
    }
    const params = await stage.accountProof(owner, await stage.challenge(caller, owner.id));
    await stage.fail(caller, { method: 'auth.account.verify', params }, 'forbidden');
    await stage.succeed(caller, 'message.timeline.sync');
  },
);

session.check(
  'dead-binding',
  {
    source: '02 §10.5',
    title: 'a connection whose device was removed cannot be authenticated again',
    transports: ['wss'],
  },
  async (stage) => {
    const { account: owner, devices, callers } = await stage.resident({ devices: 2 });
    const [first, second] = callers as [WssCaller, WssCaller];
    const [kept, removed] = devices as [(typeof devices)[0], (typeof devices)[0]];
    await stage.succeed(first, 'device.state.publish', await owner.state([kept]));
    await stage.succeed(first, 'device.state.publish', await owner.state([kept, removed]));
    await stage.fail(second, { method: 'message.timeline.sync' }, 'unauthorized');
    const nonce = await stage.challenge(second, owner.id);
    const params = stage.deviceProof(removed, nonce);
    await stage.fail(second, { method: 'auth.device.verify', params }, 'unauthorized');
    await stage.succeed(second, 'relay.info');
    await stage.enterDevice(await stage.visitor(), removed);
  },
);

export const authChecks = [...challenge.list, ...device.list, ...account.list, ...session.list];
