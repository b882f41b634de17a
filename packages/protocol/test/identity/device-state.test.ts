import { beforeAll, describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  type AccountDeviceState,
  checkDeviceState,
  currentDevices,
  type DeviceCertificate,
  deriveDeviceId,
  deviceSigner,
  deviceStateSignatures,
  deviceStateSigningInput,
  devicesOf,
  encodeBase64url,
  hex,
  nextRevision,
  signDeviceCertificate,
  signDeviceState,
  verifyDeviceState,
} from '../../src/index.ts';
import { canonicalBytes, canonicalJson } from '../../src/json/index.ts';
import {
  account,
  certificate,
  codeOf,
  counting,
  deviceId,
  network,
  otherAccount,
  padded,
  state,
  tampered,
  without,
} from './appendix.ts';

const check = (value: unknown) => codeOf(() => checkDeviceState(network, value));
const verify = (value: unknown) => codeOf(() => verifyDeviceState(network, value));

/** A state signed over whatever members it has. */
async function signed(members: Record<string, unknown>): Promise<AccountDeviceState> {
  const unsigned = {
    ...(without(state, 'account_signature') as AccountDeviceState),
    ...members,
  };
  const signature = await account.sign(deviceStateSigningInput(network, unsigned));
  return { ...unsigned, account_signature: encodeBase64url(signature) };
}

/** Certificates of nine devices of the account. */
let nine: DeviceCertificate[];
beforeAll(async () => {
  nine = await Promise.all(
    Array.from({ length: 9 }, (_, index) =>
      signDeviceCertificate(network, {
        account,
        device: deviceSigner(network, {
          signingSeed: counting(index),
          encryptionKey: counting(100 + index),
        }),
        notBefore: 1_000 + index,
        expiresAt: 2_000 + index,
      }),
    ),
  );
});

describe('01 §10: AccountDeviceState', () => {
  test('01 appendix A: input, sizes, digests and signatures of the example', async () => {
    const { sha256 } = noblePrimitives;
    const input = deviceStateSigningInput(network, state);
    expect([input.length, hex(sha256(input))]).toEqual([
      843,
      '8bc3df20229edf8e74bcaa44895278f4de3a5fb6578fbcc8b255c288131127ea',
    ]);
    const complete = canonicalBytes(state);
    expect([complete.length, hex(sha256(complete))]).toEqual([
      882,
      'd410be0fe747c01c50868e02ce320458606faacd4a3928e423592b2cc8af33a6',
    ]);
    expect(verify(state)).toBeUndefined();
    const facts = { revision: state.revision, certificates: [certificate] };
    expect(canonicalJson(await signDeviceState(network, account, facts))).toBe(
      canonicalJson(state),
    );
  });

  test.each(Object.keys(state))('a state without %s is refused', (name) => {
    expect(check(without(state, name))).toBe('bad_request');
  });

  test.each([
    ['$type', 'svc.device.certificate'],
    ['revision', -1],
    ['revision', 2 ** 53],
    ['revision', 1.5],
    ['revision', '1'],
    ['certificates', {}],
    ['certificates', null],
    ['certificates', ['x']],
    ['account_signature', ''],
  ])('a wrong %s is refused: %j', (name, value) => {
    expect(check({ ...state, [name]: value })).toBe('bad_request');
  });

  test('a revision may be 0 and the largest safe integer', async () => {
    for (const revision of [0, Number.MAX_SAFE_INTEGER]) {
      expect(verify(await signed({ revision }))).toBeUndefined();
    }
  });

  test('A1: the account signs the certificates with their signatures', async () => {
    const other = { ...certificate, account_signature: tampered(certificate.account_signature) };
    const [own] = deviceStateSignatures(network, { ...state, certificates: [other] });
    const { publicKey, message, signature } = own as NonNullable<typeof own>;
    expect(noblePrimitives.p256.verify(publicKey, message, signature)).toBe(false);
  });

  test('A2: over 131,072 bytes is request_too_large', async () => {
    const base = await signed({ zz: '' });
    const padding = (bytes: number) => padded(base, bytes).zz;
    expect(verify(await signed({ zz: padding(131_071) }))).toBeUndefined();
    expect(verify(await signed({ zz: padding(131_072) }))).toBeUndefined();
    expect(verify(await signed({ zz: padding(131_073) }))).toBe('request_too_large');
  });

  test('03 §4.3: a certificate in it over 4,096 bytes is request_too_large', async () => {
    const large = padded(certificate, 4_097);
    expect(check(await signed({ certificates: [large] }))).toBe('request_too_large');
  });

  test('A3: at most 8 certificates', async () => {
    expect(verify(await signed({ certificates: nine.slice(0, 8) }))).toBeUndefined();
    expect(check(await signed({ certificates: nine }))).toBe('bad_request');
  });

  test('A3: a certificate of another account is bad_request', async () => {
    const foreign = await signDeviceCertificate(network, {
      account: otherAccount,
      device: deviceSigner(network, { signingSeed: counting(3), encryptionKey: counting(4) }),
      notBefore: 0,
      expiresAt: 1,
    });
    expect(check(await signed({ certificates: [certificate, foreign] }))).toBe('bad_request');
  });

  test('A3: two certificates of one device are bad_request, renewed or not', async () => {
    const renewed = { ...certificate, not_before: certificate.not_before + 1 };
    for (const second of [certificate, renewed]) {
      expect(check(await signed({ certificates: [certificate, second] }))).toBe('bad_request');
    }
  });

  test('A3: each signature of each certificate is verified', async () => {
    for (const name of ['device_signature', 'account_signature'] as const) {
      const [first, second] = nine as [DeviceCertificate, DeviceCertificate];
      const broken = { ...second, [name]: tampered(second[name]) };
      expect(verify(await signed({ certificates: [first, broken] }))).toBe('invalid_signature');
    }
  });

  test('the checks as data are all signatures: the state, then two of each certificate', () => {
    const checks = deviceStateSignatures(network, { ...state, certificates: nine.slice(0, 3) });
    expect(checks.map(({ scheme }) => scheme)).toEqual([
      'p256',
      'ed25519',
      'p256',
      'ed25519',
      'p256',
      'ed25519',
      'p256',
    ]);
  });

  test('A4: no certificate at all is a state', async () => {
    const empty = await signDeviceState(network, account, { revision: 1, certificates: [] });
    expect(verify(empty)).toBeUndefined();
    expect(currentDevices(network, empty, 0).size).toBe(0);
  });

  test('A5: expired and future certificates stay in it, their devices are not current', async () => {
    const mixed = await signed({ certificates: nine.slice(0, 3) });
    expect(verify(mixed)).toBeUndefined();
    const ids = nine.slice(0, 3).map((item) => deriveDeviceId(network, item));
    expect([...devicesOf(network, mixed).keys()]).toEqual(ids);
    const at = (now: number) => [...currentDevices(network, mixed, now).keys()];
    expect(at(999)).toEqual([]);
    expect(at(1_000)).toEqual([ids[0]]);
    expect(at(1_002)).toEqual(ids);
    expect(at(2_000)).toEqual([ids[1], ids[2]]);
    expect(at(2_002)).toEqual([]);
  });

  test('a device of a state is found under its ID', () => {
    expect(devicesOf(network, state).get(deviceId)).toBe(certificate);
  });

  test('a key that does not derive the account is bad_request', async () => {
    expect(check(await signed({ account_public_key: otherAccount.publicKey }))).toBe('bad_request');
    expect(check(await signed({ account: otherAccount.account, certificates: [] }))).toBe(
      'bad_request',
    );
  });

  test('a wrong state signature fails, and so does an unsigned unknown member', () => {
    const account_signature = tampered(state.account_signature);
    expect(verify({ ...state, account_signature })).toBe('invalid_signature');
    expect(verify({ ...state, zz: 1 })).toBe('invalid_signature');
  });

  test('null is refused in unknown members of a certificate inside', () => {
    const nested = { ...state, certificates: [{ ...certificate, zz: [null] }] };
    expect(check(nested)).toBe('bad_request');
  });

  test('A8: the same content with another signature is another state', async () => {
    const again = { ...state, account_signature: tampered(state.account_signature) };
    expect(canonicalJson(again)).not.toBe(canonicalJson(state));
  });
});

describe('01 A6, A7: revisions', () => {
  test('the first is the clock in milliseconds, later ones are above the current one', () => {
    expect(nextRevision(undefined, 1_735_689_600_123)).toBe(1_735_689_600_123);
    expect(nextRevision(1_735_689_600_122, 1_735_689_600_123)).toBe(1_735_689_600_123);
    expect(nextRevision(1_735_689_600_123, 1_735_689_600_123)).toBe(1_735_689_600_124);
    expect(nextRevision(1_735_689_700_000, 1_735_689_600_123)).toBe(1_735_689_700_001);
  });

  test('a clock before 1970 gives no negative revision', () => {
    expect(nextRevision(undefined, -5)).toBe(0);
  });

  test('I2: the last safe integer is used, after it there is none', () => {
    const max = Number.MAX_SAFE_INTEGER;
    expect(nextRevision(max - 1, 0)).toBe(max);
    expect(codeOf(() => nextRevision(max, 0))).toBe('state_conflict');
    expect(codeOf(() => nextRevision(0, 2 ** 53))).toBe('state_conflict');
  });

  test('I2: a clock with a fraction gives no revision', () => {
    expect(codeOf(() => nextRevision(undefined, 1.5))).toBe('state_conflict');
  });
});
