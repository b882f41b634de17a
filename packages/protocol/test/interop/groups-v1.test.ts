import { describe, expect, test } from 'vitest';
import { noblePrimitives, type Random, verifySignatures } from '../../src/crypto/index.ts';
import { groupIdentityInput } from '../../src/groups/ids.ts';
import { groupMessageAad } from '../../src/groups/message.ts';
import {
  clientSecretCommitment,
  deriveEpochApplicationSecret,
  deriveGroupId,
  deriveGroupMessageKey,
  deviceSignatures,
  encodeBase64url,
  type GroupMessageEnvelope,
  type GroupSecretBox,
  hex,
  openClientSecret,
  openGroupMessage,
  openRelaySecret,
  readGroupContent,
  sealClientSecret,
  sealGroupMessage,
  sealRelaySecret,
  signAsDevice,
  utf8,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import { sealPayload } from '../../src/messages/payload.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';
import { chainVectors } from './groups-v1-chain.ts';
import { bytesOf } from './groups-v1-chain-state.ts';
import { nicknameVectors } from './groups-v1-nicknames.ts';
import type { Groups } from './groups-v1-shape.ts';
import { describeVectors } from './vectors.ts';

/** A source that gives these values in their order. */
function given(...values: string[]): Random {
  const rest = values.map(bytesOf);
  return (length) => {
    const next = rest.shift();
    if (next?.length !== length) throw new Error(`no ${length} bytes prepared`);
    return next;
  };
}

const all = { noble: noblePrimitives, node: nodePrimitives };

describeVectors<Groups>('groups-v1', ({ data, network: networkOf }) => {
  describe.each(Object.entries(all))('on %s primitives', (_, primitives) => {
    const network = networkOf(primitives);

    test(`${data.group_id.id}: input, digest and ID`, () => {
      const { operation, input, expected } = data.group_id;
      expect(operation).toBe('group_id');
      const bytes = groupIdentityInput(network, input);
      const digest = primitives.sha256(bytes);
      const $type = network.type('group.identity');
      expect({
        canonical_json: canonicalJson({ ...input, $type, $context: data.network_context }),
        utf8_hex: hex(bytes),
        utf8_base64: btoa(String.fromCharCode(...bytes)),
        sha256_hex: hex(digest),
        sha256_base64url: encodeBase64url(digest),
        group_id: deriveGroupId(network, input),
      }).toEqual(expected);
    });

    describe('keying', () => {
      const { input, expected } = data.keying;
      const text = (name: string) => input[name] as string;
      const bytes = (name: string) => bytesOf(text(name));
      const group_id = text('group_id');
      const account = text('account');
      const device_id = text('device_id');
      const { epoch } = input;
      const commitment = expected.client_secret_commitment as string;
      const clientContext = {
        group_id,
        account,
        member_encryption_public_key: text('member_encryption_public_key'),
        client_secret_commitment: commitment,
      };
      const relayContext = { group_id, account, device_id, epoch };

      test('group ID, key pairs and commitment', () => {
        const identity = { creator: account, nonce: text('nonce'), relay_id: text('relay_id') };
        expect(deriveGroupId(network, identity)).toBe(group_id);
        for (const name of ['member_encryption', 'device_encryption']) {
          const key = primitives.x25519.publicKey(bytes(`${name}_private_key`));
          expect(encodeBase64url(key)).toBe(text(`${name}_public_key`));
        }
        const signing = primitives.ed25519.publicKey(bytes('message_signing_private_key'));
        expect(encodeBase64url(signing)).toBe(text('message_signing_public_key'));
        const secret = bytes('client_group_secret');
        expect(clientSecretCommitment(network, group_id, secret)).toBe(commitment);
      });

      test('the client secret box, sealed and opened', () => {
        const random = given(text('client_box_ephemeral_private_key'), text('client_box_nonce'));
        const secret = bytes('client_group_secret');
        expect(sealClientSecret(network, clientContext, { secret, random })).toEqual(
          expected.client_secret_box,
        );
        const box = expected.client_secret_box as GroupSecretBox;
        const privateKey = bytes('member_encryption_private_key');
        expect(openClientSecret(network, clientContext, { box, privateKey })).toEqual(secret);
      });

      test('the relay secret box, sealed and opened', () => {
        const random = given(text('relay_box_ephemeral_private_key'), text('relay_box_nonce'));
        const secret = bytes('relay_epoch_secret');
        const deviceKey = text('device_encryption_public_key');
        expect(sealRelaySecret(network, relayContext, { deviceKey, secret, random })).toEqual(
          expected.relay_secret_box,
        );
        const box = expected.relay_secret_box as GroupSecretBox;
        const privateKey = bytes('device_encryption_private_key');
        expect(openRelaySecret(network, relayContext, { box, privateKey })).toEqual(secret);
      });

      test('the application secret and a message', () => {
        const applicationSecret = deriveEpochApplicationSecret(network, {
          group_id,
          epoch,
          client_secret_commitment: commitment,
          clientSecret: bytes('client_group_secret'),
          relaySecret: bytes('relay_epoch_secret'),
        });
        expect(encodeBase64url(applicationSecret)).toBe(expected.epoch_application_secret);

        const seed = bytes('message_signing_private_key');
        const sender = { account, deviceId: device_id };
        const from = {
          ...sender,
          sign: (message: Uint8Array) => primitives.ed25519.sign(seed, message),
        };
        const createdAt = input.message_created_at;
        const messageId = text('message_id');
        const content = input.message_content;
        const context = {
          group_id,
          epoch,
          message_id: messageId,
          created_at: createdAt,
          from: account,
          from_device_id: device_id,
        };
        const aad = groupMessageAad(network, context);
        expect(hex(aad)).toBe(expected.message_aad_utf8_hex);
        const key = deriveGroupMessageKey(network, applicationSecret, context);
        expect(encodeBase64url(key)).toBe(expected.message_key);
        // The plaintext of the vector is JSON, not Canonical JSON, which is allowed (04 §6.1).
        const plain = utf8(JSON.stringify(content));
        const random = () => given(text('message_nonce'));
        const exact = { key, aad, plaintext: plain, random: random() };
        const { message_id, created_at } = context;
        const head = {
          $type: network.type('group.message'),
          message_id,
          group_id,
          epoch,
          created_at,
        };
        const payload = sealPayload(primitives, exact);
        expect(signAsDevice(network, { ...head, payload }, from)).toEqual(expected.message);

        const sealed = sealGroupMessage(network, {
          group_id,
          from,
          epoch,
          applicationSecret,
          createdAt,
          messageId,
          content,
          random: random(),
        });
        expect({ ...sealed, payload: undefined, device_signature: undefined }).toEqual({
          ...expected.message,
          payload: undefined,
          device_signature: undefined,
        });
        const reopened = openGroupMessage(network, sealed, { applicationSecret, sender });
        expect(JSON.parse(new TextDecoder().decode(reopened))).toEqual(content);

        const received = expected.message as unknown as GroupMessageEnvelope;
        const certificate = { signing_public_key: text('message_signing_public_key') };
        verifySignatures(primitives, deviceSignatures(network, received, certificate), 'message');
        const plaintext = openGroupMessage(network, received, { applicationSecret, sender });
        expect(readGroupContent(network, plaintext as Uint8Array, 4)).toEqual({
          kind: 'message',
          content: input.message_content,
        });
      });
    });

    chainVectors(network, data.management_chain);
    describe('nicknames', () => nicknameVectors(network, data));
  });
});
