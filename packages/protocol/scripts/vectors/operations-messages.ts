/** Operations on messages, content, groups and channels. */
import { verifySignatures } from '../../src/crypto/index.ts';
import { groupMessageAad } from '../../src/groups/message.ts';
import {
  type ContentReference,
  checkContentReference,
  checkEnvelope,
  checkEnvelopeCertificate,
  clientSecretCommitment,
  type DeviceCertificate,
  deriveChannelId,
  deriveEpochApplicationSecret,
  deriveGroupId,
  deriveGroupMessageKey,
  deviceSignatures,
  encodeBase64url,
  envelopeSignatures,
  fromHex,
  type GroupSecretBox,
  hex,
  type MessageEnvelope,
  type MessageKeyBox,
  messageAad,
  openClientSecret,
  openContent,
  openKeyBox,
  openMessage,
  openRelaySecret,
  verifyChannelDescriptor,
  verifyDeviceCertificate,
} from '../../src/index.ts';
import { decodeUtf8, type JsonObject } from '../../src/json/index.ts';
import { contentAad } from '../../src/messages/content-reference.ts';
import { keyBoxInfo } from '../../src/messages/key-box.ts';
import { checkEncryptedPayload } from '../../src/messages/payload.ts';
import { bytes, type Operation, opened, operation, signed } from './operation.ts';

export const messages: Record<string, Operation> = {
  'payload.check': operation<{ payload?: unknown }>((_network, { payload }) => {
    checkEncryptedPayload(payload);
    return {};
  }),
  'envelope.verify': operation<{ envelope: unknown; certificate: DeviceCertificate }>(
    (net, { envelope, certificate }) => {
      checkEnvelope(net, envelope);
      verifyDeviceCertificate(net, certificate);
      checkEnvelopeCertificate(net, envelope, certificate);
      const checks = envelopeSignatures(net, envelope, certificate);
      verifySignatures(net.primitives, checks, 'envelope');
      return { aad: decodeUtf8(messageAad(net, envelope)), signed: signed(net, checks) };
    },
  ),
  'key_box.open': operation<{
    envelope: MessageEnvelope;
    account: string;
    key_box: MessageKeyBox;
    encryption_private_key: string;
  }>((net, { envelope, account, key_box: box, encryption_private_key }) => {
    const encryptionPrivateKey = bytes(encryption_private_key);
    const context = { envelope, account, deviceId: box.device_id, enc: box.enc };
    const key = opened(openKeyBox(net, { envelope, account, box, encryptionPrivateKey }));
    return { info: decodeUtf8(keyBoxInfo(net, context)), content_key: encodeBase64url(key) };
  }),
  'message.open': operation<{
    envelope: MessageEnvelope;
    key_box: MessageKeyBox;
    certificate: DeviceCertificate;
    account: string;
    device_id: string;
    encryption_private_key: string;
  }>((net, { key_box: keyBox, device_id: deviceId, encryption_private_key, ...rest }) => {
    const encryptionPrivateKey = bytes(encryption_private_key);
    const plaintext = openMessage(net, { ...rest, keyBox, deviceId, encryptionPrivateKey });
    return { plaintext: decodeUtf8(plaintext) };
  }),
  'content.open': operation<{ reference: ContentReference; body_hex: string }>(
    (net, { reference, body_hex }) => {
      checkContentReference(reference);
      const plaintext = opened(openContent(net, reference, fromHex(body_hex)));
      return { aad: decodeUtf8(contentAad(net, reference)), plaintext_hex: hex(plaintext) };
    },
  ),
};

export const hosted: Record<string, Operation> = {
  'group.id': operation<Parameters<typeof deriveGroupId>[1]>((net, identity) => ({
    group_id: deriveGroupId(net, identity),
  })),
  'group.commitment': operation<{ group_id: string; secret: string }>(
    (net, { group_id, secret }) => ({
      commitment: clientSecretCommitment(net, group_id, bytes(secret)),
    }),
  ),
  'group.client_box.open': operation<{
    context: Parameters<typeof openClientSecret>[1];
    box: GroupSecretBox;
    private_key: string;
  }>((net, { context, box, private_key }) => {
    const privateKey = bytes(private_key);
    return { secret: encodeBase64url(opened(openClientSecret(net, context, { box, privateKey }))) };
  }),
  'group.relay_box.open': operation<{
    context: Parameters<typeof openRelaySecret>[1];
    box: GroupSecretBox;
    private_key: string;
  }>((net, { context, box, private_key }) => {
    const privateKey = bytes(private_key);
    return { secret: encodeBase64url(opened(openRelaySecret(net, context, { box, privateKey }))) };
  }),
  'group.message_key': operation<{
    group_id: string;
    epoch: number;
    client_secret: string;
    relay_secret: string;
    message: Parameters<typeof groupMessageAad>[1];
  }>((net, { group_id, epoch, client_secret, relay_secret, message }) => {
    const clientSecret = bytes(client_secret);
    const applicationSecret = deriveEpochApplicationSecret(net, {
      group_id,
      epoch,
      client_secret_commitment: clientSecretCommitment(net, group_id, clientSecret),
      clientSecret,
      relaySecret: bytes(relay_secret),
    });
    return {
      application_secret: encodeBase64url(applicationSecret),
      aad: decodeUtf8(groupMessageAad(net, message)),
      message_key: encodeBase64url(deriveGroupMessageKey(net, applicationSecret, message)),
    };
  }),
  'group.object.verify': operation<{
    object: JsonObject & { device_signature: string };
    certificate: DeviceCertificate;
  }>((net, { object, certificate }) => {
    const checks = deviceSignatures(net, object, certificate);
    verifySignatures(net.primitives, checks, 'object');
    return { management_hash: net.hash(object), signed: signed(net, checks) };
  }),
  'channel.id': operation<Parameters<typeof deriveChannelId>[1]>((net, identity) => ({
    channel_id: deriveChannelId(net, identity),
  })),
  'channel.descriptor.verify': operation<{
    descriptor: unknown;
    channel_id: string;
    relay_id: string;
    certificate: DeviceCertificate;
  }>((net, { descriptor, channel_id: channelId, relay_id: relayId, certificate }) => {
    verifyDeviceCertificate(net, certificate);
    const known = { channelId, relayId, certificate };
    const { revision, status } = verifyChannelDescriptor(net, descriptor, known);
    return { revision, status };
  }),
};
