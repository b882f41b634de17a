/** Vectors of chapters 05 and 06: identities, secrets, boxes and signatures of groups and channels. */
import type { ClientBoxContext, RelayBoxContext } from '../../src/groups/boxes.ts';
import {
  clientSecretCommitment,
  deriveDeviceId,
  deriveGroupId,
  deriveRelayId,
  encodeBase64url,
  type NewChannel,
  sealClientSecret,
  sealRelaySecret,
  signChannelDescriptor,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  ann,
  ben,
  certificateOf,
  counting,
  deterministic,
  network,
  otherRegistry,
  relayKey,
  signedBy,
  start,
  tampered,
  VectorFile,
  without,
} from './fixture.ts';

const relay_id = deriveRelayId(network, relayKey.publicKey);
const nonce = encodeBase64url(counting(0xe0, 16));
const identity = { nonce, creator: ann.signer.account, relay_id };
const certificate = certificateOf(ann, ann.device);
const invalid = { error: 'invalid_signature' };

export function groupVectors(): VectorFile {
  const file = new VectorFile('Groups: identity, secrets, boxes, signatures', '05 §3');
  identities(file, 'group.id');
  const group_id = deriveGroupId(network, identity);
  const secret = counting(0x11);
  const client_secret = encodeBase64url(secret);
  file.valid('commitment', 'group.commitment', { group_id, secret: client_secret });
  clientBoxes(file, group_id, secret);
  relayBoxes(file, group_id);
  const message = {
    group_id,
    epoch: 7,
    message_id: `msg_${'A'.repeat(22)}`,
    created_at: start,
    from: ann.signer.account,
    from_device_id: deriveDeviceId(network, certificate),
  };
  const relay_secret = encodeBase64url(counting(0x31));
  const keys = { group_id, epoch: 7, client_secret, relay_secret, message };
  file.valid('message key', 'group.message_key', keys);
  const later = { ...keys, epoch: 8, message: { ...message, epoch: 8 } };
  file.valid('message key of the next epoch', 'group.message_key', later);
  file.valid('message key on another registry', 'group.message_key', keys, otherRegistry);
  const body = {
    $type: network.type('group.close'),
    group_id,
    prev_hash: `sha256:${'A'.repeat(43)}`,
    zz: { kept: true },
  };
  const object = signedBy(ann.device, body, 'device_signature');
  const operation = 'group.object.verify';
  file.valid('signature and management hash', operation, { object, certificate });
  const spoiled = { ...object, device_signature: tampered(object.device_signature) };
  for (const [name, changed] of [
    ['tampered', spoiled],
    ['changed after signing', { ...object, zz: 1 }],
    ['without its type', without(object, '$type')],
  ] as const) {
    file.invalid(`signature: ${name}`, operation, { object: changed, certificate }, invalid);
  }
  const wire = { ...object, $context: network.context };
  file.invalid('K2: $context on the wire', operation, { object: wire, certificate });
  return file;
}

function identities(file: VectorFile, operation: string): void {
  file.valid('ID', operation, identity);
  file.valid('ID of another creator', operation, { ...identity, creator: ben.signer.account });
  file.valid('ID of another nonce', operation, { ...identity, nonce: 'A'.repeat(22) });
  file.valid('ID at another host', operation, { ...identity, relay_id: `0x${'00'.repeat(20)}` });
  file.valid('ID on another registry', operation, identity, otherRegistry);
}

function clientBoxes(file: VectorFile, group_id: string, secret: Uint8Array): void {
  const context: ClientBoxContext & JsonObject = {
    group_id,
    account: ben.signer.account,
    member_encryption_public_key: ben.device.encryptionPublicKey,
    client_secret_commitment: clientSecretCommitment(network, group_id, secret),
  };
  const random = deterministic('client box');
  const box = sealClientSecret(network, context, { secret, random });
  const private_key = encodeBase64url(ben.device.encryptionKey);
  const input = { context, box, private_key };
  const operation = 'group.client_box.open';
  file.valid('client box', operation, input);
  for (const [name, changes] of [
    ['of another member', { context: { ...context, account: ann.signer.account } }],
    ['of another group', { context: { ...context, group_id: `grp_${'A'.repeat(22)}` } }],
    [
      'of another commitment',
      { context: { ...context, client_secret_commitment: `sha256:${'A'.repeat(43)}` } },
    ],
    ['with another key', { private_key: encodeBase64url(ann.device.encryptionKey) }],
    ['tampered', { box: { ...box, sealed_secret: tampered(box.sealed_secret) } }],
    ['01 E2: an all-zero secret', { box: { ...box, enc: 'A'.repeat(43) } }],
  ] as const) {
    file.invalid(`client box: ${name}`, operation, { ...input, ...changes });
  }
  file.invalid('client box: on another registry', operation, input, { on: otherRegistry });
}

function relayBoxes(file: VectorFile, group_id: string): void {
  const context: RelayBoxContext & JsonObject = {
    group_id,
    account: ben.signer.account,
    device_id: deriveDeviceId(network, certificateOf(ben, ben.device)),
    epoch: 7,
  };
  const box = sealRelaySecret(network, context, {
    deviceKey: ben.device.encryptionPublicKey,
    secret: counting(0x31),
    random: deterministic('relay box'),
  });
  const input = { context, box, private_key: encodeBase64url(ben.device.encryptionKey) };
  const operation = 'group.relay_box.open';
  file.valid('relay box', operation, input);
  const other = { ...input, context: { ...context, epoch: 8 } };
  file.invalid('relay box: of another epoch', operation, other);
  const device = { ...input, context: { ...context, device_id: `dev_${'A'.repeat(22)}` } };
  file.invalid('relay box: of another device', operation, device);
}

export function channelVectors(): VectorFile {
  const file = new VectorFile('Channels: identity and descriptors', '06 §3, §4');
  identities(file, 'channel.id');
  const operation = 'channel.descriptor.verify';
  const facts: NewChannel = { ...identity, name: 'Release notes', created_at: start };
  const descriptor: JsonObject = signChannelDescriptor(network, ann.device, facts);
  const { channel_id = '' } = descriptor;
  const make = (changes: JsonObject) =>
    signedBy(
      ann.device,
      { ...without(descriptor, 'device_signature'), ...changes },
      'device_signature',
    );
  const input = (value: JsonObject) => ({ descriptor: value, channel_id, relay_id, certificate });
  const people = Array.from({ length: 10 }, () => ben.signer.account);
  for (const [name, value] of [
    ['revision 0', descriptor],
    ['a moderator', make({ moderators: [ben.signer.account] })],
    ['a description of 4,096 bytes', make({ description: 'é'.repeat(2_048) })],
    ['a later revision', make({ revision: 5, updated_at: start + 9 })],
    ['a closed channel', make({ revision: 6, status: 'closed', updated_at: start + 9 })],
    ['U1: unknown members', make({ zz: [''] })],
  ] as const) {
    file.valid(name, operation, input(value));
  }
  for (const [name, value] of [
    ['an empty name', make({ name: '' })],
    ['a name of white space', make({ name: ' \u2003' })],
    ['a name of 257 bytes', make({ name: 'a'.repeat(257) })],
    ['a description of 4,097 bytes', make({ description: 'a'.repeat(4_097) })],
    ['the owner as moderator', make({ moderators: [ann.signer.account] })],
    ['a moderator twice', make({ moderators: people.slice(0, 2) })],
    ['another nonce than the ID', make({ nonce: 'A'.repeat(22) })],
    ['another creator than the ID', make({ creator: ben.signer.account })],
    ['another host', make({ relay_id: `0x${'00'.repeat(20)}` })],
    ['an unknown status', make({ status: 'paused' })],
    ['a first revision that is closed', make({ status: 'closed' })],
    ['a first revision with two times', make({ updated_at: start + 1 })],
    ['null description', make({ description: null })],
    ['K2: $context on the wire', { ...descriptor, $context: network.context }],
    ['Y1: another type', make({ $type: network.type('channel.post') })],
  ] as const) {
    file.invalid(name, operation, input(value));
  }
  const long = make({ zz: 'x'.repeat(8_192) });
  file.invalid('over 8,192 bytes', operation, input(long), { error: 'request_too_large' });
  const spoiled = {
    ...descriptor,
    device_signature: tampered(String(descriptor.device_signature)),
  };
  file.invalid('tampered', operation, input(spoiled), invalid);
  const foreign = { ...input(descriptor), certificate: certificateOf(ann, ann.second) };
  file.invalid('signed by another device', operation, foreign, invalid);
  const stranger = { ...input(descriptor), certificate: certificateOf(ben, ben.device) };
  file.invalid('signed by another account', operation, stranger);
  return file;
}
