/** Vectors of chapters 01 §5.5 and 04: payloads, envelopes, key boxes, content. */
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  deriveDeviceId,
  encodeBase64url,
  hex,
  type MessageKeyBox,
  sealContent,
  sealMessage,
  signingDevice,
  utf8,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  ann,
  ben,
  certificateOf,
  deterministic,
  network,
  otherRegistry,
  signedBy,
  start,
  tampered,
  VectorFile,
  without,
} from './fixture.ts';

const annCertificate = certificateOf(ann, ann.device);
const benCertificate = certificateOf(ben, ben.device);
const sealed = sealMessage(network, {
  from: signingDevice(network, ann.signer.account, ann.device),
  to: ben.signer.account,
  createdAt: start + 50,
  content: {
    $type: network.type('message.direct'),
    body: { content_type: 'text/plain', text: 'Grüße 😀' },
  },
  recipients: [benCertificate],
  senders: [annCertificate],
  random: deterministic('messages'),
});
const { envelope } = sealed;
const keyBox = only(sealed.recipient_boxes);
const senderBox = only(sealed.sender_boxes);

function only(boxes: readonly MessageKeyBox[] = []): MessageKeyBox {
  const [box] = boxes;
  if (box === undefined) throw new Error('the box is missing');
  return box;
}

export function payloadVectors(): VectorFile {
  const file = new VectorFile('Ciphertext containers', '01 §5.5');
  const operation = 'payload.check';
  const { payload } = envelope;
  file.valid('genuine', operation, { payload });
  file.valid('unknown members', operation, { payload: { ...payload, zz: 1 } });
  const tag = 'A'.repeat(22);
  file.valid('a tag alone', operation, { payload: { ...payload, ciphertext: tag } });
  file.invalid('missing', operation, {});
  for (const [name, value] of [
    ['null', null],
    ['a text', 'ciphertext'],
    ['an array', []],
    ['alg missing', without(payload, 'alg')],
    ['another alg', { ...payload, alg: 'AES-128-GCM' }],
    ['alg in lower case', { ...payload, alg: 'aes-256-gcm' }],
    ['nonce missing', without(payload, 'nonce')],
    ['nonce null', { ...payload, nonce: null }],
    ['nonce of 11 bytes', { ...payload, nonce: 'A'.repeat(15) }],
    ['nonce of 13 bytes', { ...payload, nonce: 'A'.repeat(18) }],
    ['nonce padded', { ...payload, nonce: `${payload.nonce}=` }],
    ['ciphertext missing', without(payload, 'ciphertext')],
    ['ciphertext of 15 bytes', { ...payload, ciphertext: 'A'.repeat(20) }],
    ['ciphertext with pad bits', { ...payload, ciphertext: `${'A'.repeat(21)}B` }],
    ['ciphertext empty', { ...payload, ciphertext: '' }],
  ] as const) {
    file.invalid(name, operation, { payload: value });
  }
  return file;
}

export function envelopeVectors(): VectorFile {
  const file = new VectorFile('Message envelopes', '04 §3, §6.1');
  const operation = 'envelope.verify';
  const certificate = annCertificate;
  const input = (value: JsonObject) => ({ envelope: value, certificate });
  const signed = (changes: JsonObject) => {
    const body = { ...without(envelope, 'device_signature'), ...changes };
    return signedBy(ann.device, body, 'device_signature');
  };
  file.valid('genuine', operation, input(envelope));
  file.valid('U1: unknown members are signed', operation, input(signed({ zz: [{}] })));
  const bad = (name: string, changed: JsonObject, error = 'bad_request') =>
    file.invalid(name, operation, input(changed), { error });
  bad('tampered', { ...envelope, device_signature: tampered(envelope.device_signature) }, invalid);
  bad('another time after signing', { ...envelope, created_at: start + 51 }, invalid);
  bad('unknown member added after signing', { ...envelope, zz: 1 }, invalid);
  bad('another device than the certificate', signed({ from_device_id: `dev_${'A'.repeat(22)}` }));
  bad('another sender than the certificate', signed({ from: ben.signer.account }));
  bad('a target of another chain', signed({ to: ben.signer.account.replace('102:', '103:') }));
  bad('a target with a wrong checksum', signed({ to: `${ben.signer.account.slice(0, -1)}q` }));
  bad('a message ID with pad bits', signed({ message_id: `msg_${'A'.repeat(21)}B` }));
  bad('created_at a text', signed({ created_at: '1' }));
  bad('payload missing', without(envelope, 'payload'));
  bad('ciphertext next to the payload', {
    ...without(envelope, 'payload'),
    ciphertext: envelope.payload.ciphertext,
  });
  bad('J9: null in an unknown member', signed({ zz: null }));
  bad('K2: $context on the wire', { ...envelope, $context: network.context });
  bad('K2: $context null', { ...envelope, $context: null });
  bad('Y1: a successor type', signed({ $type: network.type('message.envelope.v2') }));
  bad('Y7: no type', without(envelope, '$type'));
  const on = { on: otherRegistry, error: 'invalid_signature' };
  file.invalid('N4: on another registry', operation, input(envelope), on);
  return file;
}

const invalid = 'invalid_signature';

export function messageVectors(): VectorFile {
  const file = new VectorFile('Key boxes and whole messages', '04 §5, §6');
  const boxes = {
    recipient: {
      envelope,
      account: ben.signer.account,
      key_box: keyBox,
      encryption_private_key: encodeBase64url(ben.device.encryptionKey),
    },
    sender: {
      envelope,
      account: ann.signer.account,
      key_box: senderBox,
      encryption_private_key: encodeBase64url(ann.device.encryptionKey),
    },
  };
  const { recipient, sender } = boxes;
  file.valid('box: recipient', 'key_box.open', recipient);
  file.valid('box: sender', 'key_box.open', sender);
  const lowOrder = { ...recipient.key_box, enc: 'A'.repeat(43) };
  const changedSeal = tampered(recipient.key_box.sealed_key);
  for (const [name, changes] of [
    ['for another account', { account: ann.signer.account }],
    ['with another key', { encryption_private_key: sender.encryption_private_key }],
    ['of another device', { key_box: { ...keyBox, device_id: senderBox.device_id } }],
    ['01 E2: an all-zero secret', { key_box: lowOrder }],
    ['a tampered key', { key_box: { ...recipient.key_box, sealed_key: changedSeal } }],
    ['of another message', { envelope: { ...envelope, message_id: `msg_${'A'.repeat(22)}` } }],
    ['of another time', { envelope: { ...envelope, created_at: start } }],
  ] as const) {
    file.invalid(`box: ${name}`, 'key_box.open', { ...recipient, ...changes });
  }
  file.invalid('box: on another registry', 'key_box.open', recipient, { on: otherRegistry });
  const whole = {
    ...recipient,
    device_id: deriveDeviceId(network, benCertificate),
    certificate: annCertificate,
  };
  const own = { ...sender, device_id: senderBox.device_id, certificate: annCertificate };
  file.valid('message: received', 'message.open', whole);
  file.valid('message: sent', 'message.open', own);
  const spoiled = { ...envelope, device_signature: tampered(envelope.device_signature) };
  for (const [name, changes, error] of [
    ['tampered envelope', { envelope: spoiled }, invalid],
    ['certificate of another device', { certificate: certificateOf(ann, ann.second) }, undefined],
    ['certificate of another account', { certificate: benCertificate }, undefined],
    ['box of another device', { device_id: own.device_id }, undefined],
  ] as const) {
    const options = error === undefined ? {} : { error };
    file.invalid(`message: ${name}`, 'message.open', { ...whole, ...changes }, options);
  }
  return file;
}

export function contentVectors(): VectorFile {
  const file = new VectorFile('External content', '01 §11.1; 04 §9');
  const operation = 'content.open';
  const plaintext = utf8('external content\n');
  const { body, reference: part } = sealContent(network, {
    plaintext,
    contentType: 'text/plain; charset="utf-8"',
    random: deterministic('content'),
  });
  const reference = { uri: 'https://example.com/content', ...part };
  const input = (changes: JsonObject = {}, bytes = body) => ({
    reference: { ...reference, ...changes },
    body_hex: hex(bytes),
  });
  const { encryption, ...plain } = reference;
  file.valid('encrypted', operation, input());
  file.valid('plain', operation, { reference: plain, body_hex: hex(plaintext) });
  file.valid('not bound to a network', operation, input(), otherRegistry);
  const { hash, size } = reference;
  for (const [name, changes] of [
    ['another hash', { hash: `${hash.slice(0, -2)}AA` }],
    ['another size', { size: size + 1 }],
    ['another media type', { content_type: 'text/html' }],
    ['another nonce', { encryption: { ...encryption, nonce: 'A'.repeat(16) } }],
    ['another key', { encryption: { ...encryption, key: 'A'.repeat(43) } }],
    ['a key of 31 bytes', { encryption: { ...encryption, key: 'A'.repeat(42) } }],
    ['another alg', { encryption: { ...encryption, alg: 'AES-128-GCM' } }],
    ['encryption null', { encryption: null }],
    ['an address over http', { uri: 'http://example.com/content' }],
    ['a relative address', { uri: '/content' }],
    ['an address with a space', { uri: 'https://example.com/a b' }],
    ['a media type without its second half', { content_type: 'text' }],
    ['a negative size', { size: -1 }],
  ] as const) {
    file.invalid(name, operation, input(changes));
  }
  const changed = body.slice();
  changed[0] = (changed[0] ?? 0) ^ 1;
  file.invalid('a changed byte', operation, input({}, changed));
  file.invalid('a byte less', operation, input({}, body.slice(0, -1)));
  const wrong = { reference: plain, body_hex: hex(utf8('External content\n')) };
  file.invalid('plain: other content', operation, wrong);
  const digest = encodeBase64url(noblePrimitives.sha256(plaintext));
  if (hash !== `sha256:${digest}`) throw new Error('the hash is not that of the plaintext');
  return file;
}
