import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  accountSigner,
  checkDeviceCertificate,
  type DeviceCertificate,
  deriveDeviceId,
  deviceCertificateAccountInput,
  deviceCertificateDeviceInput,
  deviceCertificateSignatures,
  deviceSigner,
  encodeBase64url,
  hex,
  isCertificateCurrent,
  signDeviceCertificate,
  verifyDeviceCertificate,
} from '../../src/index.ts';
import { canonicalBytes, canonicalJson } from '../../src/json/index.ts';
import {
  account,
  certificate,
  codeOf,
  counting,
  device,
  deviceId,
  network,
  otherAccount,
  otherChain,
  otherDevice,
  otherRegistry,
  padded,
  tampered,
  without,
} from './appendix.ts';

const day = 86_400;
const { sha256 } = noblePrimitives;
const check = (value: unknown) => codeOf(() => checkDeviceCertificate(network, value));
const verify = (value: unknown) => codeOf(() => verifyDeviceCertificate(network, value));

/** A certificate with both signatures right over whatever members it has. */
async function signed(members: Record<string, unknown>): Promise<DeviceCertificate> {
  const facts = {
    ...(without(certificate, 'device_signature', 'account_signature') as DeviceCertificate),
    ...members,
  };
  const input = deviceCertificateDeviceInput(network, facts);
  const half = { ...facts, device_signature: encodeBase64url(device.sign(input)) };
  const signature = await account.sign(deviceCertificateAccountInput(network, half));
  return { ...half, account_signature: encodeBase64url(signature) };
}

describe('01 §8: DeviceCertificate', () => {
  test('01 appendix A: inputs, sizes and both signatures of the example', async () => {
    const deviceInput = deviceCertificateDeviceInput(network, certificate);
    expect([deviceInput.length, hex(sha256(deviceInput))]).toEqual([
      418,
      '9c67ce3bd02d59b3f5fc9fd2d95a1c65a65099d63652a0c204ce1f4f8a1c8078',
    ]);
    const accountInput = deviceCertificateAccountInput(network, certificate);
    expect([accountInput.length, hex(sha256(accountInput))]).toEqual([
      526,
      '66e0dcdf8d63b67022a914381b50a1e4486fef68c0a7acf140f124eac3331881',
    ]);
    expect(canonicalBytes(certificate)).toHaveLength(565);
    expect(verify(certificate)).toBeUndefined();
    const made = await signDeviceCertificate(network, {
      account,
      device,
      notBefore: certificate.not_before,
      expiresAt: certificate.expires_at,
    });
    expect(canonicalJson(made)).toBe(canonicalJson(certificate));
  });

  test.each(Object.keys(certificate))('a certificate without %s is refused', (name) => {
    expect(check(without(certificate, name))).toBe('bad_request');
  });

  test.each([
    ['$type', 'svc.device.certificate.v1'],
    ['$type', 'Svc.device.certificate'],
    ['$type', 1],
    ['account', `neo:860833102:${'N'.repeat(34)}`],
    ['account', 5],
    ['account_public_key', `${certificate.account_public_key}AA`],
    ['signing_public_key', certificate.signing_public_key.slice(0, 42)],
    ['signing_public_key', `${certificate.signing_public_key.slice(0, 42)}B`],
    ['encryption_public_key', `${certificate.encryption_public_key}=`],
    ['not_before', '1735689600'],
    ['not_before', 1.5],
    ['expires_at', 2 ** 53],
    ['device_signature', certificate.device_signature.slice(0, 85)],
    ['account_signature', `${certificate.account_signature.slice(0, 85)}B`],
    ['account_signature', ''],
  ])('a wrong %s is refused: %j', (name, value) => {
    expect(check({ ...certificate, [name]: value })).toBe('bad_request');
  });

  test.each([null, [], 'text', 7, undefined])('%j is no certificate', (value) => {
    expect(check(value)).toBe('bad_request');
  });

  test('01 J9: null is refused in every member, unknown ones and inside them too', () => {
    for (const name of [...Object.keys(certificate), 'zz']) {
      expect(check({ ...certificate, [name]: null })).toBe('bad_request');
    }
    expect(check({ ...certificate, zz: { list: [1, null] } })).toBe('bad_request');
  });

  test('01 K2: a transmitted $context is refused, even the right one', () => {
    for (const value of [network.context, otherChain.context, null]) {
      expect(check({ ...certificate, $context: value })).toBe('bad_request');
    }
  });

  test('the period is above 0 and at most 720 days', async () => {
    const from = certificate.not_before;
    for (const [seconds, code] of [
      [-1, 'bad_request'],
      [0, 'bad_request'],
      [1, undefined],
      [720 * day - 1, undefined],
      [720 * day, undefined],
      [720 * day + 1, 'bad_request'],
    ] as const) {
      expect(verify(await signed({ not_before: from, expires_at: from + seconds }))).toBe(code);
    }
  });

  test('a period at the ends of the integers is measured exactly', async () => {
    const max = Number.MAX_SAFE_INTEGER;
    expect(check(await signed({ not_before: -max, expires_at: max }))).toBe('bad_request');
    expect(check(await signed({ not_before: max - 1, expires_at: max }))).toBeUndefined();
  });

  test('over 4,096 bytes, unknown members included, is request_too_large', async () => {
    const base = await signed({ zz: '' });
    const padding = (bytes: number) => padded(base, bytes).zz;
    expect(verify(await signed({ zz: padding(4_095) }))).toBeUndefined();
    expect(verify(await signed({ zz: padding(4_096) }))).toBeUndefined();
    expect(verify(await signed({ zz: padding(4_097) }))).toBe('request_too_large');
  });

  test('a key that does not derive the account is bad_request, before any signature', async () => {
    expect(check(await signed({ account: otherAccount.account }))).toBe('bad_request');
    expect(check({ ...certificate, account_public_key: otherAccount.publicKey })).toBe(
      'bad_request',
    );
  });

  test('a certificate of another chain is refused by its account, whatever its signatures', async () => {
    const foreign = await signDeviceCertificate(otherChain, {
      account: accountSigner(otherChain, counting(0x01)),
      device,
      notBefore: 0,
      expiresAt: day,
    });
    expect(codeOf(() => verifyDeviceCertificate(otherChain, foreign))).toBeUndefined();
    expect(verify(foreign)).toBe('bad_request');
  });

  test('01 N4: another registry of the same chain makes both signatures fail', () => {
    expect(codeOf(() => verifyDeviceCertificate(otherRegistry, certificate))).toBe(
      'invalid_signature',
    );
  });

  test.each(['device_signature', 'account_signature'] as const)('a wrong %s fails', (name) => {
    expect(verify({ ...certificate, [name]: tampered(certificate[name]) })).toBe(
      'invalid_signature',
    );
  });

  test('the account signs the device signature with the rest', async () => {
    const half = { ...certificate, device_signature: tampered(certificate.device_signature) };
    const signature = await account.sign(deviceCertificateAccountInput(network, half));
    const whole = { ...half, account_signature: encodeBase64url(signature) };
    const [byDevice, byAccount] = deviceCertificateSignatures(network, whole);
    expect(noblePrimitives.ed25519.verify(...parts(byDevice))).toBe(false);
    expect(noblePrimitives.p256.verify(...parts(byAccount))).toBe(true);
    expect(verify(whole)).toBe('invalid_signature');
  });

  test('01 U1: unknown members are signed: adding, changing or dropping one breaks it', async () => {
    const extended = await signed({ zz: { deep: [1] } });
    expect(verify(extended)).toBeUndefined();
    expect(verify({ ...extended, zz: { deep: [2] } })).toBe('invalid_signature');
    expect(verify(without(extended, 'zz'))).toBe('invalid_signature');
    expect(verify({ ...certificate, zz: 1 })).toBe('invalid_signature');
  });

  test('01 S2: the other form of s verifies too', () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const bytes = Uint8Array.from(
      deviceCertificateSignatures(network, certificate)[1]?.signature ?? [],
    );
    const s = BigInt(`0x${hex(bytes.subarray(32))}`);
    const other = (order - s).toString(16).padStart(64, '0');
    bytes.set(
      Uint8Array.from(other.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16)),
      32,
    );
    expect(verify({ ...certificate, account_signature: encodeBase64url(bytes) })).toBeUndefined();
  });

  test('errors name the member below the path given', () => {
    const value = { ...certificate, not_before: 'x' };
    expect(() => checkDeviceCertificate(network, value, 'state.certificates.0')).toThrow(
      /^state\.certificates\.0\.not_before: /,
    );
  });

  test('making one with an impossible period is refused', async () => {
    const options = { account, device, notBefore: 0, expiresAt: 721 * day };
    await expect(signDeviceCertificate(network, options)).rejects.toMatchObject({
      code: 'bad_request',
    });
  });

  test('an account signer may answer later, as a wallet does', async () => {
    const wallet = { ...account, sign: async (message: Uint8Array) => account.sign(message) };
    const options = { account: wallet, device, notBefore: 0, expiresAt: day };
    expect(verify(await signDeviceCertificate(network, options))).toBeUndefined();
  });

  test('it is current from not_before on and before expires_at', () => {
    const { not_before: from, expires_at: to } = certificate;
    expect(
      [from - 1, from, to - 1, to].map((now) => isCertificateCurrent(certificate, now)),
    ).toEqual([false, true, true, false]);
  });
});

describe('01 §9: device IDs', () => {
  test('01 appendix A: the identity input, its digest and the ID', () => {
    const { account: id, signing_public_key, encryption_public_key } = certificate;
    const input = network.bytes({
      $type: network.type('device.identity'),
      account: id,
      signing_public_key,
      encryption_public_key,
    });
    expect(new TextDecoder().decode(input)).toBe(
      '{"$context":"neo:860833102:0x0123456789abcdef0123456789abcdef01234567","$type":"svc.device.identity","account":"neo:860833102:NgaxELHoZFpQWNwd74Fvq4wF3qz57WTfpp","encryption_public_key":"ZLEBsdC-WocEvQePmJUAH8A-jp-VIvGI3RKNmEbUhGY","signing_public_key":"5_FioQvsVZr-oZXk3OhLaVaNXSywlj60RsBoXisX8vA"}',
    );
    expect(hex(sha256(input))).toBe(
      '3ef8c7703082b87d88de50ffd207d695350568c0b290cd2ad07eddb7293f4ff0',
    );
    expect(deriveDeviceId(network, certificate)).toBe(deviceId);
    expect(deviceId).toMatch(/^dev_[A-Za-z0-9_-]{22}$/);
  });

  test('D2: a renewal keeps the ID, either key or the account changes it', async () => {
    const renewed = await signed({ not_before: 1, expires_at: 2 });
    expect(deriveDeviceId(network, renewed)).toBe(deviceId);
    const changes = [
      { signing_public_key: otherDevice.signingPublicKey },
      { encryption_public_key: otherDevice.encryptionPublicKey },
      { account: otherAccount.account },
    ];
    const ids = changes.map((change) => deriveDeviceId(network, { ...certificate, ...change }));
    expect(new Set([deviceId, ...ids]).size).toBe(4);
  });

  test('D4: unknown members of a certificate do not enter it', async () => {
    expect(deriveDeviceId(network, await signed({ zz: 1 }))).toBe(deviceId);
  });

  test('01 N4: it depends on the network', () => {
    const ids = [network, otherChain, otherRegistry].map((one) => deriveDeviceId(one, certificate));
    expect(new Set(ids).size).toBe(3);
  });

  test('a device signer shows the public halves of its keys', () => {
    const again = deviceSigner(network, {
      signingSeed: counting(0x21),
      encryptionKey: counting(0x41),
    });
    expect(again.signingPublicKey).toBe(certificate.signing_public_key);
    expect(again.encryptionPublicKey).toBe(certificate.encryption_public_key);
  });
});

function parts(
  check: { publicKey: Uint8Array; message: Uint8Array; signature: Uint8Array } | undefined,
): [Uint8Array, Uint8Array, Uint8Array] {
  if (check === undefined) throw new Error('no such signature');
  return [check.publicKey, check.message, check.signature];
}
