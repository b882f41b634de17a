import { describe, expect, test } from 'vitest';
import { type Primitives, signatureCheck } from '../../src/crypto/index.ts';
import {
  accountAuthInput,
  accountSigner,
  checkChallenge,
  type DeviceCertificate,
  decodeBase64url,
  deriveDeviceId,
  deviceAuthInput,
  deviceCertificateAccountInput,
  deviceCertificateDeviceInput,
  deviceSigner,
  fromHex,
  hex,
  Network,
  relayOrigin,
  signDeviceCertificate,
  utf8,
  verifyDeviceCertificate,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import { describeVectors } from './vectors.ts';

interface AuthVector {
  auth_payload: JsonObject;
  signing_input_canonical_json: string;
  signing_input_utf8_hex: string;
  signing_input_sha256_hex: string;
  signature: string;
  legacy_signing_input_utf8_hex: string;
  legacy_signature: string;
}

interface Vectors {
  network_context: string;
  device_identity: {
    input: JsonObject & {
      account: string;
      signing_public_key: string;
      encryption_public_key: string;
    };
    canonical_json: string;
    utf8_hex: string;
    hash: string;
    derived_device_id: string;
  };
  device_certificate: {
    algorithm: string;
    private_key: string;
    public_key: string;
    account: string;
    device_private_key: string;
    device_public_key: string;
    unsigned_object: DeviceCertificate;
    device_signing_input_utf8_hex: string;
    device_signature: string;
    account_signing_input_utf8_hex: string;
    account_signature: string;
  };
  relay_origin: {
    normalization_cases: {
      name: string;
      endpoint: string;
      expected_origin: string;
      expected_origin_utf8_hex: string;
    }[];
    comparison_cases: {
      name: string;
      left_endpoint: string;
      right_endpoint: string;
      expected_same_origin: boolean;
    }[];
  };
  session_auth: {
    signers: Record<string, string>;
    target: { relay_id: string; endpoint: string };
    challenge: { nonce: string; created_at: number; expires_at: number };
    device_auth: AuthVector & {
      request: {
        nonce: string;
        timestamp: number;
        device_signature: string;
        signer_certificate: DeviceCertificate;
      };
    };
    account_auth: AuthVector & {
      request: { nonce: string; account_public_key: string; account_signature: string };
    };
    verification_cases: {
      name: string;
      trusted_relay_id: string;
      endpoint: string;
      network_context: string;
      signature_field: 'signature' | 'legacy_signature';
      nonce_override?: string;
      request_extra_fields?: JsonObject;
      expected_signature_valid: boolean;
    }[];
  };
}

const bytes = (text: string) => decodeBase64url(text) as Uint8Array;
const textOf = (data: Uint8Array) => new TextDecoder().decode(data);
const plain = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T;

function verifies(primitives: Primitives, parts: Parameters<typeof signatureCheck>[0]): boolean {
  const { scheme, publicKey, message, signature } = signatureCheck(parts);
  return primitives[scheme].verify(publicKey, message, signature);
}

describeVectors<Vectors>('identity-auth-v1', ({ data, network, resolve }) => {
  const net = network();
  const { primitives } = net;

  test('01 §9: device identity', () => {
    const { input, canonical_json, utf8_hex, hash, derived_device_id } = data.device_identity;
    expect(canonicalJson({ ...plain(input), $context: net.context })).toBe(canonical_json);
    expect(hex(net.bytes(input))).toBe(utf8_hex);
    expect(net.hash(input)).toBe(hash);
    expect(input.$type).toBe(net.type('device.identity'));
    expect(deriveDeviceId(net, input)).toBe(derived_device_id);
  });

  test('01 §8: both signing inputs and signatures of a certificate', async () => {
    const vector = data.device_certificate;
    const { unsigned_object: unsigned, device_signature, account_signature } = vector;
    expect(vector.algorithm).toBe('ECDSA-P256-SHA256-RFC6979');
    const account = accountSigner(net, bytes(vector.private_key));
    expect([account.account, account.publicKey]).toEqual([vector.account, vector.public_key]);
    const device = {
      ...deviceSigner(net, {
        signingSeed: bytes(vector.device_private_key),
        encryptionKey: new Uint8Array(32),
      }),
      encryptionPublicKey: unsigned.encryption_public_key,
    };
    expect(device.signingPublicKey).toBe(vector.device_public_key);

    expect(hex(deviceCertificateDeviceInput(net, unsigned))).toBe(
      vector.device_signing_input_utf8_hex,
    );
    const half = { ...plain(unsigned), device_signature };
    expect(hex(deviceCertificateAccountInput(net, half))).toBe(
      vector.account_signing_input_utf8_hex,
    );
    const made = await signDeviceCertificate(net, {
      account,
      device,
      notBefore: unsigned.not_before,
      expiresAt: unsigned.expires_at,
    });
    expect(made).toEqual({ ...half, account_signature });
    expect(() => verifyDeviceCertificate(net, made)).not.toThrow();
  });

  describe('02 §8: relay origin', () => {
    for (const vector of data.relay_origin.normalization_cases) {
      test(vector.name, () => {
        const origin = relayOrigin(vector.endpoint);
        expect(origin).toBe(vector.expected_origin);
        expect(hex(utf8(origin))).toBe(vector.expected_origin_utf8_hex);
      });
    }
    for (const vector of data.relay_origin.comparison_cases) {
      test(`comparison: ${vector.name}`, () => {
        const same = relayOrigin(vector.left_endpoint) === relayOrigin(vector.right_endpoint);
        expect(same).toBe(vector.expected_same_origin);
      });
    }
  });

  /** Everything the two modes have in common. */
  function expectAuth(vector: AuthVector, input: Uint8Array, type: string): void {
    expect(textOf(input)).toBe(vector.signing_input_canonical_json);
    expect(hex(input)).toBe(vector.signing_input_utf8_hex);
    expect(hex(primitives.sha256(input))).toBe(vector.signing_input_sha256_hex);
    expect(net.bytes(vector.auth_payload)).toEqual(input);
    expect(vector.auth_payload.$type).toBe(net.type(type));
    const { relay_id: _, ...legacy } = plain(vector.auth_payload);
    expect(hex(net.bytes(legacy))).toBe(vector.legacy_signing_input_utf8_hex);
  }

  const signer = (name: string) => resolve<string>(data.session_auth.signers[name] as string);
  const origin = () => relayOrigin(data.session_auth.target.endpoint);

  test('02 §9.2: the challenge', () => {
    const { challenge } = data.session_auth;
    expect(() => checkChallenge(plain(challenge))).not.toThrow();
    expect(bytes(challenge.nonce)).toHaveLength(32);
  });

  test('02 §9.3: device authentication', () => {
    const { target, challenge, device_auth: vector, signers } = data.session_auth;
    expect(signers.source).toContain('device_certificate');
    const { request } = vector;
    expect(request.nonce).toBe(challenge.nonce);
    const certificate = plain(request.signer_certificate);
    expect(() => verifyDeviceCertificate(net, certificate)).not.toThrow();
    expect(certificate.account).toBe(signer('account_ref'));
    expect(certificate.signing_public_key).toBe(signer('device_public_key_ref'));
    expect(deriveDeviceId(net, certificate)).toBe(signer('device_id_ref'));
    const input = deviceAuthInput(net, {
      relay_id: target.relay_id,
      origin: origin(),
      account: certificate.account,
      device_id: signer('device_id_ref'),
      nonce: request.nonce,
      timestamp: request.timestamp,
    });
    expectAuth(vector, input, 'relay.auth');
    const key = bytes(signer('device_private_key_ref'));
    expect(primitives.ed25519.sign(key, input)).toEqual(bytes(vector.signature));
    expect(request.device_signature).toBe(vector.signature);
    const legacy = fromHex(vector.legacy_signing_input_utf8_hex);
    expect(primitives.ed25519.sign(key, legacy)).toEqual(bytes(vector.legacy_signature));
  });

  test('02 §9.4: account authentication', () => {
    const { target, challenge, account_auth: vector } = data.session_auth;
    const { request } = vector;
    expect(request.nonce).toBe(challenge.nonce);
    expect(request.account_public_key).toBe(signer('account_public_key_ref'));
    const input = accountAuthInput(net, {
      relay_id: target.relay_id,
      origin: origin(),
      account: signer('account_ref'),
      account_public_key: request.account_public_key,
      nonce: request.nonce,
    });
    expectAuth(vector, input, 'relay.account_auth');
    const key = bytes(signer('account_private_key_ref'));
    expect(primitives.p256.sign(key, input)).toEqual(bytes(vector.signature));
    expect(request.account_signature).toBe(vector.signature);
    const legacy = fromHex(vector.legacy_signing_input_utf8_hex);
    expect(primitives.p256.sign(key, legacy)).toEqual(bytes(vector.legacy_signature));
  });

  describe('02 §9: what a relay rebuilds and verifies', () => {
    for (const vector of data.session_auth.verification_cases) {
      test(vector.name, () => {
        const { device_auth, account_auth } = data.session_auth;
        const trusted = new Network({
          context: vector.network_context,
          word: net.word,
          primitives,
        });
        const own = { relay_id: vector.trusted_relay_id, origin: relayOrigin(vector.endpoint) };
        const extra = plain(vector.request_extra_fields ?? {});
        const nonce = vector.nonce_override ?? device_auth.request.nonce;

        const byDevice = { ...plain(device_auth.request), ...extra };
        const deviceInput = deviceAuthInput(trusted, {
          ...byDevice,
          ...own,
          account: byDevice.signer_certificate.account,
          device_id: signer('device_id_ref'),
          nonce,
        });
        const byAccount = { ...plain(account_auth.request), ...extra };
        const accountInput = accountAuthInput(trusted, {
          ...byAccount,
          ...own,
          account: signer('account_ref'),
          nonce,
        });
        const results = [
          verifies(primitives, {
            scheme: 'ed25519',
            publicKey: byDevice.signer_certificate.signing_public_key,
            message: deviceInput,
            signature: device_auth[vector.signature_field],
          }),
          verifies(primitives, {
            scheme: 'p256',
            publicKey: byAccount.account_public_key,
            message: accountInput,
            signature: account_auth[vector.signature_field],
          }),
        ];
        const expected = vector.expected_signature_valid;
        expect(results).toEqual([expected, expected]);
      });
    }
  });
});
