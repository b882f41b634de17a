import { describe, expect, test } from 'vitest';
import {
  type AccountDeviceState,
  addGrantSignature,
  type ContactGrant,
  type ContactInvite,
  checkGrant,
  checkInvite,
  type DeviceCertificate,
  decodeBase64url,
  deriveDeviceId,
  encodeBase64url,
  grantSigningInput,
  hex,
  inviteSigningInput,
  Network,
  selectGrant,
  signInvite,
  utf8,
  validGrantDevices,
  verifyDeviceCertificate,
  verifyInvite,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject, parseJson } from '../../src/json/index.ts';
import { implementations } from '../crypto/implementations.ts';
import { describeVectors } from './vectors.ts';

interface SigningDevice {
  label: string;
  signing_private_key: string;
  certificate: DeviceCertificate;
  device_id: string;
}

interface Vectors {
  signing: {
    vector: {
      private_key: string;
      public_key: string;
      grant: ContactGrant;
      device_id: string;
      signing_input_canonical_json: string;
      signing_input_utf8_hex: string;
      signature: string;
    };
    verification_cases: {
      name: string;
      grant_overrides?: JsonObject;
      grant_remove_fields?: string[];
      network_context?: string;
      device_id?: string;
      public_key?: string;
      signature?: string;
      expected_signature_valid: boolean;
    }[];
  };
  grants: {
    verification_time: number;
    signing_devices: SigningDevice[];
    current_valid_devices: string[];
    grants: { label: string; grant: ContactGrant; signing_input_utf8_hex: string }[];
    format_cases: { name: string; input_json: string; expected: 'accept' | 'reject' }[];
    selection_cases: {
      name: string;
      current: string;
      candidate: string;
      candidate_overrides?: JsonObject;
      candidate_network_context?: string;
      current_valid_devices?: string[];
      expected_action: string;
      expected_selected: string;
    }[];
  };
  invites: {
    signing_device_ref: string;
    invites: {
      label: string;
      object: ContactInvite;
      signing_input_canonical_json: string;
      signing_input_utf8_hex: string;
      signing_input_sha256_hex: string;
    }[];
    verification_cases: {
      name: string;
      invite: string;
      invite_overrides?: JsonObject;
      network_context?: string;
      expected_signature_valid: boolean;
      expected_type_supported: boolean;
    }[];
  };
}

const plain = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T;
const bytes = (text: string) => decodeBase64url(text) as Uint8Array;

function passes(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

describeVectors<Vectors>('contacts-v1', (file) => {
  const { data } = file;
  const { signing, grants, invites } = data;

  describe.each(implementations)('with the primitives of %s', (_name, primitives) => {
    const net = file.network(primitives);
    const inContext = (context = net.context) =>
      new Network({ context, word: net.word, primitives });

    test('03 §16.2: signing input and signature of a grant', () => {
      const { vector } = signing;
      const input = grantSigningInput(net, vector.grant);
      expect(hex(input)).toBe(hex(utf8(vector.signing_input_canonical_json)));
      expect(hex(input)).toBe(vector.signing_input_utf8_hex);
      const device = {
        account: vector.grant.grantor,
        deviceId: vector.device_id,
        sign: (message: Uint8Array) => primitives.ed25519.sign(bytes(vector.private_key), message),
      };
      expect(encodeBase64url(primitives.ed25519.publicKey(bytes(vector.private_key)))).toBe(
        vector.public_key,
      );
      const signed = addGrantSignature(net, plain(vector.grant), device);
      expect(signed.signatures).toEqual({ [vector.device_id]: vector.signature });
    });

    test.each(signing.verification_cases)('03 §16.2: verification of $name', (item) => {
      const removed = item.grant_remove_fields ?? [];
      const members = Object.entries({
        ...plain(signing.vector.grant),
        ...plain(item.grant_overrides ?? {}),
      });
      const grant = Object.fromEntries(members.filter(([name]) => !removed.includes(name)));
      const input = grantSigningInput(
        inContext(item.network_context),
        grant as unknown as ContactGrant,
      );
      // The map key is no part of what is signed; here it only has to be a device ID.
      expect(item.device_id ?? signing.vector.device_id).toMatch(/^dev_/);
      const valid = primitives.ed25519.verify(
        bytes(item.public_key ?? signing.vector.public_key),
        input,
        bytes(item.signature ?? signing.vector.signature),
      );
      expect(valid).toBe(item.expected_signature_valid);
    });

    test.each(grants.signing_devices)('01 §8: certificate of device $label', (item) => {
      verifyDeviceCertificate(net, plain(item.certificate));
      expect(deriveDeviceId(net, item.certificate)).toBe(item.device_id);
      const publicKey = primitives.ed25519.publicKey(bytes(item.signing_private_key));
      expect(encodeBase64url(publicKey)).toBe(item.certificate.signing_public_key);
    });

    const devices = (labels: readonly string[]) =>
      grants.signing_devices.filter(({ label }) => labels.includes(label));
    /** The vectors give valid devices as a premise: a state of the grantor that holds them. */
    const stateOf = (account: string, labels = grants.current_valid_devices) =>
      ({
        account,
        certificates: devices(labels).map(({ certificate }) => certificate),
      }) as unknown as AccountDeviceState;
    const now = grants.verification_time;

    test.each(grants.grants)('03 §16.2: input and signatures of grant $label', (item) => {
      const { grant } = item;
      expect(hex(grantSigningInput(net, plain(grant)))).toBe(item.signing_input_utf8_hex);
      const valid = validGrantDevices(net, grant, { state: stateOf(grant.grantor), now });
      expect(valid).toEqual(Object.keys(grant.signatures).sort());
      for (const deviceId of valid) {
        const signer = grants.signing_devices.find((device) => device.device_id === deviceId);
        const key = bytes(signer?.signing_private_key ?? '');
        const signature = primitives.ed25519.sign(key, grantSigningInput(net, plain(grant)));
        expect(encodeBase64url(signature)).toBe(grant.signatures[deviceId]);
      }
    });

    test.each(grants.format_cases)('03 §16.1: format $name', ({ input_json, expected }) => {
      const accepted = passes(() => checkGrant(net, parseJson(input_json)));
      expect(accepted ? 'accept' : 'reject').toBe(expected);
    });

    const grantOf = (label: string) =>
      plain(grants.grants.find((item) => item.label === label)?.grant) as ContactGrant;

    test.each(grants.selection_cases)('03 §16.4: $name', (item) => {
      const saved = grantOf(item.current);
      const { outcome, grant } = selectGrant(net, {
        scope: { grantor: saved.grantor, grantee: saved.grantee },
        saved,
        candidate: { ...grantOf(item.candidate), ...plain(item.candidate_overrides ?? {}) },
        ...(item.candidate_network_context !== undefined && {
          context: item.candidate_network_context,
        }),
        state: stateOf(saved.grantor, item.current_valid_devices),
        now,
      });
      expect(outcome).toBe(item.expected_action);
      expect(canonicalJson(grant as ContactGrant)).toBe(
        canonicalJson(grantOf(item.expected_selected)),
      );
    });

    const inviter = file.resolve<SigningDevice>(invites.signing_device_ref);

    test.each(invites.invites)('03 §14: signing input and signature of $label', (item) => {
      const { object } = item;
      const input = inviteSigningInput(net, plain(object));
      expect(hex(input)).toBe(item.signing_input_utf8_hex);
      expect(hex(input)).toBe(hex(utf8(item.signing_input_canonical_json)));
      expect(hex(primitives.sha256(input))).toBe(item.signing_input_sha256_hex);
      const key = bytes(inviter.signing_private_key);
      expect(encodeBase64url(primitives.ed25519.sign(key, input))).toBe(object.device_signature);
      if (object.$type !== net.type('contact.invite')) return;
      const device = {
        account: inviter.certificate.account,
        deviceId: inviter.device_id,
        sign: (message: Uint8Array) => primitives.ed25519.sign(key, message),
      };
      expect(signInvite(net, device, { expires_at: object.expires_at })).toEqual(plain(object));
    });

    test.each(invites.verification_cases)('03 §14: $name', (item) => {
      const there = inContext(item.network_context);
      const named = invites.invites.find(({ label }) => label === item.invite)?.object;
      const invite = { ...(plain(named) as ContactInvite), ...plain(item.invite_overrides ?? {}) };
      const signature = primitives.ed25519.verify(
        bytes(inviter.certificate.signing_public_key),
        inviteSigningInput(there, invite),
        bytes(invite.device_signature),
      );
      expect(signature).toBe(item.expected_signature_valid);
      // An account names its chain: of another one the invite fails earlier than by its type.
      const supported =
        there.magic === net.magic
          ? passes(() => checkInvite(there, invite))
          : invite.$type === there.type('contact.invite');
      expect(supported).toBe(item.expected_type_supported);
      const state = stateOf(inviter.certificate.account);
      const valid = passes(() => verifyInvite(there, invite, { state, now }));
      expect(valid).toBe(item.expected_signature_valid && item.expected_type_supported);
    });
  });
});
